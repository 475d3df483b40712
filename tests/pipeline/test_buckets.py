"""The number of buckets belongs to the home, and changes no message."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from penstock.errors import HomeError
from penstock.pipeline.buckets import bucket_labels, spark_hash, spread_of
from penstock.storage import DEFAULT_BUCKETS, Home
from penstock.storage.marker import BUCKET_NUMBERS
from penstock.testing import LocalPipeline
from tests.pipeline.telling import Teller, interleaved, scenario_paths


def test_buckets_do_not_depend_on_the_process() -> None:
    """They are part of every checkpoint: these values must never change."""
    spread = spread_of(8)
    assert spread.buckets == (0, 1, 2, 5, 6, 12, 15, 25)
    assert [spread.of_row("t", (i,)) for i in range(10)] == [2, 6, 15, 0, 5, 12, 25, 1, 0, 15]


@pytest.mark.parametrize("number", BUCKET_NUMBERS)
def test_all_buckets_are_used(number: int) -> None:
    spread, labels = spread_of(number), set(bucket_labels(number))
    assert len(labels) == len(spread.buckets) == number
    assert {spread.of_row("t", (i,)) for i in range(2000)} == labels
    assert {spread.of_number(i) for i in range(number)} == labels
    assert len({spread.phase(one) for one in labels}) == number


@pytest.mark.slow
def test_messages_do_not_depend_on_their_number(tmp_path: Path) -> None:
    found = {}
    for number in (1, 4, 8, 16):
        home = Home.create(tmp_path / str(number), buckets=number)
        teller = Teller(Home.open(home.path))
        teller.tell(interleaved(scenario_paths()[:6]))
        pipeline = LocalPipeline(teller.home, batch_rows=40)
        assert pipeline.run() > 1
        for stage in pipeline.states.values():
            assert len(stage) == number
            assert sum(bool(one.entries) for one in stage.values()) > number // 2
        batches = [(one, home.messages.read(one)) for one in home.messages.batches()]
        assert sum(len(messages) for _, messages in batches) > 50
        found[number] = batches, list(home.quarantine.entries())
    assert found[1] == found[4] == found[8] == found[16]


def test_a_marker_says_how_many(tmp_path: Path) -> None:
    assert DEFAULT_BUCKETS == 8
    usual = Home.create(tmp_path / "usual", buckets=DEFAULT_BUCKETS)
    assert Home.open(usual.path).buckets == 8
    other = Home.create(tmp_path / "other", buckets=16)
    assert Home.open(other.path).buckets == 16
    # Earlier releases know version 1 and 8 buckets: they open the one, and refuse the other.
    markers = [
        json.loads((tmp_path / one / "penstock.json").read_bytes()) for one in ("usual", "other")
    ]
    assert [marker["penstock_home"] for marker in markers] == [1, 2]
    other.record_schemes("other")
    assert Home.open(other.path).buckets == 16


def test_homes_that_tests_make_have_few(tmp_path: Path) -> None:
    """Unless asked for, and in soaks (tests/conftest.py)."""
    usual = DEFAULT_BUCKETS if os.environ.get("PENSTOCK_SOAK") else 2
    assert Home.create(tmp_path / "home").buckets == usual
    assert Home.create(tmp_path / "other", buckets=DEFAULT_BUCKETS).buckets == DEFAULT_BUCKETS


def test_a_home_of_an_earlier_release_has_eight(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    marker = home.path / "penstock.json"
    members = json.loads(marker.read_bytes())
    del members["buckets"]
    marker.write_text(json.dumps(members))
    assert Home.open(home.path).buckets == 8


@pytest.mark.parametrize("number", [0, 3, 128, -8, True, "8", None, 8.5])
def test_other_numbers_are_refused(tmp_path: Path, number: object) -> None:
    with pytest.raises(HomeError, match="buckets"):
        Home.create(tmp_path / "home", buckets=number)  # type: ignore[arg-type]
    assert not (tmp_path / "home").exists()


@pytest.mark.spark
def test_spark_divides_buckets_evenly(spark: SparkSession) -> None:
    labels = list(bucket_labels(16))
    frame = spark.createDataFrame([(label,) for label in labels], "bucket int")
    hashes = [row[0] for row in frame.select(sql.hash("bucket")).collect()]
    assert hashes == list(map(spark_hash, labels))
    for number, partitions in ((8, 2), (8, 4), (8, 8), (16, 2), (16, 16)):
        places = Counter(spark_hash(label) % partitions for label in bucket_labels(number))
        assert set(places.values()) == {number // partitions}
