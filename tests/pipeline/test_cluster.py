"""The same program on a real cluster: a master and two workers, each in a Java of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.testing.cluster import loopback_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DRIVER_SECONDS = 900  # only to end a test that hangs
ROOT = Path(__file__).parent.parent.parent


def test_stories(tmp_path: Path) -> None:
    """What is asserted stands in the script, which is a driver of its own."""
    with loopback_cluster(tmp_path) as cluster:
        assert cluster.master.startswith("spark://127.0.0.1:")
        command = [sys.executable, "-m", "tests.pipeline.on_cluster", str(tmp_path / "homes")]
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
    still = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, check=False)
    assert not still.stdout, "a process is left"
