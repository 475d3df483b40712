"""Where Java finds Spark: the installed one, without the archives of its Python modules.

Java puts `python/lib/pyspark.zip` before everything else where its Python processes look for
modules, and what Python finds in an archive it compiles anew in each of them: 0.6 instead of 0.1 s
of processor time for every daemon, one after the other while a query starts. Without the archives
they find the same modules, compiled, where this process has them from.
"""

from __future__ import annotations

import os
import site
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

VARIABLE = "SPARK_HOME"
_PARTS = ("bin", "jars")
_INSTALLED = Path(pyspark.__file__).parent


@contextmanager
def lean_spark_home(scratch: Path) -> Iterator[None]:
    """For a Java that is started within. Whoever has set another home keeps it."""
    if VARIABLE in os.environ or not _is_found_by_others():
        yield
        return
    home = scratch / "spark"
    home.mkdir(exist_ok=True)
    for part in _PARTS:
        if not (home / part).is_symlink():
            (home / part).symlink_to(_INSTALLED / part)
    os.environ[VARIABLE] = str(home)
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def _is_found_by_others() -> bool:
    """Whether another process of this Python imports the same PySpark."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return str(_INSTALLED.parent) in {*site.getsitepackages(), site.getusersitepackages(), *given}
