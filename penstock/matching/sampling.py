"""A small sample of the events seen, to order predicates by how selective they are."""

from __future__ import annotations

import numpy as np

from penstock.catalog import Relation
from penstock.matching.events import EventBatch

SAMPLE_EVENTS = 2000


class EventSample:
    """The given events, or a larger sample of one of the first batches."""

    def __init__(self, relation: Relation, given: EventBatch | None = None) -> None:
        self._relation = relation
        self.batch: EventBatch | None = given

    def observe(self, batch: EventBatch) -> None:
        """Sample the batch if there are too few events so far; the larger sample is kept."""
        have = 0 if self.batch is None else len(self.batch)
        if have < SAMPLE_EVENTS and len(batch) > have:
            places = np.linspace(0, len(batch) - 1, min(SAMPLE_EVENTS, len(batch)))
            self.batch = batch.take(places.astype(np.int64))
