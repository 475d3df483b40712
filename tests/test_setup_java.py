"""Set-up finds a Java, installs one where it may, and else says what to install."""

from __future__ import annotations

import importlib.util
import stat
import sys
from pathlib import Path
from types import ModuleType

import pytest

from penstock.pipeline.java import find_java, parse_major_version, trouble_with

SCRIPT = Path(__file__).parent.parent / "scripts" / "setup_java.py"


@pytest.fixture(scope="module")
def setup_java() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_java", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def add_command(directory: Path, name: str, script: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def add_java(directory: Path, version: str) -> Path:
    return add_command(directory, "java", f"echo 'openjdk version \"{version}\"' >&2")


def add_apt_get(directory: Path, *, brings: dict[str, str]) -> Path:
    """An apt-get that notes its calls, and installs a java for the packages in `brings`."""
    calls = directory / "apt-calls"
    lines = [f'echo "$@" >> {calls}', 'for word in "$@"; do package=$word; done']
    for package, version in brings.items():
        target = directory / "java"
        lines += [
            f'if [ "$package" = {package} ]; then',
            f"echo '#!/bin/sh' > {target}",
            f'echo "echo \'openjdk version \\"{version}\\"\' >&2" >> {target}',
            f"/bin/chmod +x {target}; exit 0; fi",
        ]
    lines.append('[ "$1" = update ]')
    add_command(directory, "apt-get", "\n".join(lines))
    return calls


@pytest.mark.parametrize(
    ("answer", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.1"', 17),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_versions_are_read(answer: str, major: int | None) -> None:
    assert parse_major_version(answer) == major


def test_java_on_the_path(tmp_path: Path) -> None:
    executable = add_java(tmp_path, "17.0.2")
    java = find_java({"PATH": str(tmp_path)})
    assert java is not None
    assert (java.executable, java.major, trouble_with(java)) == (executable, 17, "")


def test_java_home_comes_first(tmp_path: Path) -> None:
    add_java(tmp_path / "path", "17.0.2")
    in_home = add_java(tmp_path / "home" / "bin", "21.0.1")
    java = find_java({"PATH": str(tmp_path / "path"), "JAVA_HOME": str(tmp_path / "home")})
    assert java is not None
    assert (java.executable, java.major) == (in_home, 21)


def test_no_java(tmp_path: Path) -> None:
    assert find_java({"PATH": str(tmp_path)}) is None
    assert find_java({}) is None
    assert "not found" in trouble_with(None)


def test_broken_java(tmp_path: Path) -> None:
    add_command(tmp_path, "java", "exit 1")
    assert "does not answer" in trouble_with(find_java({"PATH": str(tmp_path)}))


def test_a_usable_java_is_enough(
    setup_java: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    add_java(tmp_path, "17.0.2")
    calls = add_apt_get(tmp_path, brings={})
    assert setup_java.main({"PATH": str(tmp_path)}, is_root=True) == 0
    assert not calls.exists()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("present", [None, "11.0.2"])
def test_root_with_apt_get_installs(
    setup_java: ModuleType, tmp_path: Path, present: str | None
) -> None:
    if present:
        add_java(tmp_path, present)
    calls = add_apt_get(tmp_path, brings={"openjdk-17-jre-headless": "17.0.9"})
    assert setup_java.main({"PATH": str(tmp_path)}, is_root=True) == 0
    update, install = calls.read_text().splitlines()
    assert update.startswith("update")
    assert install.startswith("install")
    assert install.endswith("openjdk-17-jre-headless")


def test_the_next_package_is_tried(setup_java: ModuleType, tmp_path: Path) -> None:
    add_apt_get(tmp_path, brings={"openjdk-21-jre-headless": "21.0.1"})
    assert setup_java.main({"PATH": str(tmp_path)}, is_root=True) == 0


def test_packages_that_bring_only_an_old_java(
    setup_java: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    add_apt_get(tmp_path, brings={"default-jre-headless": "11.0.2"})
    assert setup_java.main({"PATH": str(tmp_path)}, is_root=True) == 1
    assert "is Java 11; Spark needs 17 or newer" in capfd.readouterr().err


def test_without_root_it_says_what_to_install(
    setup_java: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    calls = add_apt_get(tmp_path, brings={"openjdk-17-jre-headless": "17.0.9"})
    assert setup_java.main({"PATH": str(tmp_path)}, is_root=False) == 1
    assert not calls.exists()
    assert "sudo apt-get install openjdk-17-jre-headless" in capfd.readouterr().err


def test_a_wrong_java_home_is_not_papered_over(
    setup_java: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    calls = add_apt_get(tmp_path, brings={"openjdk-17-jre-headless": "17.0.9"})
    environ = {"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "gone")}
    assert setup_java.main(environ, is_root=True) == 1
    assert not calls.exists()
    assert "unset it" in capfd.readouterr().err


def test_the_script_needs_nothing_installed(tmp_path: Path) -> None:
    import subprocess

    add_java(tmp_path, "17.0.2")
    # -I -S: no installed packages, no current directory.
    command = [sys.executable, "-I", "-S", str(SCRIPT)]
    result = subprocess.run(command, env={"PATH": str(tmp_path)}, check=False, capture_output=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
