"""The savings of sending bulky columns separately: appendix I of Chandramouli and Yang (2008).

Products have a rating and a photo; subscriptions want all of a product whose rating lies in a
range. Ratings change often, photos seldom. Whole rows carry the photo with every change of the
rating, to every subscription whose range contains it. Halves carry it only to those whose range the
rating enters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer

from penstock.client import Content
from penstock.flow.changes import Change, Op
from penstock.flow.engine import Engine
from penstock.flow.events import encode_change
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.messages import Message, encode_message
from penstock.routing import subscribers
from penstock.sql import hinted

EXAMPLES = """
  penstock lab run select-with-payload
  penstock lab run select-with-payload --subscriptions 500 --events 5000 --json
"""
PAYLOAD_BYTES = (100, 1_000, 10_000)
PRODUCTS = 200
TOP_RATING = 1_000
RATING_WIDTH, RATING_STEP = 200, 20
PHOTO_SHARE = 0.02
"""The share of changes that bring another photo; the others bring another rating."""
TABLE = "CREATE TABLE products (id BIGINT PRIMARY KEY, rating INTEGER, photo VARCHAR)"
COLUMNS = (
    "payload_bytes",
    "rows",
    "messages_per_event",
    "bytes_per_event",
    "deliveries_per_event",
    "delivered_bytes_per_event",
    "payloads_per_event",
)


def select_with_payload(
    subscriptions: Annotated[int, typer.Option(help="How many.", min=1, max=10_000_000)] = 100,
    events: Annotated[
        int, typer.Option(help="Changes of products.", min=1, max=10_000_000)
    ] = 2_000,
    seed: Annotated[int, typer.Option(help="Chooses subscriptions and events.", min=0)] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Bytes sent and delivered for whole rows, and for rows and payloads apart."""
    results: list[Result] = []
    for size in PAYLOAD_BYTES:
        contents = []
        for name in ("whole", "halves"):
            with progress(f"payloads of {size:,} bytes, {name}"):
                run = _Run(name == "halves", subscriptions, seed, size)
                results.append(run.measured(events) | {"payload_bytes": size, "rows": name})
                contents.append(run.contents())
        assert contents[0] == contents[1]
    show(results, json, COLUMNS)


@dataclass
class _Sent:
    messages: int = 0
    bytes: int = 0
    deliveries: int = 0
    delivered_bytes: int = 0
    payloads: int = 0


class _Run:
    """One engine, its subscriptions and their contents."""

    def __init__(self, in_halves: bool, subscriptions: int, seed: int, payload_bytes: int) -> None:
        self._random = np.random.default_rng(seed)
        self._payload_bytes = payload_bytes
        self._engine = Engine()
        self._engine.define(0, TABLE)
        self._offset = 1
        self._clients: dict[int, Content] = {}
        for low in self._random.integers(0, TOP_RATING, subscriptions).tolist():
            sql = f"SELECT * FROM products WHERE rating BETWEEN {low} AND {low + RATING_WIDTH}"
            self._subscribe(hinted(sql, ["photo"]) if in_halves else sql)
        self._ratings = self._random.integers(0, TOP_RATING, PRODUCTS).tolist()
        for product, rating in enumerate(self._ratings):
            row = {"id": product, "rating": rating, "photo": self._photo()}
            self._publish(Change("products", Op.INSERT, row))

    def _subscribe(self, sql: str) -> None:
        query = self._engine.bind(sql)
        self._engine.subscribe(self._offset, query)
        self._clients[self._offset] = Content(self._offset, query)
        self._offset += 1

    def _photo(self) -> str:
        return self._random.bytes(self._payload_bytes // 2).hex()

    def _publish(self, change: Change) -> Iterator[tuple[Message, int, set[int]]]:
        """The messages of a change, delivered, each with its size and its recipients."""
        outcome = self._engine.events([(self._offset, encode_change(change))])
        self._offset += 1
        told = []
        for message in outcome.messages:
            to = subscribers(message, self._engine.index.space(message.space))
            told.append((message, len(encode_message(message)), to))
        for number, client in self._clients.items():
            client.apply([message for message, _, to in told if number in to])
        return iter(told)

    def _change(self) -> Change:
        product = int(self._random.integers(PRODUCTS))
        if self._random.random() < PHOTO_SHARE:
            return Change("products", Op.UPDATE, {"id": product, "photo": self._photo()})
        moved = self._ratings[product] + int(self._random.normal(0, RATING_STEP))
        self._ratings[product] = min(max(moved, 0), TOP_RATING)
        return Change("products", Op.UPDATE, {"id": product, "rating": self._ratings[product]})

    def measured(self, events: int) -> Result:
        sent = _Sent()
        for _ in range(events):
            for _, size, to in self._publish(self._change()):
                sent.messages += 1
                sent.bytes += size
                sent.deliveries += len(to)
                sent.delivered_bytes += size * len(to)
                sent.payloads += size > self._payload_bytes
        return {
            "events": events,
            "subscriptions": len(self._clients),
            "messages_per_event": round(sent.messages / events, 3),
            "bytes_per_event": round(sent.bytes / events, 1),
            "deliveries_per_event": round(sent.deliveries / events, 2),
            "delivered_bytes_per_event": round(sent.delivered_bytes / events, 1),
            "payloads_per_event": round(sent.payloads / events, 3),
        }

    def contents(self) -> list[list[list[tuple[str, object]]]]:
        """The final content of every client, in comparable form."""
        return [
            sorted(sorted(row.items()) for row in client.rows())
            for client in self._clients.values()
        ]
