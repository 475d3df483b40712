"""See to it that Spark finds a Java it can run on.

As root on Debian and its relatives a missing Java is installed. Everywhere else this only says
what to install, and ends with exit code 1. Runs on any Python 3.11+, before anything is installed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

# The first that yields a usable Java wins: releases differ in which of them they offer, and the
# default of some is older than 17.
APT_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")


def _load_java_module() -> ModuleType:
    # Loaded by its path: importing it as part of the package would need the package installed.
    path = Path(__file__).resolve().parent.parent / "penstock" / "pipeline" / "java.py"
    spec = importlib.util.spec_from_file_location("penstock_java", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


java = _load_java_module()


def may_install(environ: Mapping[str, str], *, is_root: bool) -> bool:
    """Whether installing is possible and would help.

    With JAVA_HOME set it would not: Spark follows JAVA_HOME, whatever else is installed.
    """
    has_apt_get = shutil.which("apt-get", path=environ.get("PATH", "")) is not None
    return is_root and has_apt_get and not environ.get("JAVA_HOME")


def install(environ: Mapping[str, str]) -> None:
    """Install packages one after the other until one brings a usable Java."""
    quiet = {**environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt_get = shutil.which("apt-get", path=environ.get("PATH", "")) or "apt-get"
    # A failing update is no reason to stop: the package lists that are there may do.
    subprocess.run([apt_get, "update", "-q"], env=quiet, check=False)
    for package in APT_PACKAGES:
        command = [apt_get, "install", "-q", "-y", "--no-install-recommends", package]
        installed = subprocess.run(command, env=quiet, check=False).returncode == 0
        if installed and not java.trouble_with(java.find_java(environ)):
            return


def main(environ: Mapping[str, str], *, is_root: bool) -> int:
    trouble = java.trouble_with(java.find_java(environ))
    if trouble and may_install(environ, is_root=is_root):
        print(f"{trouble} Installing one.", flush=True)
        install(environ)
        trouble = java.trouble_with(java.find_java(environ))
    if not trouble:
        return 0
    print(trouble, file=sys.stderr)
    if environ.get("JAVA_HOME"):
        print("Correct JAVA_HOME, or unset it to use the java on the PATH.", file=sys.stderr)
    print(java.HOW_TO_INSTALL, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(os.environ, is_root=os.geteuid() == 0))
