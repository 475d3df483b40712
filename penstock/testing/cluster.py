"""A standalone Spark cluster on this machine: a master and its workers, on loopback.

They are the classes of the installed package, each in its own Java, as on many machines. It does
not show failures between machines.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from penstock.errors import PipelineError
from penstock.pipeline.session import LOOPBACK
from penstock.pipeline.spark_home import CONF_DIRECTORY

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
START_SECONDS = 60.0
END_SECONDS = 15.0
POLL_SECONDS = 0.2
QUICK_TO_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""No Java of such a cluster lives long enough for its optimising compiler to pay."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The master's address, and the settings for a driver on this machine."""

    master: str
    conf: dict[str, str]


@contextmanager
def loopback_cluster(
    directory: Path, *, workers: int = 2, cores: int = 1, memory_mib: int = 1024
) -> Iterator[Cluster]:
    """A cluster for the duration of the block; logs and work files go into the directory."""
    port, web_port = _free_port(), _free_port()
    master = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as running:
        web = ["--webui-port", str(web_port)]
        running.enter_context(
            _process(directory, "master", ["--host", LOOPBACK, "--port", str(port), *web])
        )
        share = ["--cores", str(cores), "--memory", f"{memory_mib}m"]
        place = ["--host", LOOPBACK, "--webui-port", "0", "--work-dir", str(directory / "work")]
        for number in range(workers):
            arguments = [*place, *share, master]
            running.enter_context(_process(directory, f"worker-{number}", arguments))
        _await_workers(f"http://{LOOPBACK}:{web_port}/json/", workers, directory)
        yield Cluster(master, _driver_settings(workers * cores, memory_mib))


def _driver_settings(cores: int, memory_mib: int) -> dict[str, str]:
    return {
        "spark.driver.defaultJavaOptions": QUICK_TO_START,
        "spark.executor.defaultJavaOptions": QUICK_TO_START,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.cores.max": str(cores),
        # The rest of a worker's memory is for Python.
        "spark.executor.memory": f"{memory_mib // 2}m",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }


@contextmanager
def _process(directory: Path, name: str, arguments: list[str]) -> Iterator[None]:
    role = name.partition("-")[0]
    command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{role}.{role.title()}", *arguments]
    environ = {
        **os.environ,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_CONF_DIR": str(CONF_DIRECTORY),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_TO_START,
        # Otherwise a worker would pass on the driver's gateway.
        "PYSPARK_GATEWAY_PORT": "",
    }
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environ)
        try:
            yield
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _await_workers(address: str, workers: int, directory: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    alive = 0
    while time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, ValueError):
            with urllib.request.urlopen(address, timeout=5) as answer:
                alive = json.load(answer)["aliveworkers"]
            if alive == workers:
                return
        time.sleep(POLL_SECONDS)
    raise PipelineError(
        f"only {alive} of {workers} workers of the cluster came up",
        detail=f"within {START_SECONDS:g} seconds",
        hint=f"look into the logs in {directory}",
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
