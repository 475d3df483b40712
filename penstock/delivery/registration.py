"""What a reader needs of a subscription: its query, how it starts, how it is decomposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from penstock.client import ChangesOnlyClient, Content, Initial, client_of
from penstock.query import Query
from penstock.spaces import Decomposition, Replan
from penstock.storage import AnyHome, RecordKind

if TYPE_CHECKING:
    from penstock.registry import Registry, StoredSubscription

Replans: TypeAlias = Callable[[int, int], Sequence[Replan]]
"""The replans of one subscription that are recorded in a range of offsets [low, high)."""

_REPLANS = frozenset({RecordKind.REPLAN})


@dataclass(frozen=True, slots=True)
class Registration:
    """A subscription as it was registered. `id` is the offset of its record."""

    id: int
    query: Query
    decomposition: Decomposition | None
    """The initial one; None is the plain rule."""
    initial: Initial
    replans: Replans

    def new_client(self) -> Content | ChangesOnlyClient:
        """A client that has not received anything yet."""
        return client_of(self.id, self.query, self.decomposition, self.initial)

    @property
    def columns(self) -> list[str]:
        """The columns of the content, as the SELECT names them."""
        return [output.label for output in self.query.outputs]


def registered(registry: Registry, stored: StoredSubscription) -> Registration:
    """A subscription of a registry, which catches up when replans are queried."""

    def replans(low: int, high: int) -> list[Replan]:
        registry.catch_up(high)
        return registry.replans(stored.id, low, high)

    query = stored.query(registry.catalog())
    return Registration(stored.id, query, stored.decomposition, stored.initial, replans)


def recorded(home: AnyHome, subscription: int, query: Query) -> Registration:
    """A subscription from its record in the log, for homes without a registry."""
    from penstock.registry import subscribed

    (record,) = home.log.read(subscription, subscription + 1)
    said = subscribed(record.body)
    replans = partial(_logged_replans, home, subscription)
    return Registration(subscription, query, said.decomposition, said.initial, replans)


def _logged_replans(home: AnyHome, subscription: int, low: int, high: int) -> list[Replan]:
    from penstock.registry import replan_of

    found = map(replan_of, home.log.read(low, high, _REPLANS))
    return [one for one in found if one.subscription == subscription]
