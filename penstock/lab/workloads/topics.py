"""Subscriptions to topics: the number of topics grows with the subscriptions, at the same matches
per event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.catalog import Column, IntegerType, Relation
from penstock.lab.workloads.matching import MatchingWorkload
from penstock.matching.events import EventBatch
from penstock.matching.range_boxes import RangeBoxes


@dataclass(frozen=True, slots=True)
class Topics:
    """A topic, and two ranges over values below `domain`, drawn from a few dozen each.

    Each topic has `per_topic` subscriptions, so an event matches about `per_topic / 4` of them
    whatever the number of subscriptions.
    """

    per_topic: int = 1000
    domain: int = 1000
    seed: int = 4

    def __call__(self, subscriptions: int, events: int = 20_000) -> MatchingWorkload:
        random = np.random.default_rng(self.seed)
        topics = max(1, subscriptions // self.per_topic)
        relation = Relation(
            "topics", tuple(Column(name, IntegerType()) for name in ("topic", "a", "b")), (), True
        )
        topic = random.integers(0, topics, subscriptions)
        lows = np.zeros((subscriptions, 3), np.int64)
        highs = np.zeros((subscriptions, 3), np.int64)
        lows[:, 0] = highs[:, 0] = topic
        step = self.domain // 20
        for column in (1, 2):
            lows[:, column] = random.integers(0, 10, subscriptions) * step
            highs[:, column] = lows[:, column] + self.domain // 2
        boxes = RangeBoxes(
            np.arange(subscriptions, dtype=np.int64),
            np.arange(subscriptions + 1, dtype=np.int64) * 3,
            np.tile(np.arange(3, dtype=np.int32), subscriptions),
            lows.ravel(),
            highs.ravel(),
        )
        values = {
            "topic": random.integers(0, topics, events),
            "a": random.integers(0, self.domain, events),
            "b": random.integers(0, self.domain, events),
        }
        batch = EventBatch.of_arrays(relation, values)
        return MatchingWorkload("topics", relation, boxes, batch)
