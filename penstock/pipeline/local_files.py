"""Local files for Spark, without a process for each of them.

Hadoop, through which Spark writes checkpoints, lacks its native library in Spark's Python package.
Without it, it starts a process (chmod) for every file that it makes: twelve in every batch, of
some milliseconds each, and tasks wait for them. A few lines of Java do the same within Java. They
are compiled by the compiler that Spark brings for its own programs, when Java has started.
"""

from __future__ import annotations

from pathlib import Path

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError

SETTING = "spark.hadoop.fs.file.impl"
"""Which class is responsible for local files."""

_CLASS = "penstock.QuickLocalFileSystem"
_SOURCE = Path(__file__).parent / "conf" / "QuickLocalFileSystem.java"


def class_directory(scratch: Path) -> Path:
    """Where Java has to look for the class: it must be there when Java starts."""
    directory = scratch / "classes"
    directory.mkdir(exist_ok=True)
    return directory


def compiled(gateway: JavaGateway, directory: Path) -> dict[str, str]:
    """Compile the class into that directory; the setting that makes Spark use it. Nothing, if this
    Spark has no such compiler, or its Java does not look there: then local files are as slow as
    ever."""
    try:
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_SOURCE.read_text(encoding="utf-8"))
        for name, code in compiler.getBytecodes().items():
            path = directory / f"{name.replace('.', '/')}.class"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(code)
        gateway.jvm.java.lang.Class.forName(_CLASS)
    except (Py4JError, TypeError):  # TypeError: a class that is not there
        return {}
    return {SETTING: _CLASS}
