"""Documents per second against many tree patterns: shared matching, and XPath one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from penstock.lab.benchmarks._measuring import Result, peak_megabytes, progress, show
from penstock.lab.workloads import xmark
from penstock.views.documents import Document, parse_document
from penstock.views.evaluation import evaluate
from penstock.views.extras import load_lxml
from penstock.views.fast_matching import FastMatcher
from penstock.views.patterns import TreePattern

EXAMPLES = """
  penstock bench documents
  penstock bench documents --patterns 1000 --patterns 10000 --json
"""
COLUMNS = (
    "patterns",
    "states",
    "matches_per_document",
    "shared_per_s",
    "shared_with_parsing_per_s",
    "extracting_per_s",
    "xpath_per_s",
    "times_faster",
    "build_s",
)
_XPATH_EVALUATIONS = 40_000
"""So many evaluations are timed; 100,000 patterns over 50 documents would be millions."""


def documents(
    patterns: Annotated[
        list[int] | None, typer.Option(help="How many patterns; may be repeated.", min=1)
    ] = None,
    count: Annotated[int, typer.Option("--documents", help="Documents.", min=1)] = 50,
    repetitions: Annotated[int, typer.Option(help="Measurements of each figure.", min=1)] = 3,
    seed: Annotated[int, typer.Option(help="Chooses patterns and documents.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure which patterns match a document, all at once and one XPath after the other.

    `shared` is the matching of parsed documents; `with parsing` begins with bytes; `extracting`
    adds the results of every view that matches. `xpath` is lxml's compiled XPath, evaluated once
    per pattern; its expressions are compiled before. All are per second of CPU time on one core.
    """
    sizes = patterns or [1_000, 3_000, 10_000, 30_000, 100_000]
    with progress("generating patterns and documents"):
        views = xmark.unique_views(max(sizes), seed)
        texts = list(xmark.documents(count, seed))
    results = []
    for size in sizes:
        with progress(f"{size:,} patterns"):
            results.append(_measure(views[:size], texts, repetitions))
    lengths = sorted(map(len, texts))
    show(
        results,
        json,
        COLUMNS,
        document_bytes=lengths[len(lengths) // 2],
        peak_megabytes=peak_megabytes(),
    )


def _measure(views: Sequence[TreePattern], texts: Sequence[bytes], repetitions: int) -> Result:
    began = time.process_time()
    matcher = FastMatcher(views)
    build_s = time.process_time() - began
    parsed = [parse_document(text) for text in texts]
    found = [matcher.matching(document) for document in parsed]

    def match_all() -> None:
        for document in parsed:
            matcher.matching_array(document)

    def parse_and_match_all() -> None:
        for text in texts:
            matcher.matching_array(parse_document(text))

    def extract_some() -> None:
        for document, numbers in zip(parsed[:5], found[:5], strict=False):
            matcher.matching(document)
            for number in numbers:
                evaluate(views[number], document)

    shared = len(texts) / _best(match_all, repetitions)
    xpath = _xpath_rate(views, parsed, found)
    return {
        "patterns": len(views),
        "states": matcher.states,
        "documents": len(texts),
        "matches_per_document": sum(map(len, found)) / len(found),
        "shared_per_s": shared,
        "shared_with_parsing_per_s": len(texts) / _best(parse_and_match_all, repetitions),
        "extracting_per_s": min(5, len(texts)) / _best(extract_some, 1),
        "xpath_per_s": xpath,
        "times_faster": shared / xpath,
        "build_s": build_s,
    }


def _xpath_rate(
    views: Sequence[TreePattern], parsed: Sequence[Document], found: Sequence[list[int]]
) -> float:
    """Documents per second by one evaluation per view; checks that the answers are the same."""
    etree = load_lxml()
    compiled = [etree.XPath(f"boolean({xpath_of(view)})") for view in views]
    some = parsed[: max(1, _XPATH_EVALUATIONS // len(views))]
    spent = 0.0
    for document, numbers in zip(some, found, strict=False):
        tree: Any = document.root.getroottree()
        began = time.process_time()
        answers = [expression(tree) for expression in compiled]
        spent += time.process_time() - began
        if [number for number, answer in enumerate(answers) if answer] != numbers:
            raise AssertionError("shared matching and XPath disagree")
    return len(some) / spent


def xpath_of(view: TreePattern) -> str:
    """A view as XPath: what it returns is left out."""
    return str(view).replace("{val}", "").replace("{cont}", "")


def _best(work: Callable[[], None], repetitions: int) -> float:
    spent = []
    for _ in range(repetitions):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)


if __name__ == "__main__":
    typer.run(documents)
