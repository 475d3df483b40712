"""Runs the steps of a batch on packed groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.joins.packed.groups import GroupRun, PackedGroups
from penstock.joins.packed.interface import JoinMessages, PositionedMessages, RowReader
from penstock.joins.packed.steps_codec import SentSteps
from penstock.joins.points import SpacePoints
from penstock.joins.scheme import Scheme
from penstock.kernels.arrays import Ints
from penstock.kernels.byte_spans import Spans, gather
from penstock.kernels.packed_values import Packed
from penstock.messages import AnyMessage
from penstock.packing import pack
from penstock.spaces import Edge


@dataclass(frozen=True, slots=True)
class PackedJoins:
    """The fast gear of a scheme, and its plain gear for spaces that kernels do not support."""

    scheme: Scheme
    rows: RowReader
    store: PackedGroups
    spaces_on: Callable[[Edge], Sequence[SpacePoints]]
    is_fast: Callable[[SpacePoints], bool]
    """Whether the fast gear handles a space."""

    def run(self, sent: SentSteps, edges: Mapping[str, Edge]) -> JoinMessages:
        """Run the steps of these edges, and store the groups as they are afterwards."""
        packed: list[tuple[int, PositionedMessages]] = []
        others: list[AnyMessage] = []
        for number, name in enumerate(sent.edges):
            if name in edges:
                run = GroupRun.of(edges[name], sent.data, *sent.of_edge(number), self.store)
                run.store(self.store)
                packed += self._advance(run, others)
        return JoinMessages(_in_order(packed), others)

    def _advance(
        self, run: GroupRun, others: list[AnyMessage]
    ) -> Sequence[tuple[int, PositionedMessages]]:
        """The packed messages, by space; messages of the plain gear are appended to `others`."""
        spaces, fast = self.spaces_on(run.edge), self.scheme.packed
        taken = [] if fast is None else [one for one in spaces if self.is_fast(one)]
        plain = [points for points in spaces if points not in taken]
        if plain:
            for group, steps in run.objects():
                others += self.scheme.run(group, steps, plain)
        return [] if fast is None else fast.advance(run, taken, self.rows)


def _in_order(found: list[tuple[int, PositionedMessages]]) -> PositionedMessages | None:
    """The messages of several spaces in one order: by position, then by the packed space id, the
    first bytes in which messages of one position differ."""
    found.sort(key=lambda one: pack(one[0]))
    parts = [one for _, one in found if len(one.offsets)]
    if len(parts) < 2:
        return parts[0] if parts else None
    offsets, steps = (np.concatenate([part[i] for part in parts]) for i in range(2))
    order = np.lexsort((steps, offsets))
    data = np.concatenate([part.messages.data for part in parts])
    gathered = gather(data, _spans([part.messages for part in parts]).take(order))
    return PositionedMessages(offsets[order], steps[order], Packed(*gathered))


def _spans(parts: Sequence[Packed]) -> Spans:
    """The spans of the values of all parts after concatenation."""
    sizes: Ints = np.concatenate([np.diff(part.ends, prepend=0) for part in parts])
    ends = np.cumsum(sizes)
    return Spans(ends - sizes, ends)
