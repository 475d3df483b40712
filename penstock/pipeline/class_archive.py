"""A class data sharing archive for Spark, so that Java starts quickly.

At start, Java loads, verifies and links thousands of classes from 250 libraries: half of the ten
seconds of processor time that a start of Spark takes. Class data sharing keeps the result in an
archive, valid only for exactly the same Java, libraries and class path. So all of these have a
place of their own in the user's cache directory:

    spark/        links to the installed Spark, as in `spark_home.py`
    conf/         Spark's settings: none, because a class path with files in it cannot be archived
    penstock.jar  the classes of `in_java`, compiled
    classes.jsa   the archive; it is put there last, so where it is all the rest is

The archive is made once per machine, by a low-priority process, while the first session runs
without it. A Java that cannot use it logs that and loads classes as usual.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from penstock.kernels.cache_directory import private_directory
from penstock.kernels.preparation import start_beside
from penstock.pipeline.in_java import sources
from penstock.pipeline.java import java_executable
from penstock.pipeline.spark_home import (
    CONF_DIRECTORY,
    CONF_VARIABLE,
    VARIABLE,
    is_found_by_others,
    link_spark,
    set_for_now,
)

DIRECTORY_VARIABLE = "PENSTOCK_JAVA_CACHE"
"""Overrides the user's cache directory; empty: no archive."""
KEPT_ARCHIVES = 2
"""Archives kept per user, 170 MB each. Older ones belong to other Pythons, Javas or releases."""
RETRY_SECONDS = 24 * 3600.0
"""Wait after a failure. A full disk may have room later, but no session should spend half a minute
on another attempt."""
LOW_PRIORITY = 10
"""Niceness. Not the lowest priority: Spark times out if it gets no processor beside the session."""
FORMAT = 1


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The directory of one archive, which may not have been made yet."""

    directory: Path
    made_at: Path | None = None
    """Where Java writes an archive on exit, instead of using one."""

    @property
    def spark_home(self) -> Path:
        return self.directory / "spark"

    @property
    def conf(self) -> Path:
        return self.directory / "conf"

    @property
    def library(self) -> Path:
        return self.directory / "penstock.jar"

    @property
    def file(self) -> Path:
        return self.directory / "classes.jsa"

    @property
    def is_ready(self) -> bool:
        return self.file.exists()

    @contextmanager
    def being_made(self) -> Iterator[bool]:
        """Whether this process holds the lock for making the archive."""
        with open(self.directory / "lock", "ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True

    @property
    def options(self) -> str:
        """Java options that use or make the archive. Log4j finds its settings by itself only if
        their directory is on the class path."""
        log4j = f'-Dlog4j2.configurationFile="{CONF_DIRECTORY / "log4j2.properties"}"'
        if self.made_at is not None:
            return f'{log4j} -XX:ArchiveClassesAtExit="{self.made_at}"'
        return f'{log4j} -XX:SharedArchiveFile="{self.file}"'

    def launching(self) -> AbstractContextManager[None]:
        """The environment for starting Java."""
        return set_for_now({VARIABLE: str(self.spark_home), CONF_VARIABLE: str(self.conf)})

    def lay_out(self) -> None:
        """Create everything except the library and the archive."""
        self.conf.mkdir(exist_ok=True)
        link_spark(self.spark_home)


def class_archive() -> ClassArchive | None:
    """The directory for this Java, Python and release. None if nothing can be cached, or if the
    user has set another Spark or other settings for it."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    java = java_executable(os.environ)
    if chosen == "" or java is None or not _is_ours() or not is_found_by_others():
        return None
    directory = private_directory("java", chosen)
    if directory is None:
        return None
    try:
        place = directory / _key(java.resolve())
        place.mkdir(exist_ok=True, mode=0o700)
    except OSError:
        return None
    return ClassArchive(place)


def _is_ours() -> bool:
    conf = os.environ.get(CONF_VARIABLE, str(CONF_DIRECTORY))
    return VARIABLE not in os.environ and conf == str(CONF_DIRECTORY)


def _key(java: Path) -> str:
    """A hash of everything an archive depends on. Java itself checks its libraries."""
    status = java.stat()
    digest = hashlib.sha256(
        f"{FORMAT} {java} {status.st_size} {status.st_mtime_ns} {pyspark.__file__} "
        f"{pyspark.__version__} {os.cpu_count()}".encode()
    )
    for source in sources():
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def start_making(archive: ClassArchive) -> subprocess.Popen[bytes] | None:
    """Make an archive in a process that outlives this one; None if another process is making it, or
    if an attempt failed within the last day."""
    with archive.being_made() as is_mine:
        if not is_mine or archive.is_ready or _failed_lately(archive):
            return None
    return start_beside("penstock.pipeline.making_archives", "beside")


def note_failure(archive: ClassArchive, reason: str) -> None:
    """Suppresses further attempts for a day, except on explicit request."""
    _failed(archive).write_text(f"{reason}\n", encoding="utf-8")


def forget_failure(archive: ClassArchive) -> None:
    _failed(archive).unlink(missing_ok=True)


def failure(archive: ClassArchive) -> str:
    """Why the last attempt failed; empty if there was none, or if it succeeded."""
    try:
        return _failed(archive).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def remove_others(archive: ClassArchive) -> None:
    """Remove all but the newest archives. A Java that uses one of them has it mapped, and is not
    affected."""
    places = [one for one in archive.directory.parent.iterdir() if one.is_dir()]
    by_age = sorted(places, key=lambda one: one.stat().st_mtime, reverse=True)
    for old in [one for one in by_age if one != archive.directory][KEPT_ARCHIVES - 1 :]:
        shutil.rmtree(old, ignore_errors=True)


def _failed_lately(archive: ClassArchive) -> bool:
    try:
        return time.time() - _failed(archive).stat().st_mtime < RETRY_SECONDS
    except OSError:
        return False


def _failed(archive: ClassArchive) -> Path:
    return archive.directory / "failed"
