"""A home in which every kind of file occurs."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

from penstock import Hub
from penstock.ingest.ingest_ledger import FileId, IngestLedger, IngestRecord, encode_taken
from penstock.pipeline.moved_checkpoint import hadoop_checksums
from penstock.pipeline.offsets import StreamOffset
from penstock.pipeline.snapshots import compile_snapshot
from penstock.registry import Registry
from penstock.storage import Home, Log, RecordKind
from penstock.storage.home_statistics import HomeStatistics, save_statistics

STOCKS = "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR NOT NULL, per DECIMAL(8,2))"
REVIEWS = "CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INTEGER, day DATE)"
QUERIES = (
    "SELECT symbol, per FROM stocks WHERE per BETWEEN 10 AND 60",
    "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per > 20 AND rating >= 5",
    "SELECT symbol FROM reviews WHERE rating < 3 OR day > DATE '2024-01-01'",
)
BAD = b'{"table": "stocks", "op": "delete", "row": {"id": 77}}'


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two log segments, several batches, a quarantine, an index and a checkpoint."""
    path = tmp_path_factory.mktemp("whole") / "home"
    home = Home.create(path)
    with Hub(path) as hub:
        hub.execute(STOCKS)
        hub.execute(REVIEWS)
        for sql in QUERIES:
            hub.subscribe(sql, owner="alice")
        hub.unsubscribe(hub.subscribe(QUERIES[0]))
        tell(hub, 0)
    # The log goes on in a second segment.
    Log(path / "log", segment_bytes=1).append([(RecordKind.EVENT, BAD)])
    with Hub(path) as hub:
        tell(hub, 10)
    ledger = IngestLedger(home)
    home.log.append([encode_taken(FileId("a.jsonl", "0" * 64), IngestRecord(0, complete=True))])
    ledger.taken(FileId("a.jsonl", "0" * 64))
    ledger.close()
    with Hub(path):
        pass
    save_statistics(path, HomeStatistics(home.log.end, 0, 0, (), ()))
    with Registry(home) as registry:
        compile_snapshot(home.snapshots, registry, home.log.end, {})
    _pretend_checkpoint(home)
    with Registry(home, catch_up=False) as registry:
        registry.catch_up()
        # As long as somebody has the databases open, SQLite keeps its journals beside them.
        return Path(shutil.copytree(path, path.with_name("whole")))


def tell(hub: Hub, first: int) -> None:
    for i in range(first, first + 4):
        symbol = "ABC"[i % 3]
        hub.insert("stocks", {"id": i, "symbol": symbol, "per": 12.5 * (i % 6)})
        hub.insert("reviews", {"id": i, "symbol": symbol, "rating": i % 8, "day": "2024-02-29"})
    hub.update("stocks", {"id": first + 1, "per": 44})
    hub.delete("reviews", {"id": first + 2})


def _pretend_checkpoint(home: Home) -> None:
    """As Spark and Hadoop leave it after one batch of everything."""
    end = home.log.end
    settings = json.dumps({"conf": {"spark.sql.shuffle.partitions": "1"}})
    offset = f"v1\n{settings}\n{json.dumps(StreamOffset(end, end).to_json())}"
    for name, text in {
        "metadata": '{"id": "0"}',
        "offsets/0": offset,
        "commits/0": 'v1\n{"nextBatchWatermarkMs": 0}',
        "state/0/0/1.changelog": "x" * 1500,
        "state/0/_metadata/v2/0": "v2\n{}",
    }.items():
        path = home.checkpoint / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        like = b"crc\x00" + struct.pack(">I", 512)
        beside = hadoop_checksums(path.read_bytes(), like)
        path.with_name(f".{path.name}.crc").write_bytes(beside)
