"""Which language a text is in, by its trigrams (Cavnar and Trenkle, 1994), from small samples.

The samples were written for this project. A profile is the frequency of the trigrams of a sample; a
text belongs to the language under which its own trigrams are most likely.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache

MIN_LETTERS = 20
"""Shorter texts have too few trigrams to tell."""
_UNSEEN = 0.3
"""How often a trigram is taken to have been seen that was not."""
_OTHER = re.compile(r"[\W\d_]+")

SAMPLES = {
    "de": """
        Die Straße war leer, als der Zug am frühen Morgen in den Bahnhof einfuhr. Niemand
        wusste, warum er so spät kam und was mit den Leuten geschehen war, die auf ihn gewartet
        hatten. Wir haben gestern lange darüber gesprochen, ob das Wetter besser wird oder ob
        wir lieber zu Hause bleiben sollten. Das Haus steht am Rand der Stadt, und von dort
        sieht man über die Felder bis zum Fluss. Ich möchte nicht, dass sie sich deswegen Sorgen
        macht, denn es ist noch nichts entschieden. Zwischen den beiden Türmen liegt ein kleiner
        Garten mit einer Bank.
    """,
    "en": """
        The street was empty when the train came into the station early in the morning. Nobody
        knew why it was so late and what had happened to the people who were waiting for it. We
        talked for a long time yesterday about whether the weather would get better or whether
        we should rather stay at home. The house stands at the edge of the town, and from there
        you can see over the fields as far as the river. I do not want her to worry about that,
        because nothing has been decided yet. Between the two towers there is a little garden
        with a bench.
    """,
    "es": """
        La calle estaba vacía cuando el tren entró en la estación por la mañana temprano. Nadie
        sabía por qué llegaba tan tarde ni qué había pasado con la gente que lo esperaba. Ayer
        hablamos mucho tiempo sobre si el tiempo iba a mejorar o si era mejor quedarnos en casa.
        La casa está en las afueras de la ciudad, y desde allí se ven los campos hasta el río.
        No quiero que ella se preocupe por eso, porque todavía no hay nada decidido. Entre las
        dos torres hay un pequeño jardín con un banco.
    """,
    "fr": """
        La rue était vide quand le train est entré en gare tôt le matin. Personne ne savait
        pourquoi il avait tant de retard ni ce qui était arrivé aux gens qui l'attendaient. Hier
        nous avons longtemps parlé du temps qu'il ferait et nous nous sommes demandé s'il ne
        valait pas mieux rester à la maison. La maison se trouve au bord de la ville, et de là
        on voit les champs jusqu'à la rivière. Je ne veux pas qu'elle s'inquiète pour cela, car
        rien n'est encore décidé. Entre les deux tours il y a un petit jardin avec un banc.
    """,
    "it": """
        La strada era vuota quando il treno entrò nella stazione di buon mattino. Nessuno sapeva
        perché fosse così in ritardo e che cosa fosse successo alla gente che lo aspettava. Ieri
        abbiamo parlato a lungo se il tempo sarebbe migliorato o se fosse meglio restare a casa.
        La casa si trova ai margini della città, e da lì si vedono i campi fino al fiume. Non
        voglio che lei si preoccupi per questo, perché non è ancora stato deciso niente. Tra le
        due torri c'è un piccolo giardino con una panchina.
    """,
    "nl": """
        De straat was leeg toen de trein vroeg in de ochtend het station binnenreed. Niemand
        wist waarom hij zo laat was en wat er gebeurd was met de mensen die op hem wachtten. We
        hebben gisteren lang gepraat over de vraag of het weer beter zou worden of dat we liever
        thuis moesten blijven. Het huis staat aan de rand van de stad, en vandaar zie je over de
        velden tot aan de rivier. Ik wil niet dat zij zich daar zorgen over maakt, want er is
        nog niets beslist. Tussen de twee torens ligt een kleine tuin met een bank.
    """,
}


def trigrams_of(text: str) -> list[str]:
    padded = f" {' '.join(_OTHER.sub(' ', text.lower()).split())} "
    return [padded[at : at + 3] for at in range(len(padded) - 2)]


@cache
def load_profiles() -> dict[str, dict[str, float]]:
    """For each language the logarithm of how likely trigrams are; "" stands for all others."""
    profiles = {}
    for language, sample in SAMPLES.items():
        counts = Counter(trigrams_of(sample))
        total = sum(counts.values()) + _UNSEEN * len(counts)
        profile = {trigram: math.log(count / total) for trigram, count in counts.items()}
        profiles[language] = {**profile, "": math.log(_UNSEEN / total)}
    return profiles


def language_of(text: str) -> str | None:
    """The code of the most likely language; None if the text is too short to tell."""
    trigrams = trigrams_of(text)
    if len(trigrams) < MIN_LETTERS:
        return None
    scores = {
        language: sum(profile.get(one, profile[""]) for one in trigrams)
        for language, profile in load_profiles().items()
    }
    return max(sorted(scores), key=scores.__getitem__)
