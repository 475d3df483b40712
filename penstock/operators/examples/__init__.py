"""Operators that show how it is done, on real libraries: `pip install 'penstock[operators]'`.

    geo         shapely      locIn, locWithin, distanceFrom
    text        nothing      inLanguage, languageOf, patternIn
    image       Pillow       dominantColour, edgeDensity, blobCount
    drones      Pillow       what the cameras of Liu et al. (2007) see: mobPattern and others
    reasoning   nothing      entails, whichOf, by a small Datalog
    look_up     SQLite       ownerOf

They are declared as entry points in pyproject.toml, like those of any other package.
"""
