"""Layouts of the state: whatever they are cut into, they hold the same."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.lab.benchmarks import _state_course as apply_steps
from penstock.lab.benchmarks._state_layouts import LAYOUTS, opened
from penstock.lab.benchmarks._state_runs import StateRun
from penstock.lab.benchmarks._state_work import EDGE, Content, StateWork, Task, Touch
from penstock.lab.benchmarks.state import LAYOUTS as MEASURED
from penstock.testing.local_pipeline import MapInMemory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOLDING = [layout for layout in LAYOUTS if layout != "nothing"]
PREFIXES = [EDGE + bytes(15) + bytes([i]) for i in range(3)]

keys = st.builds(
    lambda prefix, i: prefix + bytes([i]), st.sampled_from(PREFIXES), st.integers(0, 3)
)
batches = st.lists(
    st.lists(st.tuples(keys, st.none() | st.binary(max_size=3)), max_size=6), max_size=6
)


def test_all_layouts_are_measured() -> None:
    assert sorted(MEASURED) == sorted(LAYOUTS)


@pytest.mark.parametrize("layout", HOLDING)
@given(batches)
def test_a_layout_behaves_like_a_dictionary(
    layout: str, batches: list[list[tuple[bytes, bytes | None]]]
) -> None:
    expected: dict[bytes, bytes] = {}
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_DIRS", directory)
        stored = MapInMemory()
        for batch in [*batches, []]:
            with opened(layout, stored, 0, "term") as entries:
                before = dict(expected)
                for key, value in batch:
                    assert entries.get(key) == expected.get(key)
                    entries.put(key, value)
                    assert entries.get(key) == value
                    expected.pop(key, None)
                    if value is not None:
                        expected[key] = value
                assert dict(entries.scan(EDGE)) == before, "a scan shows what was there"
                for prefix in PREFIXES:
                    group = {key: value for key, value in before.items() if key.startswith(prefix)}
                    assert dict(entries.scan(prefix)) == group
        with opened(layout, stored, 0, "term") as entries:
            assert dict(entries.scan(EDGE)) == expected


def test_rows_and_changes_are_as_described() -> None:
    work = StateWork(values=200, rows=20_000, spread=100)
    sizes = np.diff(work.firsts)
    assert sizes.sum() == 20_000
    assert sizes.max() / sizes.min() == pytest.approx(100, rel=0.3)
    loaded = np.concatenate(list(work.loads(3000)))
    assert sorted(loaded) == list(range(20_000))
    hot = work.hot(1000, 1)
    assert 500 <= (hot < sizes[0]).sum() < 550
    assert len(list(work.tasks(work.skewed(1000, 1), Touch.GROUP, 1, by_value=False))) == 1
    assert len(list(work.tasks(work.one_per_bucket(), Touch.ROW, 1, by_value=False))) == 8


def test_state_keys_may_be_buckets_or_values() -> None:
    work = StateWork(values=20, rows=400)
    told = []
    for by_value in (False, True):
        tasks = work.tasks(work.evenly(100, 1), Touch.ROW, 1, by_value)
        changes = [Task.from_bytes(body).changes.values() for _, body in tasks]
        told.append(sorted(change for groups in changes for group in groups for change in group))
    assert told[0] == told[1]
    assert len(told[0]) == 100


@pytest.mark.slow
@pytest.mark.parametrize("layout", HOLDING)
def test_contents_outlive_the_query(spark: SparkSession, layout: str, tmp_path: Path) -> None:
    work = StateWork(values=20, rows=400, spread=10)
    run = StateRun(spark, layout, tmp_path / "run", patience_seconds=100.0)
    (everything,) = work.loads(400)
    try:
        run.start(work.tasks(everything, Touch.NOTHING, 1, run.by_value))
        run.batch(work.tasks(work.hot(40, 2), Touch.GROUP, 2, run.by_value))
        assert run.changelog_bytes()
        run.stop()
        run.start(work.sweeps(run.by_value))
    finally:
        run.stop()
    assert run.content == told_to_hold(work, everything)


def told_to_hold(work: StateWork, everything: np.ndarray) -> Content:
    expected: dict[bytes, bytes] = {}
    for rows, seed in ((everything, 1), (work.hot(40, 2), 2)):
        for _, body in work.tasks(rows, Touch.NOTHING, seed, by_value=False):
            for changes in Task.from_bytes(body).changes.values():
                expected |= changes
    return Content(400, sum(crc32(value, crc32(key)) for key, value in expected.items()))


def test_layouts_that_differ_are_refused() -> None:
    results = [{"layout": name, "values": 8, "rows": 8, "content": [8, 1]} for name in HOLDING]
    apply_steps.check(results)
    results[-1]["content"] = [8, 2]
    with pytest.raises(PenstockError, match="differ"):
        apply_steps.check(results)


@pytest.mark.slow
def test_a_layout_is_given_up_when_it_is_too_slow(spark: SparkSession) -> None:
    result = apply_steps.measured(spark, "rows", StateWork(values=8, rows=8), patience=0.0)
    assert result["load_rows_per_s"] == "> 0 s"
    assert "floor_s" not in result
