"""A SPARK_HOME for Java: the installed Spark without the archives of its Python modules.

Java puts `python/lib/pyspark.zip` first on the module path of its Python processes, and Python
compiles modules from an archive anew in every process: 0.6 instead of 0.1 s of processor time for
each daemon, one after the other while a query starts. Without the archives they import the same
modules, already compiled, from where this process has them.
"""

from __future__ import annotations

import os
import site
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

VARIABLE = "SPARK_HOME"
CONF_VARIABLE = "SPARK_CONF_DIR"
CONF_DIRECTORY = Path(__file__).parent / "conf"
_PARTS = ("bin", "jars")
_INSTALLED = Path(pyspark.__file__).parent


@contextmanager
def lean_spark_home(scratch: Path) -> Iterator[None]:
    """For a Java started within the block. A SPARK_HOME set by the user is kept."""
    if VARIABLE in os.environ or not is_found_by_others():
        yield
        return
    home = scratch / "spark"
    link_spark(home)
    with set_for_now({VARIABLE: str(home)}):
        yield


@contextmanager
def set_for_now(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a Java started within the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def link_spark(home: Path) -> None:
    """Create a directory that links to the installed Spark."""
    home.mkdir(exist_ok=True)
    for part in _PARTS:
        if not (home / part).is_symlink():
            (home / part).symlink_to(_INSTALLED / part)


def is_found_by_others() -> bool:
    """Whether another process of this Python would import the same PySpark."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return str(_INSTALLED.parent) in {*site.getsitepackages(), site.getusersitepackages(), *given}
