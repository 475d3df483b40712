"""Small Java classes that replace parts of Spark which are slow for no benefit here.

* `QuickLocalFileSystem`: Spark writes checkpoints through Hadoop, whose native library is missing
  from Spark's Python package. Without it, Hadoop starts a process (chmod) for every new file:
  twelve per batch, of some milliseconds each, and tasks wait for them.
* `SettingsElsewhere`: the threads that serve a stateful task belong to no query, so the settings of
  a query do not reach them. In every task of every batch they would generate code for our two
  columns (65 of 590 ms of processor time for a small batch).

They are compiled after Java has started, by the compiler that Spark brings for generated code.
Without that compiler, or if Java does not find the compiled classes, everything still works, only
slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

LOCAL_FILES_SETTING = "spark.hadoop.fs.file.impl"
"""The class that handles local files."""

_PACKAGE = "penstock"
_LOCAL_FILES = f"{_PACKAGE}.QuickLocalFileSystem"

_NOT_THERE = (Py4JError, TypeError)  # TypeError: what PySpark raises for a missing class


def class_directory(scratch: Path) -> Path:
    """The directory of the classes on the class path: it must exist when Java starts."""
    directory = scratch / "classes"
    directory.mkdir(exist_ok=True)
    return directory


def sources() -> list[Path]:
    return sorted(Path(__file__).parent.glob("*.java"))


def compiled(gateway: JavaGateway) -> dict[str, bytes]:
    """The bytecode of all classes by file name. Py4JError if there is no compiler."""
    found: dict[str, bytes] = {}
    for source in sources():
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(source.read_text(encoding="utf-8"))
        for name, code in compiler.getBytecodes().items():
            found[f"{name.replace('.', '/')}.class"] = code
    return found


def compile_into(directory: Path, gateway: JavaGateway) -> None:
    """Compile the classes into a directory on the class path, if possible."""
    with suppress(*_NOT_THERE):
        for name, code in compiled(gateway).items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(code)


def settings_to_use_them(gateway: JavaGateway) -> dict[str, str]:
    """The Spark settings that select the classes, if Java finds them."""
    try:
        gateway.jvm.java.lang.Class.forName(_LOCAL_FILES)
    except _NOT_THERE:
        return {}
    return {LOCAL_FILES_SETTING: _LOCAL_FILES}


def settings_elsewhere(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Set properties for threads of this Java that belong to no query. Every new Spark session, and
    so every query that is started, resets them."""
    assert spark._jvm is not None
    with suppress(*_NOT_THERE):
        getter = spark._jvm.penstock.SettingsElsewhere()
        for name, value in settings.items():
            getter.set(name, value)
        spark._jvm.org.apache.spark.sql.internal.SQLConf.setSQLConfGetter(getter)
