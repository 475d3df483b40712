"""The source of a network of views: a process at a home with the plan and the documents.

It reads the message log, so the results of the views that it feeds were extracted by the process
that processes the home. It assigns views to sites, detects failed sites, and repairs the plan.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import NetworkError, PlanError
from penstock.service.addresses import Address
from penstock.service.reports import Reports
from penstock.service.site import check_tokens
from penstock.service.site_peers import Listener, Peer, send_frame
from penstock.service.tokens import NO_TOKEN
from penstock.storage import Home
from penstock.views.plan_limits import PlanLimits
from penstock.views.site_frames import (
    AskState,
    Join,
    Locate,
    Located,
    Reached,
    SiteFrame,
    State,
)
from penstock.views.site_host import ANSWER_BYTES, MAX_PARKED_READS, Batch, Read

LOOK_SECONDS = 0.1
"""Poll interval of the message log; a poll takes some microseconds."""
SITE_GRACE_SECONDS = 2.0
"""A site without a connection for this long has failed: its views are moved."""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    home: Path
    listen: Address
    documents: str | None = None
    """TABLE.COLUMN, if there are views over several."""
    sites: int = 1
    """Views are planned when this many sites have joined."""
    limits: PlanLimits = field(default_factory=PlanLimits)
    tokens: tuple[bytes, ...] = (NO_TOKEN,)
    grace_seconds: float = SITE_GRACE_SECONDS

    def check(self) -> None:
        check_tokens(self.listen, self.tokens)
        self.limits.check()
        if self.sites < 1:
            raise NetworkError("a network of views needs at least one site")


class ViewSource:
    """`report` gets lines for people. Use from one event loop."""

    def __init__(self, settings: SourceSettings, report: Callable[[str], None]) -> None:
        from penstock.service.source_plan import SourcePlan  # lazy: loads compilers

        settings.check()
        self._settings = settings
        self._report = Reports(report)
        self._listener = Listener(
            *(secrets.token_hex(8), settings.tokens, self._on_frame, self._on_gone, self._report)
        )
        self._plan = SourcePlan(Home.open(settings.home), settings.documents, settings.limits)
        self._sites: dict[str, Peer] = {}
        """The connection of each site that has joined, by the site's name."""
        self._addresses: dict[str, str] = {}
        self._gone: dict[str, float] = {}
        """When the connections of sites were lost."""
        self._parked: list[tuple[str, Read]] = []
        self._told: dict[str, int] = {}

    async def run(self, on_ready: Callable[[Address], None]) -> None:
        """Runs until it is cancelled."""
        await self._listener.start(self._settings.listen)
        on_ready(self._listener.address)
        try:
            while True:
                await self._look()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._listener.end()
            self._plan.close()

    async def _look(self) -> None:
        """Handle what may have happened since the last call."""
        self._let_go()
        plan = self._plan
        if not plan.is_planned and len(self._sites) >= self._settings.sites:
            self._join_all()
            await asyncio.to_thread(plan.begin)
            self._join_all()  # those that have connected meanwhile
            self._report(f"{len(plan.views)} views at {len(self._sites)} sites")
        if plan.is_planned:
            plan.advance()
            if plan.is_replanning_due:
                await self._replan()
        self._tell_sites()
        self._answer_parked()

    def _join_all(self) -> None:
        for name in self._sites:
            self._plan.coordinator.join(name, self._addresses[name])

    async def _replan(self) -> None:
        """Plan all views again, in a thread; the old plan stays in use meanwhile."""
        views = dict(self._plan.coordinator.plan.views)
        try:
            feeding = await asyncio.to_thread(self._plan.full_plan, views)
        except PlanError as error:
            self._plan.put_off_replanning()
            self._report(f"{error.primary}: {error.detail}")
            return
        self._plan.adopt(feeding)

    def _let_go(self) -> None:
        """Sites that are gone for too long have failed."""
        now = asyncio.get_running_loop().time()
        for name in self._plan.coordinator.sites:
            if name not in self._sites:
                self._gone.setdefault(name, now)
        for name, since in list(self._gone.items()):
            if now - since >= self._settings.grace_seconds:
                del self._gone[name]
                self._told.pop(name, None)
                self._plan.coordinator.leave(name)
                self._report(f"site {self._addresses.pop(name)} is gone; its views have moved")

    # What comes in.

    def _on_frame(self, peer: Peer, frame: SiteFrame) -> None:
        if isinstance(frame, Read):
            self._on_read(peer, frame)
        elif isinstance(frame, Join) and peer.role == "site":
            self._on_join(peer, frame)
        elif isinstance(frame, Reached) and peer.role == "site":
            if frame.epoch == self._plan.feed.epoch:
                self._plan.coordinator.on_reached(peer.name, frame.document)
        elif isinstance(frame, Locate):
            send_frame(peer.connection, self._located(frame.view))
        elif isinstance(frame, AskState):
            send_frame(peer.connection, State(self._state()))
        else:
            raise NetworkError(f"{type(frame).__name__} from a {peer.role}")

    def _on_join(self, peer: Peer, join: Join) -> None:
        self._addresses[peer.name] = join.address
        self._sites[peer.name] = peer
        self._gone.pop(peer.name, None)
        self._told.pop(peer.name, None)
        self._plan.feeds[join.address] = join.feeds
        if self._plan.is_planned:
            self._plan.coordinator.join(peer.name, join.address)
        self._tell_sites()

    def _on_gone(self, peer: Peer) -> None:
        self._parked = [one for one in self._parked if one[0] != peer.number]
        if self._sites.get(peer.name) is peer:
            del self._sites[peer.name]

    def _on_read(self, peer: Peer, read: Read) -> None:
        self._parked.append((peer.number, read))
        if len(self._parked) > MAX_PARKED_READS:
            self._parked.pop(0)
        self._answer_parked()

    # What goes out.

    def _tell_sites(self) -> None:
        coordinator = self._plan.coordinator
        for name, peer in self._sites.items():
            if self._plan.is_planned and self._told.get(name) != coordinator.version:
                self._told[name] = coordinator.version
                send_frame(peer.connection, coordinator.hosting_of(name))

    def _answer_parked(self) -> None:
        waiting = []
        for number, read in self._parked:
            peer = self._listener.peer(number)
            if peer is None or read.epoch != self._plan.feed.epoch:
                continue  # the requester starts again
            if not self._plan.feed.knows(read.view) or read.from_document >= self._plan.feed.end:
                waiting.append((number, read))
                continue
            found = self._plan.feed.read(read.view, read.from_document, read.most, ANSWER_BYTES)
            send_frame(peer.connection, Batch(read.tag, tuple(found)))
        self._parked = waiting

    def _located(self, number: int) -> Located:
        plan = self._plan
        view = plan.views.get(number)
        columns = () if view is None else tuple(one.plain() for one in view.columns)
        place = plan.coordinator.place_of(number)
        known = view is not None and plan.is_planned
        feed = plan.feed
        return Located(number, plan.is_planned, known, place, feed.epoch, feed.end, columns)

    def _state(self) -> dict[str, object]:
        """For people and tests."""
        return {"sites": len(self._sites), **self._plan.state()}


async def run_source(
    settings: SourceSettings, on_ready: Callable[[Address], None], report: Callable[[str], None]
) -> None:
    """Run the source of a network of views until it is cancelled."""
    await ViewSource(settings, report).run(on_ready)
