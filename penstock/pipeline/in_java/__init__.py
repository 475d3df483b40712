"""What has to be done within Java: a few lines each, where Spark takes its time over nothing.

* `QuickLocalFileSystem`: Hadoop, through which Spark writes checkpoints, lacks its native library
  in Spark's Python package. Without it, it starts a process (chmod) for every file that it makes:
  twelve in every batch, of some milliseconds each, and tasks wait for them.
* `SettingsElsewhere`: the threads that serve a stateful task belong to no query, so the settings
  of a query do not reach them. In every task of every batch they would write programs for our two
  columns (65 of 590 ms of processor time for a small batch).

They are compiled by the compiler that Spark brings for its own programs, when Java has started.
Where there is none, or Java does not find what it compiled, everything works, and takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

LOCAL_FILES_SETTING = "spark.hadoop.fs.file.impl"
"""Which class is responsible for local files."""

_PACKAGE = "penstock"
_LOCAL_FILES = f"{_PACKAGE}.QuickLocalFileSystem"

_NOT_THERE = (Py4JError, TypeError)  # TypeError: what PySpark makes of a class that is not there


def class_directory(scratch: Path) -> Path:
    """Where Java has to look for the classes: it must be there when Java starts."""
    directory = scratch / "classes"
    directory.mkdir(exist_ok=True)
    return directory


def sources() -> list[Path]:
    return sorted(Path(__file__).parent.glob("*.java"))


def compiled(gateway: JavaGateway) -> dict[str, bytes]:
    """The code of all classes, by the names of their files. Py4JError, where there is no
    compiler."""
    found: dict[str, bytes] = {}
    for source in sources():
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(source.read_text(encoding="utf-8"))
        for name, code in compiler.getBytecodes().items():
            found[f"{name.replace('.', '/')}.class"] = code
    return found


def compile_into(directory: Path, gateway: JavaGateway) -> None:
    """Compile the classes into a directory where Java looks for them, if that can be done."""
    with suppress(*_NOT_THERE):
        for name, code in compiled(gateway).items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(code)


def settings_to_use_them(gateway: JavaGateway) -> dict[str, str]:
    """What makes Spark use the classes, if Java finds them."""
    try:
        gateway.jvm.java.lang.Class.forName(_LOCAL_FILES)
    except _NOT_THERE:
        return {}
    return {LOCAL_FILES_SETTING: _LOCAL_FILES}


def settings_elsewhere(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Give settings to the threads of this Java that belong to no query. Every new session of
    Spark's, and so every query that is started, takes them away again."""
    assert spark._jvm is not None
    with suppress(*_NOT_THERE):
        getter = spark._jvm.penstock.SettingsElsewhere()
        for name, value in settings.items():
            getter.set(name, value)
        spark._jvm.org.apache.spark.sql.internal.SQLConf.setSQLConfGetter(getter)
