"""The one place that starts Spark.

A session stays on this machine unless configured otherwise, prints nothing, leaves nothing in the
current directory, and has the settings that streaming state depends on.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

import py4j
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from penstock.errors import PipelineError
from penstock.pipeline import allocator as kept_memory
from penstock.pipeline.class_archive import ClassArchive, class_archive, start_making
from penstock.pipeline.in_java import class_directory, compile_into, settings_to_use_them
from penstock.pipeline.java import HOW_TO_INSTALL, find_java, trouble_with
from penstock.pipeline.scratch import Scratch
from penstock.pipeline.spark_home import CONF_DIRECTORY, CONF_VARIABLE, lean_spark_home
from penstock.storage import make_directory, open_appending, os_errors

# State is stored by partition, and a checkpoint keeps its number of partitions: it cannot be
# changed once a query has run. Two suits a small machine (218 ms for a small stateful batch, 321 ms
# with four, 478 ms with eight, on two cores), and join groups are spread over hash buckets of their
# own, so more partitions would not spread the work more finely.
STATE_PARTITIONS = 2

LOOPBACK = "127.0.0.1"

# Names of sockets have at most 108 characters (104 on macOS); Spark's own part has 43.
MAX_SOCKET_DIRECTORY = 60

OTHERS_OUT = 0o077  # a umask

FEW_CORES = 2

_PY4J = Path(py4j.__file__).parent

# Lines of Spark's log that an error quotes.
QUOTED_LOG_LINES = 12

# As on a cluster. Local Spark would fail a batch when the first worker is killed.
TASK_TRIES = 4

# Java takes about half a second to exit; it must not delay our own exit for long.
JAVA_EXIT_TIMEOUT_SECONDS = 10.0

JVM_EXIT_GRACE_SECONDS = 2.0  # a process that is killed closes its connections before it is gone


def spark_session(
    app_name: str = "penstock",
    *,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    ui: bool = False,
    log_file: Path | None = None,
    held_descriptors: Sequence[int] = (),
    umask: int = OTHERS_OUT,
    archive: ClassArchive | None = None,
) -> SparkSession:
    """Start Spark, or return the session that this process already has.

    `conf` wins over every setting chosen here. Given to a session that already runs, it may hold
    only what Spark lets a running session change.

    Everything that Java, Spark and the Python workers print goes to the end of `log_file`. Without
    one it goes to a temporary file, which is lost when the process ends.

    `held_descriptors` are open files, meant for locks, that Java inherits. When Python is killed
    Java lives on for half a second or so, and may finish a batch: a lock (flock) held by both is
    released only when both are gone.

    `umask` is that of Java and the workers: what they write is readable by this user only, unless
    the home is shared with a group (`penstock.storage.file_access.umask_of`).

    `archive` is given only when it is being made; otherwise an existing one is used.

    A process has one Java, which keeps the log file, the descriptors and the umask it was started
    with.
    """
    ended = end_of_java()
    if ended is not None:
        raise ended
    if SparkContext._active_spark_context is not None:
        return _adjusted(SparkSession.builder.getOrCreate(), conf or {})
    is_local = _is_local((conf or {}).get("spark.master", master))
    archive = (archive or _archive()) if is_local else None
    settings = _settings(app_name, master, ui, umask, archive) | dict(conf or {})
    _set_environment(local=is_local)
    spark_conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    _quieten_py4j()
    with _place_of_spark(archive) if is_local else contextlib.nullcontext():
        gateway = SparkContext._gateway or _launch_java(
            spark_conf, log_file, held_descriptors, umask
        )
    if is_local:
        if archive is None:
            compile_into(class_directory(_scratch().path), gateway)
        for name, value in settings_to_use_them(gateway).items():
            spark_conf.setIfMissing(name, value)
    try:
        _quieten(SparkContext(conf=spark_conf, gateway=gateway))
        return SparkSession.builder.getOrCreate()
    except (Py4JError, PySparkException, OSError) as error:
        raise end_of_java(JVM_EXIT_GRACE_SECONDS) or PipelineError(
            "Spark refused to start.",
            detail=_first_line(error),
            hint="Check the master and the settings given to the session.",
        ) from error


def _archive() -> ClassArchive | None:
    """The archive for Java to use. If there is none yet, a background process starts making it."""
    archive = class_archive()
    if archive is None or archive.is_ready:
        return archive
    start_making(archive)
    return None


def _place_of_spark(archive: ClassArchive | None) -> AbstractContextManager[None]:
    return lean_spark_home(_scratch().path) if archive is None else archive.launching()


def _settings(
    app_name: str, master: str, ui: bool, umask: int, archive: ClassArchive | None
) -> dict[str, str]:
    settings = {
        "spark.app.name": app_name,
        "spark.master": retrying(master),
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        # Hadoop sets permissions itself, as if the umask of the process were 022.
        "spark.hadoop.fs.permissions.umask-mode": f"{umask:03o}",
        # Timestamps mean the same on every machine.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Over TCP, Java sends a task to its worker in two small packets, and the second waits 40 ms
        # for the acknowledgement of the first. A Unix socket also excludes all other users.
        "spark.python.unix.domain.socket.enabled": "true",
        # A worker keeps its compiled kernels and mapped indexes from batch to batch.
        "spark.python.worker.reuse": "true",
        "spark.sql.shuffle.partitions": str(STATE_PARTITIONS),
        # The only store that transformWithState accepts.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        # Block size of broadcasts, 4 MiB by default. Ours, some ten per batch, have some kilobytes,
        # and Java's collector treats large blocks as special cases.
        "spark.broadcast.blockSize": "256k",
        # Write changes instead of whole snapshots: 250 -> 200 ms for a small batch.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # 180 -> 105 ms for a small batch on a local disk, against the default manager.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing"
            ".FileSystemBasedCheckpointFileManager"
        ),
    }
    if _is_local(master):
        scratch = _scratch().path
        classes = class_directory(scratch) if archive is None else archive.library
        settings |= {
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.local.dir": str(scratch),
            "spark.python.unix.domain.socket.dir": str(_socket_directory(scratch)),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.driver.extraClassPath": str(classes),
            # The work is done in Python and in RocksDB: Java's optimising compiler costs more than
            # it gains (25 instead of 51 s of processor time without it for a run of 10,000 events,
            # at the same speed).
            "spark.driver.defaultJavaOptions": (
                f'-Djava.io.tmpdir="{scratch}" -XX:TieredStopAtLevel=1{_collector()}'
                f"{'' if archive is None else f' {archive.options}'}"
            ),
        }
    return settings


def _collector() -> str:
    """With little to collect and no spare core, the serial collector is the cheapest: 0.2 GB less
    memory, and a few percent of Java's time."""
    return " -XX:+UseSerialGC" if (os.cpu_count() or 1) <= FEW_CORES else ""


def _socket_directory(scratch: Path) -> Path:
    """A directory for sockets with a short path: the name of a socket may not exceed about a
    hundred characters. It is private, so that no other user can talk to our workers."""
    return scratch if len(str(scratch)) <= MAX_SOCKET_DIRECTORY else _socket_scratch().path


def _is_local(master: str) -> bool:
    return master.startswith("local")


def retrying(master: str) -> str:
    """Adds the number of attempts per task to a local master; the default is one attempt."""
    cores = "1" if master == "local" else re.sub(r"local\[(\*|\d+)\]", r"\1", master)
    return master if cores == master else f"local[{cores},{TASK_TRIES}]"


def _set_environment(*, local: bool) -> None:
    """Set what Spark reads only from the environment. Java and the workers inherit it."""
    os.environ.setdefault(CONF_VARIABLE, str(CONF_DIRECTORY))
    if local:
        # Local workers must run exactly this Python, whatever was set before: another one has other
        # packages, and another version is refused.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        # The web UI listens here too.
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        for name, value in kept_memory.ENVIRONMENT.items():
            os.environ.setdefault(name, value)
    else:
        # On other machines Penstock is expected in the same place, unless this is set.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _launch_java(
    conf: SparkConf, log_file: Path | None, held_descriptors: Sequence[int], umask: int
) -> JavaGateway:
    scratch = _scratch()
    log_path = log_file if log_file is not None else scratch.path / "spark.log"
    with os_errors("write Spark's log", log_path):
        log_path.parent.parent.mkdir(parents=True, exist_ok=True)
        make_directory(log_path.parent)
        opened = open_appending(log_path)
    with opened as log:
        begin = log.tell()
        try:
            gateway: JavaGateway = launch_gateway(  # type: ignore[no-untyped-call]
                conf,
                popen_kwargs={
                    "stdout": log,
                    "stderr": subprocess.STDOUT,
                    "pass_fds": (*_scratch_locks(), *held_descriptors),
                    "umask": umask,
                },
            )
        except (PySparkException, OSError) as error:
            raise _start_failure(log_path, begin) from error
    atexit.register(_end_java, gateway)
    return gateway


def _quieten(context: SparkContext) -> None:
    """When Java is killed or its callbacks fail, threads of PySpark print traces. The caller that
    waits for Java reports the cause."""
    server = context._accumulatorServer
    server.handle_error = lambda *_: None  # type: ignore[method-assign]


def _quieten_py4j() -> None:
    """The same for Py4J, as soon as a gateway exists."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs some errors to the root logger, which would print them."""
    return not Path(record.pathname).is_relative_to(_PY4J)


def _start_failure(log_path: Path, begin: int) -> PipelineError:
    trouble = trouble_with(find_java(os.environ))
    if trouble:
        return PipelineError("Spark cannot run here.", detail=trouble, hint=HOW_TO_INSTALL)
    with log_path.open("rb") as log:
        log.seek(begin)
        lines = log.read().decode(errors="replace").strip().splitlines()
    telling = [line for line in lines if not line.startswith("\tat ")]
    return PipelineError(
        "Spark's Java process ended while starting.",
        detail="\n".join(telling[-QUOTED_LOG_LINES:]) or "It printed nothing.",
        hint="Check the settings given to the session, and how much memory is free.",
    )


def end_of_java(patience_seconds: float = 0.0) -> PipelineError | None:
    """The error to report if Java has ended. PySpark keeps one connection to Java per process, and
    cannot reconnect."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        code = process.wait(patience_seconds)
    except subprocess.TimeoutExpired:
        return None
    return PipelineError(
        "Spark's Java process has ended.",
        detail=_how_it_ended(code),
        hint="Start Penstock again: it goes on where it stopped. If nobody killed it on purpose, "
        "look how much memory was free.",
    )


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"Its exit code was {code}."
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown to Python"
    return f"It was killed by signal {-code} ({name})."


def _adjusted(session: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    for name, value in conf.items():
        if session.conf.get(name, None) == value:
            continue
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            raise PipelineError(
                f"{name} cannot be changed while Spark runs.",
                detail=_first_line(error),
                hint="Stop the running session first, or start it with this setting.",
            ) from error
    return session


def _first_line(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    text = str(cause.toString() if cause is not None else error).strip()
    return text.splitlines()[0] if text else type(error).__name__


@cache
def _scratch() -> Scratch:
    return _make_scratch(Path(tempfile.gettempdir()))


@cache
def _socket_scratch() -> Scratch:
    return _make_scratch(Path("/tmp"))


def _make_scratch(parent: Path) -> Scratch:
    with os_errors("make a directory for Spark's files", parent):
        scratch = Scratch(parent)
    # Registered before Java's exit handler, so it runs after it.
    atexit.register(scratch.remove)
    return scratch


def _scratch_locks() -> list[int]:
    """Java inherits these locks: it needs the directories until it exits."""
    made = [_scratch()] + ([_socket_scratch()] if _socket_scratch.cache_info().currsize else [])
    return [scratch.lock_descriptor for scratch in made]


def end_java(patience_seconds: float) -> None:
    """Stop the Java of this process now, if it has one."""
    if SparkContext._gateway is not None:
        _end_java(SparkContext._gateway, patience_seconds)


def _end_java(gateway: JavaGateway, patience_seconds: float = JAVA_EXIT_TIMEOUT_SECONDS) -> None:
    """Stop Spark before the interpreter exits, so that Java does not outlive its directory."""
    if SparkContext._active_spark_context is not None:
        with contextlib.suppress(Py4JError, OSError):  # Java may be gone already
            SparkContext._active_spark_context.stop()
    process = gateway.proc
    if process is None:
        return  # not our Java: spark-submit passed it to us
    # Python reports every freed object to Java, which no longer answers.
    gateway._gateway_client.is_connected = False
    process.stdin.close()  # tells Java to exit
    try:
        process.wait(timeout=patience_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
