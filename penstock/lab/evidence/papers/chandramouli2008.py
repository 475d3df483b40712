"""Chandramouli and Yang: joins, end to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from penstock.lab.evidence.existing import ExistingExperiment
from penstock.lab.evidence.model import Claim, Item, Paper, Plot, Report, Row, Size
from penstock.lab.evidence.papers import _chandramouli2008_claims as claims
from penstock.lab.evidence.papers import _chandramouli2008_network_claims as network_claims
from penstock.lab.evidence.papers import _chandramouli2008_runs as runs
from penstock.lab.evidence.papers._chandramouli2008_runs import EXTENTS, Extent, Find
from penstock.lab.evidence.scheme_runs import NETWORKS, Repeated

Claims = Callable[[str], Sequence[Claim]]
TRAFFIC = "kB per event between overlay nodes"
COLUMNS = ("series", "x", "ours", "interval_95", "overlay_hops", "server_stress_bytes", "arrivals")


def _on_networks(
    name: str,
    title: str,
    find: Find,
    xs: Callable[[Extent], Sequence[object]],
    found: Claims,
    plot: Plot,
    seconds: tuple[float, float],
    *,
    figure: str = "traffic_bytes",
) -> Iterator[Item]:
    """An item for the CAN and one for the CBN; both use the same run."""
    for network in NETWORKS:

        def experiment(size: Size, report: Report, network: str = network) -> list[Row]:
            chosen = xs(EXTENTS[size])
            return list(runs.figure_rows(find, chosen, network, figure, size, report))

        yield _item(name, title, network, experiment, found(network), plot, seconds)


def _item(
    name: str,
    title: str,
    network: str,
    experiment: Callable[[Size, Report], Sequence[Row]],
    found: Sequence[Claim],
    plot: Plot,
    seconds: tuple[float, float],
    columns: tuple[str, ...] = COLUMNS,
) -> Item:
    spent = seconds if network in ("", NETWORKS[0]) else (0.0, 0.0)
    return Item(
        f"{name}, {network}" if network else name,
        f"{title} ({network})" if network else title,
        experiment,
        columns,
        tuple(found),
        plot,
        dict(zip(Size, spent, strict=True)),
        sizes={size: _extent_text(EXTENTS[size]) for size in Size},
    )


def _extent_text(extent: Extent) -> str:
    effort = extent.effort
    return (
        f"{extent.subscriptions[0]:,} subscriptions, {effort.nodes:,} nodes,"
        f" {effort.seeds} x {effort.events} events"
    )


def _by_count(size: Size, x: object) -> Repeated:
    return runs.by_subscriptions(size, int(str(x)))


def _stocks_by_count(size: Size, x: object) -> Repeated:
    return runs.by_subscriptions(size, int(str(x)), are_stocks=True)


def _by_r_rows(size: Size, x: object) -> Repeated:
    return runs.by_rows(size, int(str(x)), EXTENTS[size].tables.s_rows)


def _by_s_rows(size: Size, x: object) -> Repeated:
    return runs.by_rows(size, EXTENTS[size].tables.r_rows, int(str(x)))


def _by_payload(size: Size, x: object) -> Repeated:
    return runs.by_payload(size)[int(str(x))]


def _by_overlap(size: Size, x: object) -> Repeated:
    return runs.by_overlap(size, int(str(x)))


def _by_mix(star: bool, heavy_facts: bool) -> Find:
    return lambda size, _: runs.by_mix(size, star, heavy_facts)


def _processing(size: Size, report: Report) -> list[Row]:
    extent = EXTENTS[size]
    pairs = [(count, count, extent.tables.s_rows) for count in extent.subscriptions]
    return runs.processing_rows(pairs, size, report)


def _processing_by_output(size: Size, report: Report) -> list[Row]:
    extent = EXTENTS[size]
    pairs = [(rows, extent.subscriptions[0], rows) for rows in extent.s_rows]
    return runs.processing_rows(pairs, size, report)


def _tables() -> Iterator[Item]:
    for network in NETWORKS:

        def stress(size: Size, report: Report, network: str = network) -> list[Row]:
            return runs.stress_rows(network, size, report)

        yield _item(
            "table 3",
            "Average server stress (kB)",
            network,
            stress,
            claims.table_3(network),
            _count_plot("kB per event from the server"),
            (0, 0),
            ("series", "x", "ours", "interval_95", "paper"),
        )
    yield _item(
        "table 4",
        "Average description size (bytes)",
        "",
        runs.description_rows,
        claims.TABLE_4,
        _count_plot("bytes per description"),
        (0, 0),
        ("series", "x", "ours", "interval_95", "paper"),
    )


def _count_plot(y_label: str) -> Plot:
    return Plot("x", "ours", x_label="subscriptions", y_label=y_label, log_y=True)


def _plot(x_label: str, y_label: str = TRAFFIC, *, log_x: bool = False) -> Plot:
    return Plot("x", "ours", x_label=x_label, y_label=y_label, log_y=True, log_x=log_x)


def _repositories() -> Iterator[Item]:
    places = (
        ("figure 11", "Network traffic; increasing repository size", 0, "traffic_bytes", TRAFFIC),
        (
            "section 6.2",
            "Server stress by repository size",
            0,
            "server_stress_bytes",
            "kB per event",
        ),
        ("figure 12", "Hop latency; increasing repository size", 1, "hop_latency", "overlay hops"),
    )
    found = {
        "figure 11": network_claims.FIGURE_11,
        "section 6.2": network_claims.STRESS,
        "figure 12": network_claims.FIGURE_12,
    }
    for name, title, which, figure, label in places:
        for network in NETWORKS:

            def experiment(
                size: Size,
                report: Report,
                which: int = which,
                network: str = network,
                figure: str = figure,
            ) -> list[Row]:
                r_rows = EXTENTS[size].cached_r_rows[which]
                return runs.repository_rows(r_rows, network, figure, size, report)

            plot = Plot("x", "ours", x_label="repository entries", y_label=label)
            seconds = (6.0, 500.0) if figure != "server_stress_bytes" else (0.0, 0.0)
            yield _item(name, title, network, experiment, found[name], plot, seconds)


def _mixes() -> Iterator[Item]:
    plot = Plot("x", "ours", x_label="", y_label=TRAFFIC)
    yield from _on_networks(
        "figure 13",
        "Network traffic; multi-way join mix, general schema",
        _by_mix(False, False),
        lambda _: ("general schema",),
        lambda _: network_claims.FIGURE_13,
        plot,
        (12, 1_200),
    )
    for heavy, label in ((False, "facts without payload"), (True, "facts with payload")):
        yield from _on_networks(
            f"figure 14, {label}",
            f"Network traffic; multi-way join mix, star schema, {label}",
            _by_mix(True, heavy),
            lambda _, label=label: (label,),  # type: ignore[misc]
            lambda network, heavy=heavy: network_claims.figure_14(network, heavy=heavy),  # type: ignore[misc]
            plot,
            (6, 900),
        )


_PAYLOAD = ExistingExperiment(
    "select-with-payload",
    {
        Size.SMALL: {"subscriptions": 20, "events": 60},
        Size.FULL: {"subscriptions": 500, "events": 5_000},
    },
    {Size.SMALL: 4, Size.FULL: 300},
)

PAPER = Paper(
    "chandramouli2008",
    "End-to-End Support for Joins in Large-Scale Publish/Subscribe Systems",
    "B. Chandramouli, J. Yang; VLDB 2008",
    (
        *_on_networks(
            "figure 6",
            "Network traffic; increasing number of subscriptions",
            _by_count,
            lambda extent: extent.subscriptions,
            claims.figure_6,
            _plot("subscriptions"),
            (12, 2_400),
        ),
        *_on_networks(
            "figure 17",
            "Network hops; increasing number of subscriptions",
            _by_count,
            lambda extent: extent.subscriptions,
            claims.figure_17,
            _plot("subscriptions", "overlay hops per event"),
            (0, 0),
            figure="overlay_hops",
        ),
        *_on_networks(
            "figure 20",
            "Network traffic; considering last hop",
            _by_count,
            lambda extent: extent.subscriptions,
            lambda _: claims.FIGURE_20,
            _plot("subscriptions", "kB per event, last hop included"),
            (0, 0),
            figure="traffic_with_last_hop_bytes",
        ),
        *_tables(),
        _item(
            "figure 5",
            "Processing time; increasing number of subscriptions (output not written)",
            "",
            _processing,
            claims.FIGURE_5,
            _count_plot("ms of CPU per event"),
            (6, 900),
            ("series", "x", "ours", "interval_95", "output_kb"),
        ),
        _item(
            "figure 8",
            "Processing time; increasing relative join output rate (output not written)",
            "",
            _processing_by_output,
            claims.FIGURE_8,
            _plot("rows of S", "ms of CPU per event"),
            (6, 300),
            ("series", "x", "ours", "interval_95", "output_kb"),
        ),
        *_on_networks(
            "figure 7",
            "Network traffic; increasing database size",
            _by_r_rows,
            lambda extent: extent.r_rows,
            claims.figure_7,
            _plot("rows of R"),
            (6, 300),
        ),
        *_on_networks(
            "figure 9",
            "Network traffic; increasing relative join output rate",
            _by_s_rows,
            lambda extent: extent.s_rows,
            claims.figure_9,
            _plot("rows of S"),
            (6, 300),
        ),
        *_on_networks(
            "figure 10",
            "Network traffic; stock events",
            _stocks_by_count,
            lambda extent: extent.subscriptions,
            claims.figure_10,
            _plot("subscriptions"),
            (6, 1_500),
        ),
        *_on_networks(
            "figure 18",
            "Network traffic; increasing payload size",
            _by_payload,
            lambda extent: extent.payloads,
            lambda _: claims.FIGURE_18,
            _plot("bytes of payload", log_x=True),
            (0, 0),
        ),
        *_on_networks(
            "figure 19",
            "Network traffic; increasing subscription overlap",
            _by_overlap,
            lambda extent: extent.overlaps,
            lambda network: (
                *claims.FIGURE_19,
                replace(
                    claims.REF_J_IS_UNAFFECTED, gap=claims.ONLY_WANTED if network == "CBN" else ""
                ),
            ),
            _plot("x (centres deviate by 13,000 - 2x and 7,500 - x)"),
            (8, 900),
        ),
        *_repositories(),
        *_mixes(),
        replace(
            _PAYLOAD.item("appendix I", "Selections with payloads sent apart"),
            claims=claims.APPENDIX_I,
        ),
    ),
    (
        "What the paper leaves open of the workload is said in penstock/lab/workloads/joins.py.",
        (
            "Subscriptions stay the same while events, tables and the centres of their values are"
            " drawn with one seed after the other, as published (in figure 19, which compares"
            " different subscriptions, they are drawn again too); an event is a row of R that"
            " comes, or the oldest one of its join value that goes."
        ),
        (
            "Bytes are those of the wire format. A row that goes takes no payload along, in any"
            " scheme; a message to one recipient names it in place of a region."
        ),
        (
            "The CAN divides each space by medians of the subscriptions in it; the CBN is the"
            " shortest-path tree of the overlay from the server. Both lie over a random graph with"
            " power-law degrees in place of INET (docs/notes/networks.md)."
        ),
        (
            "Figure 10: the stock data is not to be had. Price/earnings ratios wander, and ratings"
            " are drawn and perturbed, with the published numbers of stocks, ratings and join rows"
            " per event."
        ),
        (
            "Figures 5 and 8: CPU time of computing messages in Python and numpy; writing them to"
            " disk, which the paper includes, is left out, and the kilobytes are shown beside it."
        ),
        (
            "Figures 13 and 14: a tenth of the published 170,000 subscriptions, because each is"
            " planned and bound as a query; drawn anew with each seed, as are tables and inserts."
        ),
        (
            "1,000,000 subscriptions (the last point of figures 5, 6 and 17) are left out: networks"
            " of that size take too long to build here."
        ),
    ),
)
