"""News as XML documents, and subscribers who want parts of them, as SQL with XMLTABLE.

Few topics and columns are popular and most are not, so that views have much in common, as people's
subscriptions do.
"""

from __future__ import annotations

from random import Random

TABLE = "CREATE TABLE news (id BIGINT PRIMARY KEY, doc XML)"
SECTIONS = ("sport", "world", "politics", "arts", "science", "weather")
COUNTRIES = ("England", "France", "Kenya", "Peru", "Japan")
CITIES = ("Leeds", "Lyon", "Nairobi", "Lima", "Osaka")
NAMES = ("Ada Byron", "Bob Reed", "Cy Lamar", "Dee Okoro", "Eve Sato")
WORDS = ("match", "vote", "storm", "novel", "comet", "strike", "record", "treaty", "goal", "flood")
COLUMNS = {
    "headline": "headline",
    "author": "byline/author",
    "city": "place/city",
    "country": "place/country",
    "keyword": "keywords/keyword",
    "section": "section",
    "published": "@published",
}
"""By popularity."""
MAX_COLUMNS = 3


def documents(count: int, seed: int = 1, articles: int = 12) -> list[str]:
    """Each with about this many articles: 5 kB for twelve."""
    rng = Random(seed)
    return [
        "<news>"
        + "".join(_article(rng) for _ in range(max(1, round(rng.gauss(articles, articles / 4)))))
        + "</news>"
        for _ in range(count)
    ]


def views(count: int, seed: int = 1) -> list[str]:
    """Subscriptions, some of which are equal."""
    rng = Random(seed)
    return [_view(rng) for _ in range(count)]


def _article(rng: Random) -> str:
    country = rng.randrange(len(COUNTRIES))
    place = f"<place><city>{CITIES[country]}</city><country>{COUNTRIES[country]}</country></place>"
    byline = f"<byline><author>{_popular(rng, NAMES)}</author></byline>"
    keywords = "".join(f"<keyword>{one}</keyword>" for one in rng.sample(WORDS, 2))
    body = "".join(
        f"<p>{' '.join(rng.choice(WORDS) for _ in range(12))}</p>" for _ in range(rng.randrange(4))
    )
    return (
        f'<article published="2026-{rng.randrange(1, 13):02}">'
        f"<headline>{' '.join(rng.sample(WORDS, 3))}</headline>"
        f"<section>{_popular(rng, SECTIONS)}</section>"
        + (byline if rng.random() < 0.8 else "")
        + (place if rng.random() < 0.7 else "")
        + f"<keywords>{keywords}</keywords><body>{body}</body></article>"
    )


def _view(rng: Random) -> str:
    tests = []
    if rng.random() < 0.6:
        tests.append(f"[section = '{_popular(rng, SECTIONS)}']")
    if rng.random() < 0.35:
        tests.append(f"[place/country = '{_popular(rng, COUNTRIES)}']")
    if rng.random() < 0.2:
        tests.append(f"[keywords/keyword = '{_popular(rng, WORDS)}']")
    path = "//article" + "".join(tests)
    names = {_popular(rng, tuple(COLUMNS)) for _ in range(rng.randint(1, MAX_COLUMNS))}
    listed = ", ".join(f"{name} VARCHAR PATH '{COLUMNS[name]}'" for name in sorted(names))
    shown = ", ".join(f"x.{name}" for name in sorted(names))
    quoted = path.replace("'", "''")
    table = f"XMLTABLE('{quoted}' PASSING doc COLUMNS {listed}) AS x"
    return f"SELECT news.id, {shown} FROM news, {table}"


def _popular(rng: Random, words: tuple[str, ...]) -> str:
    """One of some words, the first ones more often."""
    return words[min(int(rng.expovariate(1.2) * len(words) / 3), len(words) - 1)]
