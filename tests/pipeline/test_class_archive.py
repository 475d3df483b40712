"""The archive from which Java starts: who makes it, who uses it, and what if it is of no use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import penstock
from penstock.errors import PipelineError
from penstock.pipeline import class_archive as module
from penstock.pipeline import making_archives
from penstock.pipeline.class_archive import (
    DIRECTORY_VARIABLE,
    ClassArchive,
    class_archive,
    failure,
    forget_failure,
    note_failure,
    remove_others,
    start_making,
)
from penstock.pipeline.session import _archive

SESSION = """
import sys
from pathlib import Path
from penstock.pipeline.in_java import LOCAL_FILES_SETTING
from penstock.pipeline.session import spark_session

log = f"-Xlog:class+load:file={sys.argv[1]}"
conf = {"spark.driver.extraJavaOptions": log} if sys.argv[1] else {}
spark = spark_session(master="local[1]", conf=conf, log_file=Path(sys.argv[2]))
assert spark.conf.get(LOCAL_FILES_SETTING) == "penstock.QuickLocalFileSystem"
print(spark.range(5).count())
"""


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    """The place for one, in an empty directory."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "java"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    found = class_archive()
    assert found is not None
    return found


@pytest.mark.spark
@pytest.mark.slow
def test_made_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = class_archive()
    if archive is None or not archive.is_ready:  # `make test` makes it before the tests begin
        monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "java"))
        # Not at low priority: on a busy machine Spark would lose patience.
        command = [sys.executable, "-m", "penstock.pipeline.making_archives"]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        archive = class_archive()
    assert archive is not None
    assert archive.is_ready

    loaded = _session(tmp_path)
    archived = [line for line in loaded if "shared objects file (top)" in line]
    of_spark = [line for line in archived if "org.apache.spark." in line]
    assert len(archived) > len(loaded) / 2
    assert of_spark
    assert any("penstock.QuickLocalFileSystem" in line for line in archived)


@pytest.mark.spark
@pytest.mark.slow
def test_damaged(archive: ClassArchive, tmp_path: Path) -> None:
    archive.lay_out()
    making_archives._make_library(archive.library)
    archive.file.write_bytes(b"this is no archive".ljust(1 << 16, b"\0"))
    assert not any("shared objects file (top)" in line for line in _session(tmp_path))


def _session(directory: Path) -> list[str]:
    """Which classes the Java of a session has loaded, and from where."""
    classes, log = directory / "classes.log", directory / "java.log"
    command = [sys.executable, "-c", SESSION, str(classes), str(log)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "5"), ran.stderr
    return classes.read_text().splitlines()


def test_a_session_without_one_has_it_made(archive: ClassArchive) -> None:
    with mock.patch.object(module, "start_beside") as started:
        assert _archive() is None
        assert started.call_count == 1
        with archive.being_made():
            assert _archive() is None
        assert started.call_count == 1
        note_failure(archive, "no reason")
        assert _archive() is None
        assert started.call_count == 1
        os.utime(archive.directory / "failed", (0, 0))  # long ago
        assert _archive() is None
        assert started.call_count == 2
        note_failure(archive, "no reason")
        forget_failure(archive)
        assert _archive() is None
        assert started.call_count == 3
        archive.file.touch()
        assert _archive() == archive
        assert started.call_count == 3


def test_a_failure_is_remembered(archive: ClassArchive) -> None:
    with (
        mock.patch.object(os, "nice") as nice,
        mock.patch.dict(os.environ),
        mock.patch.object(making_archives, "make", side_effect=PipelineError("no room")),
        pytest.raises(PipelineError, match="no room"),
    ):
        making_archives.main(["beside"])
    nice.assert_called_once()
    assert failure(archive) == "PipelineError: no room"


def test_it_is_made_where_it_is_not_in_the_way(archive: ClassArchive) -> None:
    """Who asks for it may end before it is made, and its directory with it: Java does not start in
    a directory that is gone."""
    with mock.patch.object(subprocess, "Popen") as started:
        assert start_making(archive) is not None
    assert started.call_args.kwargs["cwd"] == Path(penstock.__file__).parents[1]
    assert started.call_args.args[0][-1] == "beside"


def test_where_there_is_no_java(archive: ClassArchive) -> None:
    assert archive.directory.exists()
    with mock.patch.dict(os.environ, {"JAVA_HOME": "/nowhere"}):
        assert class_archive() is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("SPARK_HOME", "/opt/spark"), ("SPARK_CONF_DIR", "/etc/spark"), (DIRECTORY_VARIABLE, "")],
)
@pytest.mark.usefixtures("archive")
def test_no_archive_for_what_others_choose(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert class_archive() is None


def test_another_java_has_another(archive: ClassArchive, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "java").write_text("#!/bin/sh\n")
    with mock.patch.dict(os.environ, {"JAVA_HOME": str(other)}):
        found = class_archive()
    assert found is not None
    assert found.directory.parent == archive.directory.parent
    assert found != archive


def test_a_few_are_kept(archive: ClassArchive) -> None:
    for i in range(4):
        old = archive.directory.parent / f"old{i}"
        old.mkdir()
        os.utime(old, (i, i))
    remove_others(archive)
    kept = {one.name for one in archive.directory.parent.iterdir()}
    assert kept == {archive.directory.name, "old3"}
