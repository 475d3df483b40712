"""The settings of a broker process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import NetworkError
from penstock.network.payloads import PayloadSettings
from penstock.network.routing_tables import RoutingSettings
from penstock.routing.merging.policies import any_of, periodically, when_outdated
from penstock.routing.merging.table import MergeSettings
from penstock.service.addresses import Address
from penstock.service.tokens import NO_TOKEN

PAYLOAD_CACHE_BYTES = 16 << 20
MAX_PAYLOAD_CACHE_BYTES = 16 << 30
DIRECTORY_BYTES = 2 << 20
"""Enough for 87,000 payloads."""
SMALLEST_PAYLOAD = 64
"""Characters: four times the size of its id."""
MERGED_AT_ONCE = 50
"""Interests examined per tick: about 100 ms in a join space, during which nothing else runs."""
MERGE_AFTER = 16
MERGE_AFTER_SHARE = 0.1
"""Changes of the sent interests, as a share of them, before mergers are searched."""
MERGE_PERIOD_TICKS = 30
"""And at least this often, because publications change, too."""
MERGERS_IN_BUDGET = 4
"""A merger may use a fourth of the budget, as estimated when it is made."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """A broker has a home or an upstream broker."""

    listen: Address
    upstream: Address | None = None
    home: Path | None = None
    tokens: tuple[bytes, ...] = (NO_TOKEN,)
    """Tokens accepted from connecting processes."""
    upstream_token: bytes = NO_TOKEN
    payload_cache_bytes: int = PAYLOAD_CACHE_BYTES
    """0: a plain node, which passes payloads on."""
    false_positives: float = 0.0
    """Accepted share of unwanted messages from upstream; 0: only perfect mergers."""

    def check(self) -> None:
        if (self.upstream is None) == (self.home is None):
            raise NetworkError(
                "a broker has either a home or another broker further up",
                hint="give --home HOME or --upstream ADDRESS",
            )
        if NO_TOKEN in self.tokens and not self.listen.is_loopback:
            raise NetworkError(
                f"{self.listen} can be reached from other machines, so a token is needed",
                hint="give --token-file FILE, or listen on 127.0.0.1",
            )
        if not 0 <= self.payload_cache_bytes <= MAX_PAYLOAD_CACHE_BYTES:
            raise NetworkError(
                f"a payload cache of {self.payload_cache_bytes:,} bytes",
                detail=f"limit: {MAX_PAYLOAD_CACHE_BYTES:,} bytes",
            )
        if not 0 <= self.false_positives < 1:
            raise NetworkError(
                f"{self.false_positives} is not a share of false positives",
                hint="give a number from 0 up to 1, for instance 0.05",
            )

    def payloads(self, columns: Mapping[int, tuple[int, ...]]) -> PayloadSettings | None:
        if not self.payload_cache_bytes:
            return None
        return PayloadSettings(
            columns,
            DIRECTORY_BYTES,
            repository_entries=max(1, self.payload_cache_bytes // SMALLEST_PAYLOAD),
            repository_bytes=self.payload_cache_bytes,
            smallest_text=SMALLEST_PAYLOAD,
        )

    def routing(self) -> RoutingSettings:
        merging = MergeSettings(
            any_of(when_outdated(MERGE_AFTER, MERGE_AFTER_SHARE), periodically(MERGE_PERIOD_TICKS)),
            threshold=self.false_positives / MERGERS_IN_BUDGET,
            budget=self.false_positives,
            most_at_once=MERGED_AT_ONCE,
        )
        return RoutingSettings(merging=merging, observes=self.false_positives > 0)
