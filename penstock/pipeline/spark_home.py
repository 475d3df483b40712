"""Where Java finds Spark: the installed one, without the archives of its Python modules.

Java puts `python/lib/pyspark.zip` before everything else where its Python processes look for
modules, and what Python finds in an archive it compiles anew in each of them: 0.6 instead of 0.1 s
of processor time for every daemon, one after the other while a query starts. Without the archives
they find the same modules, compiled, where this process has them from.
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
    """For a Java that is started within. Whoever has set another home keeps it."""
    if VARIABLE in os.environ or not is_found_by_others():
        yield
        return
    home = scratch / "spark"
    link_spark(home)
    with set_for_now({VARIABLE: str(home)}):
        yield


@contextmanager
def set_for_now(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables of the environment, for a Java that is started within."""
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
    """Make a directory where Java finds the installed Spark."""
    home.mkdir(exist_ok=True)
    for part in _PARTS:
        if not (home / part).is_symlink():
            (home / part).symlink_to(_INSTALLED / part)


def is_found_by_others() -> bool:
    """Whether another process of this Python imports the same PySpark."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return str(_INSTALLED.parent) in {*site.getsitepackages(), site.getusersitepackages(), *given}
