"""Operators that fail on Spark: each costs the event that it fails on, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import Hub
from penstock.cli.main import app
from penstock.errors import OperatorError
from penstock.pipeline.preflight import check_operators
from penstock.pipeline.source import LogReader
from penstock.registry import Registry
from penstock.storage import Home, RecordKind, list_quarantine, replay
from tests.operators.plugins.misbehaving import BAD
from tests.operators.plugins.on_spark import ALL, FAILING, HARMLESS, MARKER, MENDED
from tests.pipeline.disturbing import PATIENCE_SECONDS, pipeline_process, said
from tests.pipeline.telling import content, values_of

TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, kind VARCHAR, n BIGINT, other BIGINT)"
PLACE = "tests.operators.plugins.on_spark"
ROWS_EACH = 4


class Story:
    """A home with a subscription for each operator, and one that calls none."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = Home.create(directory / "home")
        with Registry(self.home) as registry:
            registry.define(TABLE)
            for one in ALL:
                place = f"{PLACE}:{one.function.__name__}"
                registry.define(f"CREATE OPERATOR {one.name} AS '{place}'")
            self.asking = {
                one.name: registry.subscribe(
                    f"SELECT id FROM t WHERE kind = '{one.name}' AND {one.name}(n)"
                ).id
                for one in ALL
            }
            self.plain = registry.subscribe("SELECT id FROM t WHERE n > 0").id
        Hub(self.home.path).close()  # they are active now
        self._ids = {one.name: 100 * i for i, one in enumerate(ALL)}

    def id_of(self, kind: str, n: int) -> int:
        return self._ids[kind] + n

    def publish(self, op: str, kind: str, **row: int) -> None:
        given = {"table": "t", "op": op, "row": {"kind": kind, **row}}
        self.home.log.append([(RecordKind.EVENT, json.dumps(given).encode())])

    def run(self, **environ: str) -> None:
        environ[MARKER] = str(self.directory / "worker-killed")
        with pipeline_process(self.home, self.directory, 1000, **environ) as process:
            assert process.wait(PATIENCE_SECONDS) == 0, said(self.directory)

    def ids(self, subscription: int) -> list[int]:
        with Registry(self.home) as registry:
            found = content(self.home, registry, subscription)
        assert found is not None
        return sorted(int(str(one)) for (one,) in values_of(found).elements())

    def all_ids(self, kind: str) -> list[int]:
        return [self.id_of(kind, n) for n in range(BAD - 1, BAD + ROWS_EACH - 1)]


@pytest.mark.spark
def test_every_way_to_fail_concerns_one_event(tmp_path: Path) -> None:
    story = Story(tmp_path)
    for number in range(BAD - 1, BAD + ROWS_EACH - 1):
        for one in ALL:
            row = {"id": story.id_of(one.name, number), "n": number, "other": 0}
            story.publish("insert", one.name, **row)
    story.run()

    entries = list(list_quarantine(story.home))
    assert len(entries) == len(FAILING)
    for one, what in FAILING.items():
        (mine,) = (e.event for e in entries if f"operator {one.name} " in e.event.primary)
        assert what in mine.primary
        assert f'"id": {story.id_of(one.name, BAD)}' in mine.raw.decode()
        served = [n for n in story.all_ids(one.name) if n != story.id_of(one.name, BAD)]
        assert story.ids(story.asking[one.name]) == served
        assert set(story.all_ids(one.name)) & set(story.ids(story.plain)) == set(served)
    for harmless in HARMLESS:
        assert story.ids(story.asking[harmless.name]) == story.all_ids(harmless.name)
    assert (tmp_path / "worker-killed").exists()
    odd = story.asking["isOdd"]
    assert story.ids(odd) == [n for n in story.all_ids("isOdd") if n % 2 == 1]
    check_what_people_see(story)

    # A new version: events are replayed, and rows are looked at again when they change.
    replay(story.home, [entry.event.offset for entry in entries])
    for number in (BAD, BAD + 1):
        story.publish("update", "isOdd", id=story.id_of("isOdd", number), other=1)
    story.run(**{MENDED: "yes"})
    for one in FAILING:
        assert story.ids(story.asking[one.name]) == story.all_ids(one.name)
    changed = story.id_of("isOdd", BAD + 1)
    kept = [n for n in story.all_ids("isOdd") if n % 2 == 1 and n != story.id_of("isOdd", BAD)]
    assert story.ids(odd) == sorted([*kept, changed])
    assert len(list(list_quarantine(story.home))) == len(FAILING)


def check_what_people_see(story: Story) -> None:
    home = str(story.home.path)
    runner = CliRunner()
    listed = runner.invoke(app, ["quarantine", home, "list"])
    assert all(one.name in listed.output for one in FAILING)
    status = json.loads(runner.invoke(app, ["status", home, "--json"]).output)
    assert status["last_batch"]["totals"]["bad"] == len(FAILING)
    change = json.dumps({"table": "t", "row": {"id": 9, "kind": "raises", "n": BAD}})
    explained = runner.invoke(app, ["explain", home, str(story.asking["raises"]), change])
    assert "operator raises raised an error" in explained.output


def test_a_missing_operator_is_named_before_a_run(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        registry.define(TABLE)
        registry.define("CREATE OPERATOR isGone (n BIGINT) AS 'no_such_module:is_gone'")
        check_operators(home)  # nobody calls it
        registry.subscribe("SELECT id FROM t WHERE isGone(n)")
    with pytest.raises(OperatorError, match="isGone"):
        check_operators(home)
    ran = CliRunner().invoke(app, ["run", str(home.path), "--once"])
    assert ran.exit_code != 0
    assert "isGone" in ran.output + (ran.stderr or "")


@pytest.mark.parametrize("has_operators", [False, True])
def test_a_few_events_are_evaluated_by_all_cores(tmp_path: Path, has_operators: bool) -> None:
    """Events of streams are evaluated where they are read."""
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        registry.define(TABLE)
        if has_operators:
            registry.define(f"CREATE OPERATOR isOdd AS '{PLACE}:is_odd'")
    home.log.append([(RecordKind.EVENT, b"{}")] * 50)
    reader = LogReader(str(home.path), 1000, 2)
    start = reader.initialOffset()
    ranges = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    assert len(ranges) == (2 if has_operators else 1)
    assert (ranges[0].start, ranges[-1].end) == (0, home.log.end)
    reader.stop()
