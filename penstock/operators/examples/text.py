"""What a text is about to a machine: its language, and patterns in it."""

from __future__ import annotations

import re

from penstock.operators.examples.choices import one_of
from penstock.operators.examples.languages import SAMPLES, language_of, load_profiles
from penstock.operators.functions import operator
from penstock.operators.interface import Argument, Output
from penstock.operators.value_types import VARCHAR

TEXT = Argument("text", VARCHAR)
MAX_FOUND = 100
"""Of one pattern in one text."""

# Without nested repetitions: their time is linear in the text, whatever it contains.
PATTERNS = {
    "date": re.compile(r"\b\d{4}-\d{2}-\d{2}\b"),
    "email": re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}\b"),
    "hashtag": re.compile(r"(?<!\w)#\w{1,64}"),
    "url": re.compile(r"\bhttps?://[^\s<>\"]{1,500}"),
}


@operator(
    "inLanguage",
    [TEXT, Argument("language", VARCHAR, constant=True)],
    set_up=load_profiles,
    check_constants=one_of(language=SAMPLES),
    cost_seconds=1e-4,
)
def in_language(text: str, language: str) -> bool | None:
    """Whether a text is in a language; unknown if it is too short to tell."""
    found = language_of(text)
    return None if found is None else found == language


@operator(
    "languageOf",
    [TEXT],
    outputs=[Output("language", VARCHAR)],
    set_up=load_profiles,
    cost_seconds=1e-4,
)
def detect_language(text: str) -> list[tuple[str]] | None:
    """The code of the language that a text is in."""
    found = language_of(text)
    return None if found is None else [(found,)]


@operator(
    "patternIn",
    [TEXT, Argument("pattern", VARCHAR, constant=True)],
    outputs=[Output("found", VARCHAR)],
    check_constants=one_of(pattern=PATTERNS),
    cost_seconds=1e-5,
)
def find_pattern(text: str, pattern: str) -> list[tuple[str]]:
    """What in a text looks like an e-mail address, a date, a link; the first hundred of them."""
    found = dict.fromkeys(match.group() for match in PATTERNS[pattern].finditer(text))
    return [(one,) for one in list(found)[:MAX_FOUND]]
