"""Makes the archive of `class_archive.py`: a process runs a small home through the pipeline, so
that Java loads every class a run needs, and Java writes the archive on exit."""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from penstock.errors import PipelineError
from penstock.kernels.preparation import GEAR_VARIABLE
from penstock.pipeline.class_archive import (
    LOW_PRIORITY,
    ClassArchive,
    class_archive,
    note_failure,
    remove_others,
)
from penstock.pipeline.in_java import compiled
from penstock.pipeline.java import java_executable
from penstock.pipeline.run import run
from penstock.pipeline.session import end_java, spark_session
from penstock.registry import Registry
from penstock.storage import Home, RecordKind

MAKING_SECONDS = 3600.0
"""Timeout for Java to write the archive on exit: it takes fifteen seconds on an idle machine."""
STATEMENTS = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT)",
    "CREATE TABLE u (id BIGINT PRIMARY KEY, k BIGINT)",
)
SUBSCRIPTION = "SELECT * FROM t JOIN u USING (k) WHERE t.id > 0"
EVENTS = (
    b'{"table": "t", "op": "insert", "row": {"id": 1, "k": 1}}',
    b'{"table": "u", "op": "insert", "row": {"id": 1, "k": 1}}',
    b'{"table": "t", "op": "delete", "row": {"id": 2}}',
)


def make(archive: ClassArchive) -> bool:
    """Make an archive; False if another process is making it, or if it exists."""
    with archive.being_made() as is_mine:
        if not is_mine or archive.is_ready:
            return False
        archive.lay_out()
        _make_library(archive.library)
        aside = archive.directory / "classes.new"
        with tempfile.TemporaryDirectory(prefix="penstock-") as scratch:
            home = _small_home(Path(scratch))
            spark_session(
                log_file=archive.directory / "java.log", archive=replace(archive, made_at=aside)
            )
            run(home, once=True)
        end_java(MAKING_SECONDS)
        if not aside.exists():
            raise PipelineError("Java wrote no archive", detail=f"see {archive.directory}/java.log")
        aside.replace(archive.file)
        remove_others(archive)
    return True


def _make_library(path: Path) -> None:
    """Compile the classes of `in_java` with a Java started for that only."""
    jars = Path(pyspark.__file__).parent / "jars"
    port, token = launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=str(jars / "*"),
        java_path=str(java_executable(os.environ)),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        code = compiled(gateway)
    finally:
        gateway.shutdown()
    aside = path.with_suffix(".new")
    with zipfile.ZipFile(aside, "w") as library:
        for name, data in sorted(code.items()):
            library.writestr(name, data)
    aside.replace(path)


def _small_home(directory: Path) -> Path:
    home = Home.create(directory / "home")
    with Registry(home) as registry:
        for sql in STATEMENTS:
            registry.define(sql)
        registry.subscribe(SUBSCRIPTION)
    home.log.append([(RecordKind.EVENT, event) for event in EVENTS])
    return home.path


def main(arguments: Sequence[str]) -> None:
    """With `beside`, at low priority; that is how `start_making` calls it."""
    if "beside" in arguments:
        os.nice(LOW_PRIORITY)
    os.environ[GEAR_VARIABLE] = "plain"  # compiling kernels does not pay for a few events
    archive = class_archive()
    if archive is None:
        return
    try:
        make(archive)
    except Exception as error:
        note_failure(archive, f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
