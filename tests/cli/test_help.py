"""What every command says of itself, and how commands are found."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from penstock.cli.failures import EXIT_CODES
from penstock.cli.groups import FoundGroup, epilog, group_of
from penstock.cli.main import app
from penstock.errors import PenstockError
from tests.cli.conftest import Cli

DOORS = {
    "analyse", "backtest", "bench", "broker", "compact", "content", "cursors", "deliver", "demo",
    "execute", "explain", "init", "kernels", "lab", "network", "publish", "quarantine", "rebuild",
    "renew", "reoptimise", "run", "site", "status", "subscribe", "subscriptions", "tables", "tail",
    "unsubscribe", "verify", "version", "views", "watch",
}  # fmt: skip


THE_LABS = ("penstock bench", "penstock lab run")


def all_commands() -> Iterator[tuple[str, Any]]:
    """Every command and every group of commands, with the words that call it; of the benchmarks
    and experiments, only the groups."""
    root = typer.main.get_command(app)
    waiting: list[tuple[str, Any]] = [("penstock", root)]
    while waiting:
        words, command = waiting.pop()
        yield words, command
        if hasattr(command, "list_commands") and words not in THE_LABS:
            names = command.list_commands(None)
            waiting += [(f"{words} {name}", command.get_command(None, name)) for name in names]


COMMANDS = dict(all_commands())


def test_all_commands_are_there() -> None:
    assert {words.split()[1] for words in COMMANDS if words != "penstock"} == DOORS
    assert {"penstock quarantine list", "penstock lab run"} <= COMMANDS.keys()


@pytest.mark.parametrize("words", sorted(COMMANDS))
def test_every_command_says_what_it_does_and_gives_an_example(words: str) -> None:
    command = COMMANDS[words]
    assert command.help
    assert "Examples" in command.epilog
    assert "penstock" in command.epilog
    assert max(map(len, command.epilog.splitlines())) <= 78, "it would be wrapped"


@pytest.mark.parametrize("words", sorted(COMMANDS))
def test_every_parameter_is_explained(words: str) -> None:
    for parameter in COMMANDS[words].params:
        assert getattr(parameter, "help", "") or parameter.name == "help", parameter.name


@pytest.mark.parametrize("words", THE_LABS)
def test_every_benchmark_and_experiment_says_what_it_does(words: str) -> None:
    group = COMMANDS[words]
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        assert command.help, name
        assert any("--json" in parameter.opts for parameter in command.params), name


def test_help_lists_exit_codes(cli: Cli) -> None:
    ran = cli("--help")
    assert ran.code == 0
    for code, meaning in EXIT_CODES.items():
        assert f"{code}  {meaning}" in ran.out


def test_every_error_has_an_exit_code_that_is_listed() -> None:
    kinds = [PenstockError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert len(kinds) > 10
    assert {kind.exit_code for kind in kinds} <= EXIT_CODES.keys()


def test_help_of_one_command(cli: Cli) -> None:
    ran = cli("subscribe", "--help")
    assert ran.code == 0
    assert "penstock subscribe shop" in ran.out
    assert cli("quarantine", "somewhere", "list", "--help").code == 0


def test_without_a_command_help_is_shown(cli: Cli) -> None:
    ran = cli()
    assert ran.code == 0
    assert "Publish and subscribe" in ran.out


def test_unknown_command(cli: Cli) -> None:
    assert cli("subscripe").code == 2


def test_bench_and_lab_list_what_there_is(cli: Cli) -> None:
    for words in (["bench"], ["lab"], ["lab", "run"]):
        ran = cli(*words)
        assert ran.code == 0
        assert ran.out
    assert cli("bench", "nothing-of-that-name").code == 2


def test_a_module_becomes_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "found_here"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_helper.py").write_text("raise RuntimeError")
    (package / "say_hello.py").write_text(
        "def say_hello(times: int = 1) -> None:\n"
        '    """Be polite.\n\n    More than once."""\n'
        "    print('hello ' * times)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    group: FoundGroup = group_of("found_here")(name="found")
    assert group.list_commands(None) == ["say-hello"]
    command = group.get_command(None, "say-hello")
    assert command is not None
    command.main(["--times", "2"], standalone_mode=False)
    assert capsys.readouterr().out == "hello hello \n"
    assert group.get_command(None, "nothing") is None


def test_a_package_that_does_not_exist_holds_nothing() -> None:
    assert group_of("penstock.lab.nothing")(name="none").list_commands(None) == []


def test_examples_are_not_markup() -> None:
    assert "\\[x]" in epilog("  penstock [x]")
    assert epilog("") == ""


def test_help_does_not_wait_for_spark() -> None:
    """Nor for anything else that takes long to load and that only some commands need."""
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from penstock.cli.main import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print(sorted({'pyspark', 'pandas', 'pyarrow', 'numba'} & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_command_that_is_nearly_right(cli: Cli) -> None:
    ran = cli("contents", "shop", 2)
    assert ran.code == 2
    assert "No such command 'contents'. Did you mean 'content'?" in ran.err
    assert "Did you mean" not in cli("xyz").err


def test_a_home_that_was_forgotten(cli: Cli) -> None:
    ran = cli("execute", "CREATE TABLE t (id INT PRIMARY KEY)")
    assert ran.code == 2
    assert "give one statement after HOME" in ran.err
