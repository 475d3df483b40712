"""Which Java would run Spark, and whether its version is supported.

Only the standard library is used: set-up loads this file before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST_JAVA = 17

# A healthy Java answers in a tenth of a second; a hung one must not hang set-up.
ANSWER_TIMEOUT_SECONDS = 30

HOW_TO_INSTALL = f"""\
Install a Java {OLDEST_JAVA} (or newer) runtime:
  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless
                   (where that is not offered: openjdk-21-jre-headless)
  Fedora, RHEL     sudo dnf install java-21-openjdk-headless
  macOS            brew install openjdk@21
or unpack any such Java and set JAVA_HOME to its directory."""


@dataclass(frozen=True)
class Java:
    """A `java` that Spark would run. `major` is None if its version is unknown."""

    executable: Path
    major: int | None


def find_java(environ: Mapping[str, str]) -> Java | None:
    """Look where Spark's launcher looks: in JAVA_HOME if it is set, else along PATH.

    A JAVA_HOME that leads nowhere is still the answer, because Spark would not look further.
    """
    executable = java_executable(environ)
    if executable is None:
        return None
    return Java(executable, _major_version(executable, environ))


def java_executable(environ: Mapping[str, str]) -> Path | None:
    """The same, without running it."""
    home = environ.get("JAVA_HOME", "")
    if home:
        return Path(home, "bin", "java")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    return None if on_path is None else Path(on_path)


def trouble_with(java: Java | None) -> str:
    """Why Spark cannot run on this Java, in one sentence; empty if it can."""
    if java is None:
        return "Java was not found: JAVA_HOME is not set and there is no java on the PATH."
    if not os.access(java.executable, os.X_OK):
        return f"JAVA_HOME leads to {java.executable}, which cannot be run."
    if java.major is None:
        return f"{java.executable} does not answer `java -version`."
    if java.major < OLDEST_JAVA:
        return f"{java.executable} is Java {java.major}; Spark needs {OLDEST_JAVA} or newer."
    return ""


def parse_major_version(answer: str) -> int | None:
    """The major version in the answer to `java -version`; Java 8 and older call it 1.x."""
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(found.group(1)) if found else None


def _major_version(executable: Path, environ: Mapping[str, str]) -> int | None:
    try:
        answer = subprocess.run(
            [executable, "-version"],
            env=dict(environ),
            capture_output=True,
            text=True,
            timeout=ANSWER_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_major_version(answer.stderr + answer.stdout) if answer.returncode == 0 else None
