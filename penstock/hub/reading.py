"""The read side of a Hub: contents, notifications, explanations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.arguments import (
    shown,
    subscription_id,
    text,
    whole_number,
)
from penstock.catalog import Catalog, Outside
from penstock.client import News, Notification, Snapshot
from penstock.client.sizes import notification_bytes
from penstock.delivery import SubscriptionReader
from penstock.delivery.registration import recorded, registered
from penstock.delivery.subscription import (
    MAX_PENDING_BYTES,
    MAX_PENDING_NOTIFICATIONS,
    Subscription,
    reopen_subscription,
)
from penstock.errors import ChangeError, HomeError
from penstock.flow.changes import Change
from penstock.flow.events import change_from_mapping, decode_event, encode_change
from penstock.flow.explain import Explanation, explain
from penstock.flow.planning import explain_plan
from penstock.hub.processor import Processor
from penstock.registry import HomeOperators, Registry
from penstock.storage import (
    AnyHome,
    Home,
    QuarantinedEvent,
)


class HubReading:
    """The methods of a Hub that change nothing."""

    _home: AnyHome
    _registry: Registry | None
    _processor: Processor
    _operators: HomeOperators | None

    def subscription(self, number: int) -> Subscription:
        """A subscription by its id, for instance one made before this Hub was opened."""
        number, live = id_of(number), self._processor.live
        with self._processor.reading() as engine:
            self._processor.state.check_not_suspended(number)
            engine.query(number)
            if number not in live:
                assert isinstance(self._home, Home)  # in memory, every subscription is live
                assert self._registry is not None
                registration = registered(self._registry, self._registry.subscription(number))
                live.add(reopen_subscription(self._home, registration, self._processor.lock))
            return live[number]

    def subscriptions(self) -> dict[int, str]:
        """The SQL of all subscriptions, by id."""
        with self._processor.reading() as engine:
            return {number: query.sql for number, query in engine.queries.items()}

    def snapshot(self, subscription: Subscription | int) -> Snapshot:
        """The content of a subscription, and the cursor from which `news` continues.

        SubscriptionError if it was made with `initial="none"`: it has notifications only.
        """
        with self._processor.lock:
            live = self.subscription(id_of(subscription))
            return Snapshot(live.content(), self._processor.position)

    def news(self, subscription: Subscription | int, cursor: int) -> News:
        """The notifications of a subscription since a cursor, whether or not they were read before:
        to continue from a snapshot, also in another process and after a crash.

        Read from the message log, from the subscription's beginning on; for repeated polling use
        `notifications` of a `Subscription`. A very large result comes in parts: continue from the
        cursor of each, until there is nothing.
        """
        number, cursor = id_of(subscription), whole_number(cursor, "a cursor", HomeError)
        with self._processor.reading() as engine:
            registration = recorded(self._home, number, engine.query(number))
            reader = SubscriptionReader(self._home, registration, cursor)
            told: list[Notification] = []
            taken_bytes = 0
            for part in reader.new():
                told += part.notifications
                taken_bytes += sum(map(notification_bytes, part.notifications))
                if len(told) >= MAX_PENDING_NOTIFICATIONS or taken_bytes >= MAX_PENDING_BYTES:
                    break
            return News(cursor, max(cursor, reader.cursor), told)

    def explain(
        self, subscription: Subscription | int, change: Change | Mapping[str, Outside]
    ) -> Explanation:
        """Why a change would, or would not, reach a subscription, given the tables as they are."""
        number = id_of(subscription)
        with self._processor.reading() as engine:
            query = engine.query(number)
            decoded = decode_event(encode_change(as_change(change)))
            found = explain(
                number,
                query,
                decoded,
                engine.catalog,
                engine.rows,
                self._processor.position + 1,
                engine.operators,
            )
            return replace(found, filters=explain_plan(engine, number))

    @property
    def catalog(self) -> Catalog:
        """The tables and streams that exist."""
        with self._processor.reading() as engine:
            return engine.catalog

    def rows(self, table: str) -> list[dict[str, Outside]]:
        """All rows of a table."""
        table = text(table, "the name of a table", ChangeError)
        with self._processor.reading() as engine:
            relation = engine.catalog.get(table)
            if relation is None:
                raise ChangeError(f"unknown table {table:.60}")
            return [relation.show_row(row) for _, row in engine.rows.rows(relation)]

    def left_out(self, subscription: Subscription | int) -> list[str]:
        """Rows that existed when a subscription began and are missing from its content, because an
        operator failed on them: which, and why. They are added with their next change, or by
        subscribing again."""
        number = id_of(subscription)
        with self._processor.reading():
            journal = None if self._operators is None else self._operators.journal
            rows = [] if journal is None else journal.left_out()
            return [one.text for one in rows if one.subscription == number]

    def quarantine(self) -> list[QuarantinedEvent]:
        """Events of other publishers that could not be applied."""
        with self._processor.reading():
            return list(self._home.quarantine.entries())


def id_of(subscription: Subscription | int) -> int:
    if isinstance(subscription, Subscription):
        return subscription.id
    return subscription_id(subscription)


def as_change(change: object) -> Change:
    if isinstance(change, Change):
        change = {"table": change.table, "op": change.op, "row": change.row}
    if not isinstance(change, Mapping):
        raise ChangeError(f"a change is a Change or a mapping, not {shown(change)}")
    return change_from_mapping(change)
