"""CAN: nodes own zones of subscription space; a message goes to every zone that its region meets.

Each space of the system is divided among all nodes. A subscription is stored where its points are,
so the node that owns a zone knows all points in it. A message is routed from the server's zone to a
place that all boxes of its region share, and from there, along the reverse of the paths to that
place, to all zones that the region meets: each of them receives it once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.errors import NetworkError
from penstock.messages import Message, Point
from penstock.network.journeys import Arrival, Hop, Journey
from penstock.network.residents import Residents
from penstock.network.zones import CanSpace, Coordinates, Region, Zone, groups_with_common_place
from penstock.predicates.intervals import Cut
from penstock.routing.interests import Shapes, shape_of

MESSAGE_LOAD = 0.1
"""Load of a message that a zone has handled, in points."""


@dataclass
class OwnedZone:
    """A zone, its owner, its neighbours and its points."""

    zone: Zone
    owner: int
    neighbours: set[int] = field(default_factory=set)
    points: dict[tuple[int, int], tuple[Coordinates, Point]] = field(default_factory=dict)
    """By subscription and number of the point."""
    handled: int = 0
    splits: tuple[int, ...] = ()
    """By dimension: how often the zone was divided along it."""

    @property
    def load(self) -> float:
        return len(self.points) + MESSAGE_LOAD * self.handled


class SpaceZones:
    """All zones of one space. Routing decisions use one zone and its neighbours only; the list of
    all zones is for nodes that join, and for tests."""

    def __init__(self, space: CanSpace, owner: int) -> None:
        self.space = space
        self.zones: dict[int, OwnedZone] = {0: OwnedZone(space.whole(), owner)}
        self._next = 1

    def at(self, place: Coordinates) -> int:
        """The zone that contains a place, found by routing there from any zone."""
        number = next(iter(self.zones))
        while (following := self.towards(number, place)) is not None:
            number = following
        return number

    def owned_by(self, node: int) -> list[int]:
        return [i for i, one in self.zones.items() if one.owner == node]

    def join(self, node: int) -> None:
        """A node takes half of the zone with the highest load that can be divided."""
        for number in sorted(self.zones, key=lambda i: (-self.zones[i].load, i)):
            cut = _best_cut(self.zones[number])
            if cut is not None:
                self._divide(number, *cut, node)
                return
        # No zone can be divided: the node gets one later, when there are points.

    def leave(self, node: int) -> None:
        """Its zones go to neighbours: to one with which they form a box, or to the least loaded."""
        for number in self.owned_by(node):
            gone = self.zones[number]
            others = [i for i in gone.neighbours if self.zones[i].owner != node]
            if not others:
                raise NetworkError("the last node of a content-addressable network cannot leave")
            heir = min(others, key=lambda i: (self._joined(i, gone) is None, self.zones[i].load, i))
            whole = self._joined(heir, gone)
            gone.owner = self.zones[heir].owner
            if whole is not None:
                self._absorb(heir, number, whole)

    def towards(self, number: int, place: Coordinates) -> int | None:
        """The next zone on the path to a place; None if this zone contains it."""
        own = self.zones[number]
        if own.zone.contains(place):
            return None
        return next(i for i in own.neighbours if self.zones[i].zone.leads_to(own.zone, place))

    def onwards(self, number: int, place: Coordinates, regions: Sequence[Region]) -> list[int]:
        """The neighbours that a region meets and whose path to the place crosses this zone."""
        own = self.zones[number].zone
        return [
            i
            for i in sorted(self.zones[number].neighbours)
            if own.leads_to(self.zones[i].zone, place)
            and any(self.zones[i].zone.meets(region) for region in regions)
        ]

    def _joined(self, number: int, gone: OwnedZone) -> Zone | None:
        return self.zones[number].zone.joined(gone.zone)

    def _divide(self, number: int, dimension: int, at: Cut, node: int) -> None:
        old = self.zones[number]
        first, second = old.zone.split(dimension, at)
        fresh, self._next = self._next, self._next + 1
        old.splits = tuple(n + (d == dimension) for d, n in enumerate(_splits(old)))
        new = OwnedZone(second, node, handled=old.handled // 2, splits=old.splits)
        old.zone, old.handled = first, old.handled // 2
        new.points = {k: one for k, one in old.points.items() if second.contains(one[0])}
        old.points = {k: one for k, one in old.points.items() if k not in new.points}
        around = old.neighbours | {number}
        self.zones[fresh] = new
        self._reconnect({number, fresh}, around)

    def _absorb(self, heir: int, number: int, whole: Zone) -> None:
        gone, own = self.zones.pop(number), self.zones[heir]
        own.zone = whole
        own.points.update(gone.points)
        own.handled += gone.handled
        around = (own.neighbours | gone.neighbours) - {number, heir}
        for other in around:
            self.zones[other].neighbours.discard(number)
        self._reconnect({heir}, around)

    def _reconnect(self, changed: set[int], around: set[int]) -> None:
        """Recompute the neighbours of changed zones, among them and the zones around."""
        for number in changed:
            self.zones[number].neighbours = set()
            for other in (around | changed) - {number}:
                touches = self.zones[number].zone.touches(self.zones[other].zone)
                mine, its = self.zones[number].neighbours, self.zones[other].neighbours
                (mine.add if touches else mine.discard)(other)
                (its.add if touches else its.discard)(number)


def _best_cut(zone: OwnedZone) -> tuple[int, Cut] | None:
    """A cut that divides the points of a zone: along the dimension that was cut least often, if it
    leaves a quarter on either side, so that zones do not degenerate; else the most even one."""
    best: tuple[tuple[bool, int, float], int, Cut] | None = None
    half, splits = len(zone.points) / 2, _splits(zone)
    for dimension in range(len(zone.zone.low)):
        places = sorted(place[dimension] for place, _ in zone.points.values())
        for at in dict.fromkeys(places[len(places) // 2 : len(places) // 2 + 1] + places[-1:]):
            if at <= zone.zone.low[dimension]:
                continue
            below_it = sum(place < at for place in places)
            uneven = abs(below_it - half)
            rank = (uneven > half / 2, 0 if uneven > half / 2 else splits[dimension], uneven)
            if below_it and (best is None or rank < best[0]):
                best = (rank, dimension, at)
    return None if best is None else best[1:]


def _splits(zone: OwnedZone) -> tuple[int, ...]:
    return zone.splits or (0,) * len(zone.zone.low)


class CanNetwork:
    """`columns` has, for each space, the base columns that are dimensions."""

    def __init__(
        self, shapes: Shapes, columns: Mapping[int, Sequence[int]], nodes: int, server: int = 0
    ) -> None:
        self.server = server
        self.nodes = nodes
        self._shapes = shapes
        self._columns = {space: tuple(of) for space, of in columns.items()}
        self.spaces: dict[int, SpaceZones] = {
            space: SpaceZones(CanSpace(shape, self._columns.get(space, ())), server)
            for space, shape in shapes.items()
        }
        self._joined = [server]
        self._residents: dict[tuple[int, int], Residents] = {}
        """By space and zone; built on first use, dropped when the zone changes."""
        self._entries: dict[int, int] = {}
        """By space: the server's zone at which messages enter, until nodes join or leave. There is
        always one: the server owns the first zone, and never leaves."""
        self._points: dict[int, list[Point]] = {}

    def join_all(self) -> None:
        """All nodes join, one after the other; best after the first subscriptions."""
        for node in range(self.nodes):
            if node not in self._joined:
                self.join(node)

    def join(self, node: int) -> None:
        self._joined.append(node)
        for zones in self.spaces.values():
            zones.join(node)
        self._residents.clear()
        self._entries.clear()

    def leave(self, node: int) -> None:
        if node == self.server:
            raise NetworkError("the server's node does not leave its network")
        for zones in self.spaces.values():
            zones.leave(node)
        self._joined.remove(node)
        self._residents.clear()
        self._entries.clear()

    def subscribe(self, subscription: int, points: Sequence[Point], node: int) -> None:
        self.unsubscribe(subscription)
        self._points[subscription] = list(points)
        for number, point in enumerate(points):
            shape_of(self._shapes, point.space)
            zones = self.spaces[point.space]
            place = zones.space.place(point)
            zone = zones.at(place)
            zones.zones[zone].points[subscription, number] = (place, point)
            self._residents.pop((point.space, zone), None)

    def unsubscribe(self, subscription: int) -> None:
        for number, point in enumerate(self._points.pop(subscription, ())):
            zones = self.spaces[point.space]
            zone = zones.at(zones.space.place(point))
            del zones.zones[zone].points[subscription, number]
            self._residents.pop((point.space, zone), None)

    def publish(self, messages: Sequence[Message]) -> list[Journey]:
        return [self._journey(message) for message in messages]

    def table_size(self) -> int:
        return sum(len(z.points) for zones in self.spaces.values() for z in zones.zones.values())

    def loads(self) -> Counter[int]:
        """Points by owner."""
        found: Counter[int] = Counter()
        for zones in self.spaces.values():
            for zone in zones.zones.values():
                found[zone.owner] += len(zone.points)
        return found

    def _journey(self, message: Message) -> Journey:
        journey = Journey(message)
        zones = self.spaces[message.space]
        reached: set[int] = set()
        for place, regions in groups_with_common_place(zones.space.regions(message)):
            entry, depth = self._enter(zones, place, journey)
            waiting = deque([(entry, depth)])
            while waiting:
                number, depth = waiting.popleft()
                if number not in reached:
                    reached.add(number)
                    self._arrive(zones, number, depth, journey)
                for other in zones.onwards(number, place, regions):
                    step = self._hop(zones, number, other, depth, journey)
                    waiting.append((other, step))
        return journey

    def _enter(self, zones: SpaceZones, place: Coordinates, journey: Journey) -> tuple[int, int]:
        """Route from a zone of the server to the one that contains the place."""
        space = zones.space.shape.space
        if space not in self._entries:
            self._entries[space] = min(zones.owned_by(self.server))
        number, depth = self._entries[space], 0
        while (following := zones.towards(number, place)) is not None:
            depth = self._hop(zones, number, following, depth, journey)
            number = following
        return number, depth

    def _hop(self, zones: SpaceZones, one: int, other: int, depth: int, journey: Journey) -> int:
        sender, receiver = zones.zones[one].owner, zones.zones[other].owner
        if sender == receiver:
            return depth
        journey.hops.append(Hop(sender, receiver, depth + 1))
        return depth + 1

    def _arrive(self, zones: SpaceZones, number: int, depth: int, journey: Journey) -> None:
        zone = zones.zones[number]
        zone.handled += 1
        found = self._residents_of(zones, number).concerned(journey.message) if zone.points else []
        journey.arrivals += [Arrival(zone.owner, one, depth) for one in found]
        journey.in_vain += not found and depth > 0

    def _residents_of(self, zones: SpaceZones, number: int) -> Residents:
        key = (zones.space.shape.space, number)
        residents = self._residents.get(key)
        if residents is None:
            residents = self._residents[key] = Residents(self._shapes)
            by_subscription: dict[int, list[Point]] = {}
            for (subscription, _), (_, point) in zones.zones[number].points.items():
                by_subscription.setdefault(subscription, []).append(point)
            for subscription, points in by_subscription.items():
                residents.add(subscription, points)
        return residents
