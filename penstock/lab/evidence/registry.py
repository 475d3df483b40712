"""Papers by name, loaded on first use: their experiments import half of Penstock."""

from __future__ import annotations

from importlib import import_module

from penstock.errors import PenstockError
from penstock.lab.evidence.model import Paper

PAPERS = ("aguilera1999", "li2005", "liu2007", "chandramouli2008", "karanasos2013")
ALL = "all"


def find_paper(name: str) -> Paper:
    if name not in PAPERS:
        raise PenstockError(
            f"no paper is called {name!r}", hint=f"There are {', '.join(PAPERS)}, and {ALL}."
        )
    paper = import_module(f"penstock.lab.evidence.papers.{name}").PAPER
    assert isinstance(paper, Paper)
    return paper


def find_papers(name: str) -> list[Paper]:
    """One paper, or all of them."""
    return [find_paper(one) for one in (PAPERS if name == ALL else (name,))]
