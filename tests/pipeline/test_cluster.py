"""The same program on a real cluster: a master and two workers, each in a Java of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.cluster import Cluster, loopback_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DRIVER_SECONDS = 400
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with loopback_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.mark.parametrize("what", ["scenarios", "coming and going"])
def test_stories(cluster: Cluster, tmp_path: Path, what: str) -> None:
    """What is asserted stands in the script, which is a driver of its own."""
    command = [sys.executable, "-m", "tests.pipeline.on_cluster", what, str(tmp_path / "home")]
    ran = subprocess.run(
        [*command, cluster.master, json.dumps(cluster.conf)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=DRIVER_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_no_process_is_left(tmp_path: Path) -> None:
    with loopback_cluster(tmp_path, workers=1) as started:
        assert started.master.startswith("spark://127.0.0.1:")
    still = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, check=False)
    assert not still.stdout
