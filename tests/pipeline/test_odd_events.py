"""Whatever publishers send, Hub and pipeline make the same of it."""

from __future__ import annotations

from pathlib import Path

from penstock import Hub
from penstock.log import Home, RecordKind
from tests.engine import plain_lines as lines
from tests.pipeline.dry import DryPipeline

COLUMNS = (
    'id INTEGER NOT NULL, "Big" BIGINT, d DOUBLE, n DECIMAL(6,2), wide DECIMAL(38,2), s VARCHAR, '
    "short VARCHAR(3), b BOOLEAN, day DATE, at TIMESTAMP, zoned TIMESTAMP WITH TIME ZONE"
)


def process_both(directory: Path, statements: list[str], events: list[bytes]) -> list[Home]:
    """A home that a Hub has processed, and one that the pipeline has."""
    homes = []
    for name in ("hub", "pipeline"):
        with Hub(directory / name) as hub:
            for statement in statements:
                hub.execute(statement)
        home = Home.open(directory / name)
        home.log.append([(RecordKind.EVENT, event) for event in events])
        homes.append(home)
    Hub(homes[0].path).close()
    assert DryPipeline(homes[1], batch_rows=50).run() > 0
    return homes


def test_odd_events_end_in_the_same_quarantine(tmp_path: Path) -> None:
    statements = [
        f"CREATE STREAM quotes ({COLUMNS})",
        f'CREATE TABLE "Things" ({COLUMNS}, PRIMARY KEY (id))',
    ]
    by_hub, by_pipeline = process_both(tmp_path, statements, lines.ODD_LINES)
    quarantined = list(by_hub.quarantine.entries())
    assert 100 < len(quarantined) < len(lines.ODD_LINES)
    assert list(by_pipeline.quarantine.entries()) == quarantined
