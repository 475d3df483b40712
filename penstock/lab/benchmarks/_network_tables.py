"""One node's tables, filled with many interests: how they are generated, filled and queried."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from random import Random

from penstock.catalog import Column, IntegerType, Relation
from penstock.lab.benchmarks._measuring import Result
from penstock.lab.benchmarks._poset import Poset
from penstock.messages import ANY_FILTER, EVERYONE, Message, Position
from penstock.predicates.boxes import box
from penstock.predicates.intervals import Interval, below
from penstock.routing.covering import CoverTable
from penstock.routing.interest_index import InterestIndex
from penstock.routing.interests import Interest, SpaceShape, concerns, name_of
from penstock.routing.merging.mergers import find_mergers

LINKS = 8
COLUMNS, VALUES, WIDEST = 4, 1_000, 200
BATCH = 256
"""Messages that pass a node at once."""
POSET_INTERESTS = 3_000
"""A poset compares each filter with hundreds of others: more take minutes to fill."""
SCANS = 5
CHECKS = 1_000
"""Number of covering checks."""

_TYPE = IntegerType()
RELATION = Relation(
    "events",
    (Column("id", _TYPE, False), *(Column(f"v{i}", _TYPE, False) for i in range(COLUMNS))),
    (0,),
)
SHAPE = SpaceShape(1, RELATION, 0)


def draw_interests(count: int, random: Random) -> list[Interest]:
    """Ranges over two or three of four columns."""
    found = []
    for _ in range(count):
        chosen = random.sample(range(1, COLUMNS + 1), random.choice((2, 3)))
        ranges = {}
        for column in chosen:
            low = random.randrange(VALUES)
            ranges[column] = Interval(below(low), below(low + random.randrange(1, WIDEST)))
        found.append(Interest(SHAPE.space, box(ranges), (ANY_FILTER,)))
    return found


def draw_messages(count: int, random: Random) -> list[Message]:
    return [
        Message(
            Position(number, 1),
            SHAPE.space,
            (number,),
            (number, *(random.randrange(VALUES) for _ in range(COLUMNS))),
            EVERYONE,
        )
        for number in range(count)
    ]


def measure_tables(size: int, messages: int) -> list[Result]:
    random = Random(1)
    interests, sent = draw_interests(size, random), draw_messages(messages, random)
    linked = [(i, interest, i % LINKS) for i, interest in enumerate(interests)]
    covered, covering_seconds, insertions = _covered(linked)
    merged = _merged(covered)
    index, nbytes = _filled(linked)
    results = [
        _routed("index", index, sent) | {"bytes_per_interest": round(nbytes / size)},
        _routed("index, covered", _filled(covered)[0], sent),
        _routed("index, covered and merged", _filled(merged)[0], sent),
        _per_subscription(index, sent),
        _scanned(linked, sent[:SCANS]),
        _in_poset(linked[:POSET_INTERESTS], sent),
        {
            "measure": "covering",
            "interests": size,
            "kept": len(covered),
            "us_per_insertion": round(covering_seconds / insertions * 1e6, 1),
            "us_per_check": _microseconds_per_check(index, draw_interests(CHECKS, random)),
        },
    ]
    for one in results:
        one.setdefault("interests", size)
    return results


def _filled(members: Sequence[tuple[int, Interest, int]]) -> tuple[InterestIndex, int]:
    """An index, and its bytes without the interests themselves."""
    index = InterestIndex(SHAPE)
    tracemalloc.start()
    index.add_many(members)
    nbytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return index, nbytes


def _microseconds_per_check(index: InterestIndex, interests: Sequence[Interest]) -> float:
    """Checks whether an interest of one link is covered, among the interests of all links."""
    index.covering(interests[0], 1)
    seconds = _timed(
        lambda: [index.covering(one, 1 << i % LINKS) for i, one in enumerate(interests)]
    )
    return round(seconds / len(interests) * 1e6, 1)


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return max(1e-9, time.process_time() - began)


def _routed(name: str, index: InterestIndex, sent: Sequence[Message]) -> Result:
    index.links(sent[:BATCH])
    batches = [sent[i : i + BATCH] for i in range(0, len(sent), BATCH)]
    seconds = _timed(lambda: [index.links(batch) for batch in batches])
    return _rate(name, len(index), len(sent), seconds)


def _per_subscription(index: InterestIndex, sent: Sequence[Message]) -> Result:
    index.names(sent[0])
    some = sent[: max(1, len(sent) // 10)]
    seconds = _timed(lambda: [index.names(message) for message in some])
    return _rate("per subscription", len(index), len(some), seconds)


def _scanned(members: Sequence[tuple[int, Interest, int]], sent: Sequence[Message]) -> Result:
    def scan() -> None:
        for message in sent:
            {link for _, i, link in members if concerns(message, i, RELATION)}

    return _rate("scan", len(members), len(sent), _timed(scan))


def _in_poset(members: Sequence[tuple[int, Interest, int]], sent: Sequence[Message]) -> Result:
    poset = Poset(RELATION)

    def fill() -> None:
        for _, interest, link in members:
            poset.add(interest, link)

    build = _timed(fill)
    some = sent[:200]
    seconds = _timed(lambda: [poset.links(message) for message in some])
    return _rate("Siena poset", len(members), len(some), seconds) | {
        "interests": len(members),
        "us_per_insertion": round(build / len(members) * 1e6, 1),
    }


def _rate(name: str, kept: int, count: int, seconds: float) -> Result:
    return {
        "measure": name,
        "kept": kept,
        "messages_per_s": round(count / seconds),
        "us_per_message": round(seconds / count * 1e6, 1),
    }


def _covered(
    members: Sequence[tuple[int, Interest, int]],
) -> tuple[list[tuple[int, Interest, int]], float, int]:
    """Covering is among the interests of one link. All but the last hundredth are inserted in bulk,
    and that hundredth one by one, which is timed."""
    kept: list[tuple[int, Interest, int]] = []
    seconds, insertions = 0.0, 0
    for link in range(LINKS):
        table = CoverTable({SHAPE.space: SHAPE})
        own = [(name_of(interest), interest) for _, interest, at in members if at == link]
        last = len(own) - max(1, len(own) // 100)
        table.insert_many(own[:last])
        seconds += _timed(lambda table=table, own=own[last:]: [table.insert(*o) for o in own])  # type: ignore[misc]
        insertions += len(own) - last
        kept += [(len(kept) + i, one, link) for i, (_, one) in enumerate(table.maximal())]
    return kept, seconds, insertions


def _merged(members: Sequence[tuple[int, Interest, int]]) -> list[tuple[int, Interest, int]]:
    """Perfectly."""
    found: list[tuple[int, Interest, int]] = []
    for link in range(LINKS):
        own = {number: interest for number, interest, at in members if at == link}
        mergers = find_mergers(own)
        gone = {part for merger in mergers for part in merger.parts}
        left = [interest for number, interest in own.items() if number not in gone]
        left += [merger.interest for merger in mergers]
        found += [(len(found) + i, interest, link) for i, interest in enumerate(left)]
    return found
