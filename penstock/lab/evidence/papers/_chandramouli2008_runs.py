"""The runs behind the figures of Chandramouli and Yang: several figures share a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from penstock.joins.accounting import NUMBER_BYTES
from penstock.lab.evidence.model import Report, Row, Size
from penstock.lab.evidence.multiway_runs import Mix, compare_mix
from penstock.lab.evidence.payload_runs import compare_repositories
from penstock.lab.evidence.scheme_runs import (
    SEMIJOINS,
    Effort,
    Repeated,
    Subscribers,
    Tables,
    compare_layouts,
    compare_schemes,
    summary_row,
)
from penstock.lab.experiments._joins import Sent, send
from penstock.lab.experiments.joins_description_size import DIAGONAL, PAPER_BYTES
from penstock.lab.experiments.joins_server_output import PAPER_KB
from penstock.lab.workloads.joins import JoinWorkload

KILO = 1_000.0
SCHEME_NAMES = {
    **SEMIJOINS,
    "Enum-J": "enum-j",
    "Ref-J": "ref-j",
    "Ref-J+": "ref-j+",
}


@dataclass(frozen=True, slots=True)
class Extent:
    """The parameters of a size. The first number of subscriptions is that of all other figures."""

    effort: Effort
    subscriptions: tuple[int, ...]
    tables: Tables
    r_rows: tuple[int, ...]
    s_rows: tuple[int, ...]
    payloads: tuple[int, ...]
    overlaps: tuple[int, ...]
    cached_r_rows: tuple[int, int]
    """For figures 11 and 12."""
    cached_events: int
    repositories: tuple[int, ...]
    server_events: int
    mix: int
    """Subscriptions of figures 13 and 14."""
    mix_effort: Effort
    star_share: float


EXTENTS = {
    Size.SMALL: Extent(
        Effort(30, 300, 60, 3),
        (1_000, 4_000),
        Tables(2_000, 1_000),
        (300, 2_000, 4_000),
        (100, 1_000, 2_000),
        (1, 100, 10_000),
        (0, 6_000),
        (300, 100),
        100,
        (0, 50, 400),
        20,
        340,
        Effort(30, 300, 40, 2),
        0.1,
    ),
    Size.FULL: Extent(
        Effort(1_000, 20_000, 40, 5),
        (100_000, 300_000, 500_000),
        Tables(),
        (1_000, 16_000, 31_000),
        (100, 5_100, 10_100),
        (1, 100, 10_000, 100_000),
        (0, 2_000, 4_000, 6_000),
        (500, 200),
        200,
        (0, 100, 400, 1_600, 3_100),
        25,
        17_000,
        Effort(1_000, 20_000, 200, 5),
        1.0,
    ),
}
HEADLINE_PAYLOAD = 100


@cache
def base(size: Size) -> Subscribers:
    """The subscriptions of all figures that vary something else."""
    extent = EXTENTS[size]
    return Subscribers(extent.subscriptions[0], extent.effort)


@cache
def by_payload(size: Size) -> dict[int, Repeated]:
    """The headline setting, with any payload."""
    extent = EXTENTS[size]
    return compare_schemes(base(size), extent.tables, {HEADLINE_PAYLOAD, *extent.payloads})


@cache
def by_subscriptions(size: Size, count: int, are_stocks: bool = False) -> Repeated:
    extent = EXTENTS[size]
    is_base = count == extent.subscriptions[0]
    if is_base and not are_stocks:
        return by_payload(size)[HEADLINE_PAYLOAD]
    subscribers = base(size) if is_base else _larger(size, count)
    tables = extent.tables
    if are_stocks:
        tables = Tables(tables.r_rows, 2_300 if size is Size.FULL else 500, True)
    return compare_schemes(subscribers, tables)[HEADLINE_PAYLOAD]


_kept: dict[tuple[Size, int], Subscribers] = {}


def _larger(size: Size, count: int) -> Subscribers:
    """Only one is kept: networks of 500,000 subscriptions take gigabytes."""
    if (size, count) not in _kept:
        _kept.clear()
        _kept[size, count] = Subscribers(count, EXTENTS[size].effort)
    return _kept[size, count]


@cache
def by_rows(size: Size, r_rows: int, s_rows: int) -> Repeated:
    tables = Tables(r_rows, s_rows)
    if tables == EXTENTS[size].tables:
        return by_payload(size)[HEADLINE_PAYLOAD]
    return compare_schemes(base(size), tables)[HEADLINE_PAYLOAD]


@cache
def by_overlap(size: Size, x: int) -> Repeated:
    """Standard deviations of the centres as in appendix J; subscriptions are drawn again for every
    seed, because settings are compared that have other subscriptions anyway."""
    extent = EXTENTS[size]
    count, effort = extent.subscriptions[0], extent.effort
    spreads = (13_000.0 - 2 * x, 7_500.0 - x)
    drawn = (Subscribers(count, effort, spreads, seed) for seed in range(1, effort.seeds + 1))
    return compare_layouts(drawn, extent.tables, HEADLINE_PAYLOAD)


@cache
def by_repository(size: Size, r_rows: int) -> dict[int | None, Repeated]:
    extent = EXTENTS[size]
    return compare_repositories(base(size), r_rows, extent.cached_events, extent.repositories)


@cache
def by_mix(size: Size, star: bool, heavy_facts: bool) -> Repeated:
    extent = EXTENTS[size]
    return compare_mix(Mix(extent.mix, star, heavy_facts, extent.star_share), extent.mix_effort)


@cache
def at_server(size: Size, subscriptions: int, s_rows: int) -> dict[str, list[Sent]]:
    """The output of each scheme for inserts into R, by seed; without a network."""
    extent = EXTENTS[size]
    found: dict[str, list[Sent]] = {name: [] for name in SCHEME_NAMES}
    for seed in range(1, extent.effort.seeds + 1):
        workload = JoinWorkload(
            subscriptions, extent.tables.r_rows, s_rows, seed=seed, interest_seed=1
        )
        steps = list(workload.inserts(0, extent.server_events))
        for name, scheme in SCHEME_NAMES.items():
            if not found[name]:
                send(workload, scheme, steps[:1])  # compiles kernels, and builds indexes
            found[name].append(send(workload, scheme, steps))
    return found


Find = Callable[[Size, object], Repeated]


def figure_rows(
    find: Find, xs: Sequence[object], network: str, figure: str, size: Size, report: Report
) -> Iterator[Row]:
    """One figure of every scheme at each x; bytes as kilobytes."""
    scale = KILO if figure.endswith("bytes") else 1.0
    for x in xs:
        report(f"{figure} at {x}")
        yield from find(size, x).rows(network, x, figure, scale)


def stress_rows(network: str, size: Size, report: Report) -> list[Row]:
    """Table 3, with the published kilobytes."""
    counts = EXTENTS[size].subscriptions
    rows = list(
        figure_rows(
            lambda s, x: by_subscriptions(s, int(str(x))),
            counts,
            network,
            "server_stress_bytes",
            size,
            report,
        )
    )
    if size is Size.FULL:
        for row in rows:
            published = PAPER_KB.get(str(row["series"]).lower(), ())
            row["paper"] = dict(zip(counts, published, strict=False)).get(int(str(row["x"])))
    return rows


def description_rows(size: Size, report: Report) -> list[Row]:
    """Table 4: bytes per description, over the messages that have one."""
    extent = EXTENTS[size]
    rows: list[Row] = []
    for count in extent.subscriptions:
        report(f"{count:,} subscriptions")
        for name, runs in at_server(size, count, extent.tables.s_rows).items():
            if not name.startswith("Ref-SJ"):
                continue
            scheme = SCHEME_NAMES[name]
            point_bytes = NUMBER_BYTES * (1 if scheme in DIAGONAL else 2)
            values = [run.points * point_bytes / max(1, run.descriptions) for run in runs]
            published = PAPER_BYTES.get(scheme, ()) if size is Size.FULL else ()
            paper = dict(zip(extent.subscriptions, published, strict=False)).get(count)
            rows.append(summary_row(name, count, values) | {"paper": paper})
    return rows


def processing_rows(pairs: Sequence[tuple[int, int, int]], size: Size, report: Report) -> list[Row]:
    """Figures 5 and 8: milliseconds of CPU per insert; by x, subscriptions and rows of S."""
    rows: list[Row] = []
    for x, subscriptions, s_rows in pairs:
        report(f"{subscriptions:,} subscriptions, {s_rows:,} rows of S")
        for name, runs in at_server(size, subscriptions, s_rows).items():
            values = [1_000 * run.cpu_seconds / run.events for run in runs]
            output = sum(run.bytes for run in runs) / sum(run.events for run in runs) / KILO
            rows.append(summary_row(name, x, values) | {"output_kb": round(output, 3)})
    return rows


def repository_rows(
    r_rows: int, network: str, figure: str, size: Size, report: Report
) -> list[Row]:
    """With CN*, by entries of the repository; without it, the same value at all of them."""
    report(f"repositories, R with {r_rows} rows")
    found = by_repository(size, r_rows)
    scale = KILO if figure.endswith("bytes") else 1.0
    rows: list[Row] = []
    for entries in EXTENTS[size].repositories:
        for key, suffix in ((entries, "CN*"), (None, "CN")):
            found_rows = found[key].rows(network, entries, figure, scale)
            rows += [row | {"series": f"{row['series']}, {suffix}"} for row in found_rows]
    return rows
