"""Documents per second against many tree patterns: shared matching, and XPath one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from penstock.documents.document import Document, parse_document
from penstock.documents.evaluation import evaluate
from penstock.documents.fast_matching import FastMatcher
from penstock.documents.patterns import TreePattern
from penstock.errors import DocumentError
from penstock.lab.benchmarks._measuring import Result, peak_megabytes, progress, show
from penstock.lab.workloads import xmark
from penstock.xml_text import load_lxml

EXAMPLES = """
  penstock bench documents
  penstock bench documents --patterns 1000 --patterns 10000 --json
  penstock bench documents --patterns 1000 --documents 10 --hub
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
    "hub_per_s",
    "hub_notifications_per_document",
    "hub_subscribe_ms",
)
_XPATH_EVALUATIONS = 40_000
"""Maximum number of timed evaluations; 100,000 patterns over 50 documents would be millions."""


def documents(
    patterns: Annotated[
        list[int] | None, typer.Option(help="How many patterns; may be repeated.", min=1)
    ] = None,
    count: Annotated[int, typer.Option("--documents", help="Documents.", min=1)] = 50,
    repetitions: Annotated[int, typer.Option(help="Measurements of each figure.", min=1)] = 3,
    hub: Annotated[
        bool, typer.Option(help="Also send the documents through a Hub with so many subscriptions.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Chooses patterns and documents.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure which patterns match a document, all at once and one XPath after the other.

    `shared` is the matching of parsed documents; `with parsing` begins with bytes; `extracting`
    adds the results of every view that matches. `xpath` is lxml's compiled XPath, evaluated once
    per pattern; its expressions are compiled before. All are per second of CPU time on one core.
    `hub` is a Hub in memory with one XMLTABLE subscription per pattern: the documents are inserted
    into a table, and all subscribers are told.
    """
    sizes = patterns or [1_000, 3_000, 10_000, 30_000, 100_000]
    with progress("generating patterns and documents"):
        views = xmark.unique_views(max(sizes), seed)
        texts = list(xmark.documents(count, seed))
    results = []
    for size in sizes:
        with progress(f"{size:,} patterns"):
            results.append(_measure(views[:size], texts, repetitions))
            if hub:
                results[-1] |= _measure_hub(views[:size], texts)
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
                with suppress(DocumentError):  # too many rows, or too large: the view has none
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


def _measure_hub(views: Sequence[TreePattern], texts: Sequence[bytes]) -> Result:
    from penstock import Hub

    with Hub() as hub:
        hub.execute("CREATE TABLE news (id BIGINT PRIMARY KEY, doc XML)")
        began = time.process_time()
        mine = [hub.subscribe(xml_table_of(view)) for view in views]
        subscribed = time.process_time() - began
        hub.insert("news", {"id": -1, "doc": texts[0].decode()})  # compiles the remaining kernels
        hub.delete("news", {"id": -1})
        for one in mine:
            one.notifications()
        began = time.process_time()
        for number, text in enumerate(texts):
            hub.insert("news", {"id": number, "doc": text.decode()})
        spent = time.process_time() - began
        told = sum(len(one.notifications()) for one in mine)
    return {
        "hub_per_s": len(texts) / spent,
        "hub_notifications_per_document": told / len(texts),
        "hub_subscribe_ms": 1000 * subscribed / len(views),
    }


def xml_table_of(view: TreePattern) -> str:
    """A view as a subscription; branches that return nothing are conditions."""
    columns: list[str] = []

    def walk(node: int, path: str) -> None:
        one = view.nodes[node]
        if one.is_returned:
            kind = "XML" if one.cont else "VARCHAR"
            columns.append(f"c{node} {kind} PATH {_quoted(path or '.')}")
        for child in view.children[node]:
            if _returns(view, child):
                step = f"{view.nodes[child].axis.value}{_step(view, child)}"
                walk(child, f"{path or '.'}{step}")

    walk(0, "")
    rows = _quoted(f"{view.nodes[0].axis.value}{_step(view, 0)}")
    return (
        f"SELECT id, x.* FROM news, XMLTABLE({rows} PASSING doc COLUMNS {', '.join(columns)}) AS x"
    )


def _step(view: TreePattern, node: int) -> str:
    one = view.nodes[node]
    conditions = [f".{one.predicate}"] if one.predicate else []
    needed = [child for child in view.children[node] if not _returns(view, child)]
    conditions += [f".{view.nodes[child].axis.value}{_step(view, child)}" for child in needed]
    return one.label + "".join(f"[{condition}]" for condition in conditions)


def _returns(view: TreePattern, node: int) -> bool:
    below = view.children[node]
    return view.nodes[node].is_returned or any(_returns(view, child) for child in below)


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"


def _xpath_rate(
    views: Sequence[TreePattern], parsed: Sequence[Document], found: Sequence[list[int]]
) -> float:
    """Documents per second by one evaluation per view; checks that the results are equal."""
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
    """A view as XPath, without what it returns."""
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
