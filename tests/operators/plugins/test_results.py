"""Caches of results: one contract for both, and what a file must survive."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.operators import BIGINT, VARCHAR, Argument, FailureKind, OperatorFailure, operator
from penstock.operators.evaluation import InProcessEvaluator
from penstock.operators.interface import Operator, Result, StoredRow
from penstock.operators.limits import Evaluation
from penstock.operators.result_codec import pack_result, unpack_result
from penstock.operators.results import (
    CachedEvaluator,
    MemoryResults,
    ResultCache,
    entry_of,
    read_entry,
    result_keys,
)
from penstock.operators.results_file import REFRESH_SECONDS, FileResults
from tests.examples import examples

ONE = operator("one", [Argument("s", VARCHAR), Argument("n", BIGINT, constant=True)])(
    lambda s, n: len(s) > n
)
OTHER = operator("two", ONE.arguments)(lambda *_: True)
NEWER = operator("one", ONE.arguments, version="2")(lambda *_: True)
SAMPLES: list[Result] = [
    True,
    False,
    None,
    (),
    ((1, "a"), (None, 1.5)),
    ((10**37, -(10**37)),),
    (("ü" * 10,),),
]


def some_keys(count: int, first: int = 0) -> list[bytes]:
    return result_keys(ONE, [("x", n) for n in range(first, first + count)])


@pytest.mark.parametrize("result", SAMPLES)
def test_results_survive_packing(result: Result) -> None:
    assert unpack_result(pack_result(result)) == result


def test_keys_tell_everything_apart() -> None:
    rows: list[StoredRow] = [("a", 1), ("a", 2), ("b", 1), ("1", 1), (None, 1), ("a1", None)]
    keys = [key for one in (ONE, OTHER, NEWER) for key in result_keys(one, rows)]
    assert len(set(keys)) == 3 * len(rows)
    assert result_keys(ONE, rows) == result_keys(ONE, rows)


@given(st.integers(0, 10**6), st.integers(0, 7))
def test_a_flipped_bit_is_noticed(place: int, bit: int) -> None:
    (key,) = some_keys(1)
    entry = bytearray(entry_of(key, ((1, "some text"), (2, None))))
    assert read_entry(key, bytes(entry)) == ((1, "some text"), (2, None))
    entry[place % len(entry)] ^= 1 << bit
    with pytest.raises(ValueError, match="checksum"):
        read_entry(key, bytes(entry))


class CacheContract:
    def made(self, directory: Path, max_bytes: int = 1 << 20) -> ResultCache:
        raise NotImplementedError

    def test_what_is_kept_is_found(self, tmp_path: Path) -> None:
        cache = self.made(tmp_path)
        keys = some_keys(len(SAMPLES))
        kept = dict(zip(keys, SAMPLES, strict=True))
        assert cache.find(keys) == {}
        cache.keep(kept)
        assert cache.find(keys + some_keys(3, 100)) == kept
        assert (cache.counts.hits, cache.counts.misses) == (len(keys), len(keys) + 3)
        assert cache.find([]) == {}

    def test_keeping_again_replaces(self, tmp_path: Path) -> None:
        cache = self.made(tmp_path)
        (key,) = some_keys(1)
        for result in (True, ((1,),), None):
            cache.keep({key: result})
            assert cache.find([key]) == {key: result}

    def test_many_keys_at_once(self, tmp_path: Path) -> None:
        cache = self.made(tmp_path)
        kept: dict[bytes, Result] = dict.fromkeys(some_keys(2_000), True)
        cache.keep(kept)
        assert cache.find(list(kept)) == kept

    def test_bytes_are_bounded_and_new_entries_stay(self, tmp_path: Path) -> None:
        cache = self.made(tmp_path, max_bytes=400_000)
        long: Result = (("x" * 1_000,),)
        for start in range(0, 4_000, 50):
            cache.keep(dict.fromkeys(some_keys(50, start), long))
            assert len(cache.find(some_keys(50, start))) == 50
            assert self.bytes_of(cache) <= 400_000
        assert cache.counts.dropped > 3_000
        assert cache.find(some_keys(50)) == {}

    def bytes_of(self, cache: ResultCache) -> int:
        raise NotImplementedError

    @pytest.mark.parametrize("seed", range(2))
    def test_caching_changes_no_outcome(self, tmp_path: Path, seed: int) -> None:
        @settings(
            suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(20)
        )
        @given(st.lists(st.tuples(st.none() | st.text(max_size=3), st.integers(0, 3)), max_size=9))
        def compare(rows: list[StoredRow]) -> None:
            assert cached.evaluate(ONE, rows).outcomes == plain.evaluate(ONE, rows).outcomes

        plain, cached = (
            InProcessEvaluator(),
            CachedEvaluator(InProcessEvaluator(), [self.made(tmp_path)]),
        )
        compare()


class TestMemory(CacheContract):
    def made(self, directory: Path, max_bytes: int = 1 << 20) -> ResultCache:
        return MemoryResults(max_bytes)

    def bytes_of(self, cache: ResultCache) -> int:
        assert isinstance(cache, MemoryResults)
        return cache.bytes

    def test_the_least_recently_used_goes_first(self) -> None:
        cache = MemoryResults(max_bytes=3 * 250)
        first, second, third, fourth = some_keys(4)
        cache.keep({first: True, second: True, third: True})
        cache.find([first])
        cache.keep({fourth: True})
        assert set(cache.find([first, second, third, fourth])) == {first, third, fourth}

    def test_nothing_fits(self) -> None:
        cache = MemoryResults(max_bytes=10)
        cache.keep(dict.fromkeys(some_keys(3), True))
        assert len(cache) == cache.bytes == 0


class TestFile(CacheContract):
    def made(self, directory: Path, max_bytes: int = 1 << 20) -> ResultCache:
        return FileResults(directory / "results.sqlite", max_bytes)

    def bytes_of(self, cache: ResultCache) -> int:
        assert isinstance(cache, FileResults)
        cache.close()  # moves all of the write-ahead log into the file
        with sqlite3.connect(cache._file.path) as connection:
            (total,) = connection.execute("SELECT bytes FROM total").fetchone()
            (kept,) = connection.execute("SELECT sum(length(entry) + 100) FROM results").fetchone()
        connection.close()
        assert total == kept
        assert cache._file.path.stat().st_size < 1.5 * 400_000 + (50 << 10)
        return int(total)

    def test_it_outlives_its_process(self, tmp_path: Path) -> None:
        kept = dict.fromkeys(some_keys(10), True)
        program = (
            "import sys; from pathlib import Path\n"
            "from penstock.operators.results_file import FileResults\n"
            "FileResults(Path(sys.argv[1])).keep({bytes.fromhex(k): True for k in sys.argv[2:]})\n"
            "import os; os.kill(os.getpid(), 9)"
        )
        arguments = [str(tmp_path / "results.sqlite"), *(key.hex() for key in kept)]
        subprocess.run([sys.executable, "-c", program, *arguments], check=False)
        assert self.made(tmp_path).find(list(kept)) == kept
        assert os.stat(tmp_path / "results.sqlite").st_mode & 0o077 == 0

    def test_it_is_for_those_who_may_write_to_its_directory(self, tmp_path: Path) -> None:
        shared = tmp_path / "shared"
        shared.mkdir()
        shared.chmod(0o770)
        for directory, mode in ((tmp_path, 0o600), (shared, 0o660)):
            cache = FileResults(directory / "results")
            cache.keep(dict.fromkeys(some_keys(1), True))
            assert (directory / "results").stat().st_mode & 0o777 == mode
            cache.close()

    def test_two_at_once(self, tmp_path: Path) -> None:
        one, other = self.made(tmp_path), self.made(tmp_path)
        first, second = some_keys(2)
        one.keep({first: True})
        other.keep({second: False})
        assert one.find([first, second]) == other.find([first, second])
        assert len(one.find([first, second])) == 2

    def test_what_was_used_lately_stays(self, tmp_path: Path) -> None:
        now = 1_000_000.0
        cache = FileResults(tmp_path / "r", 400_000, clock=lambda: now)
        long: Result = (("x" * 1_000,),)
        favourite = some_keys(1)
        cache.keep({favourite[0]: True})
        for start in range(0, 1_000, 50):
            now += 2 * REFRESH_SECONDS
            assert cache.find(favourite)
            cache.keep(dict.fromkeys(some_keys(50, 1_000 + start), long))
        assert cache.counts.dropped > 500

    @pytest.mark.parametrize("damage", ["text", "begin", "middle", "entry", "release", "empty"])
    def test_damage_is_set_aside(self, tmp_path: Path, damage: str) -> None:
        path = tmp_path / "results.sqlite"
        cache = FileResults(path)
        kept: dict[bytes, Result] = {key: ((n, "x" * 50),) for n, key in enumerate(some_keys(500))}
        cache.keep(kept)
        cache.close()
        spoil(path, damage)
        again = FileResults(path)
        again.find(list(kept))  # nothing is raised, and nothing wrong is found
        assert all(kept[key] == result for key, result in again.find(list(kept)).items())
        assert again.set_aside == (damage != "empty")
        again.keep(kept)
        assert again.find(list(kept)) == kept
        assert path.with_name("results.sqlite.damaged").exists() == (damage != "empty")

    def test_damage_while_others_use_it(self, tmp_path: Path) -> None:
        """Whoever notices last does not set the new file aside."""
        path = tmp_path / "results.sqlite"
        first, second = FileResults(path), FileResults(path)
        kept: dict[bytes, Result] = {key: ((n, "x" * 50),) for n, key in enumerate(some_keys(500))}
        first.keep(kept)
        assert second.find(list(kept)) == kept
        first.close()
        second.close()
        for cache in (first, second):
            cache._file._connected()
        spoil(path, "middle")
        assert first.find(list(kept)) == {}
        first.keep(kept)
        second.find(list(kept))
        assert second.find(list(kept)) == kept

    @pytest.mark.parametrize("where", ["nowhere/results.sqlite", "."])
    def test_a_place_that_cannot_be_used(self, tmp_path: Path, where: str) -> None:
        cache = FileResults(tmp_path / where)
        (key,) = some_keys(1)
        cache.keep({key: True})
        assert cache.find([key]) == {}

    def test_a_locked_file_is_left_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("penstock.operators.shared_file.BUSY_SECONDS", 0.01)
        path = tmp_path / "results.sqlite"
        cache = FileResults(path)
        first, second = some_keys(2)
        cache.keep({first: True})
        with sqlite3.connect(path, isolation_level=None) as other:
            other.execute("BEGIN EXCLUSIVE")
            cache.keep({second: True})
            assert cache.find([first, second]) == {first: True}
            other.execute("ROLLBACK")
        cache.keep({second: True})
        assert len(cache.find([first, second])) == 2
        assert cache.set_aside == 0


def spoil(path: Path, damage: str) -> None:
    data = bytearray(path.read_bytes())
    if damage == "text":
        data[:] = b"not a database at all" * 100
    elif damage == "begin":
        data[:100] = os.urandom(100)
    elif damage == "middle":
        data[4096:] = bytes(len(data) - 4096)
    elif damage == "entry":
        at = data.index(b"x" * 50)
        data[at + 7] ^= 1
    elif damage == "empty":
        data.clear()
    path.write_bytes(data)
    if damage == "release":
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()


class Counting:
    """An evaluator that says what it is asked."""

    def __init__(self) -> None:
        self.asked: list[StoredRow] = []

    def evaluate(self, operator: Operator, rows: Sequence[StoredRow]) -> Evaluation:
        self.asked += rows
        failure = OperatorFailure(operator.name, operator.version, FailureKind.RAISED, "bad")
        return Evaluation([failure if row[0] == "bad" else True for row in rows], len(rows), 1.0)

    def close(self) -> None:
        self.asked.clear()


def test_nothing_is_asked_twice_but_what_failed(tmp_path: Path) -> None:
    counting = Counting()
    near, far = MemoryResults(), FileResults(tmp_path / "r")
    cached = CachedEvaluator(counting, [near, far])
    rows: list[StoredRow] = [("a", 1), ("bad", 1), ("a", 1), ("b", 1)]
    first = cached.evaluate(ONE, rows)
    assert counting.asked == [("a", 1), ("bad", 1), ("b", 1)]
    assert first.evaluated_rows == 3
    assert [isinstance(one, OperatorFailure) for one in first.outcomes] == [
        False,
        True,
        False,
        False,
    ]
    assert cached.evaluate(ONE, rows).outcomes == first.outcomes
    assert counting.asked[3:] == [("bad", 1)]
    assert cached.evaluate(ONE, [("a", 1)]) == Evaluation([True])
    cached.evaluate(NEWER, [("a", 1)])
    assert counting.asked[4:] == [("a", 1)]
    near.close()
    assert cached.evaluate(ONE, [("b", 1)]).evaluated_rows == 0  # the file knew
    assert len(near) == 1
