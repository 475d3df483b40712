"""What commands say on a disk without room, in a process that has a small one to itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from penstock import Hub
from penstock.errors import PenstockError
from penstock.ingest.ingest_ledger import FileId, IngestLedger
from penstock.registry import Registry, rebuild
from penstock.storage import Home
from tests.pipeline.on_small_disk import nearly_full

SQL = "SELECT * FROM stocks"
FREE_PAGES = (0, 1, 2, 4, 8)


def drive(disk: Path) -> list[str]:
    home = Home.create(disk / "home")
    with Registry(home) as registry:
        registry.define("CREATE TABLE stocks (id INTEGER PRIMARY KEY, per INTEGER)")
        registry.subscribe(SQL)
    numbers = count()
    uses: tuple[Callable[[], object], ...] = (
        lambda: Home.create(disk / f"other{next(numbers)}"),
        lambda: Hub(home.path).close(),
        lambda: Registry(home).subscribe_many([SQL] * 500),
        lambda: rebuild(home),
        lambda: IngestLedger(home).taken(FileId("a", "b")),
    )
    told = []
    for free_pages in FREE_PAGES:
        with nearly_full(disk, free_pages):
            for use in uses:
                try:
                    use()
                except PenstockError as error:
                    told.append(str(error))
    with Hub(home.path) as hub:  # with room, all is well
        hub.insert("stocks", {"id": 1, "per": 1})
    return told


if __name__ == "__main__":
    print(json.dumps(drive(Path(sys.argv[1]))))
