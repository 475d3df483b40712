"""Every command with odd arguments: a code that is documented, and a message that helps."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from penstock.cli.failures import EXIT_CODES
from penstock.cli.main import app, main
from penstock.errors import PipelineError
from penstock.registry import rebuild
from penstock.storage import Home
from tests.cli.conftest import Cli, Ran

JOIN = "SELECT stocks.id, rating FROM stocks JOIN reviews USING (symbol) WHERE per < 20"
FAULTS = ("Traceback", "bug in Penstock", "Error:", "error: \n")

ODD_WORDS = {
    "empty": "",
    "blank": " ",
    "word": "x",
    "minus one": "-1",
    "zero": "0",
    "two": "2",
    "ninety-nine": "99",
    "largest": str(2**63 - 1),
    "too large": str(2**63),
    "digits": "9" * 5_000,
    "float": "1.5",
    "infinity": "inf",
    "not a number": "nan",
    "enormous": "1e309",
    "duration": "10m",
    "long duration": "9" * 400 + "d",
    "letters": "ä😀",
    "two lines": "a\nb",
    "dash": "-",
    "long": "x" * 10_000,
    "brackets": "[bold]x[/bold]",
    "statement": "SELECT * FROM stocks",
    "declaration": "CREATE TABLE t (id INT PRIMARY KEY)",
    "JSON": '{"table": "stocks", "row": {"id": 1, "symbol": "A"}}',
    "deep JSON": "[" * 5_000,
    "setting": "a=b",
}
PLACES = (
    "missing",
    "missing/below",
    "file",
    "file/below",
    "directory",
    "empty.csv",
    "odd.jsonl",
)

SOUND: dict[str, str] = {"number": "2", "numbers": "2", "offset": "5", "offsets": "5"}
SOUND_OF: dict[tuple[str, ...], dict[str, str]] = {
    ("execute",): {"sql": ODD_WORDS["declaration"]},
    ("subscribe",): {"sql": ODD_WORDS["statement"]},
    ("backtest",): {"sql": ODD_WORDS["statement"]},
    ("explain",): {"change": ODD_WORDS["JSON"]},
    ("publish",): {"files": "sound.csv"},
    ("watch",): {"directory": "incoming"},
}
SOUND_OPTIONS: dict[tuple[str, ...], dict[str, list[str]]] = {
    ("publish",): {"table": ["--table", "stocks"]},
    ("watch",): {"once": ["--once"]},
}
"""What a command is given beside its arguments, unless it is what is odd."""
GROUPS_THAT_RUN = {"demo"}
"""Groups of commands that do something by themselves."""
LABS = {"demo", "bench", "lab"}
"""They work on homes of their own, for as long as they are told to: here until work begins."""


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command there is: a new one is found here at once."""
    context = typer.Context(group, info_name="penstock")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        is_group = hasattr(command, "list_commands")
        if is_group:
            yield from commands(command, (*path, name))
        if not is_group or name in GROUPS_THAT_RUN:
            yield (*path, name), command


ALL_COMMANDS = dict(commands(typer.main.get_command(app)))
COMMANDS = {path: command for path, command in ALL_COMMANDS.items() if path[0] not in LABS}
LAB_COMMANDS = {path: command for path, command in ALL_COMMANDS.items() if path[0] in LABS}


@pytest.fixture(autouse=True)
def nothing_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """`penstock kernels prepare` would be at it for minutes."""
    monkeypatch.setattr("penstock.kernels.preparation.start_preparation", lambda _: None)
    monkeypatch.setattr("penstock.pipeline.class_archive.start_making", lambda _: None)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory, pattern: Path) -> Path:
    """A home with subscription 2, a row, and an event in quarantine at offset 5."""
    from penstock import Hub
    from penstock.storage import RecordKind

    home = Path(shutil.copytree(pattern, tmp_path_factory.mktemp("used") / "shop"))
    with Hub(home) as hub:
        hub.subscribe(JOIN, lease_seconds=86_400)
        hub.insert("stocks", {"id": 1, "symbol": "A", "per": 10.0})
        hub.insert("reviews", {"id": 1, "symbol": "A", "rating": 3})
    Home.open(home).log.append([(RecordKind.EVENT, b"{}")])
    with Hub(home):
        pass
    return home


@pytest.fixture
def places(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("no home")
    (tmp_path / "directory").mkdir()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "odd.jsonl").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "sound.csv").write_text("id,symbol\n7,G\n")
    drop(tmp_path)
    return tmp_path


def drop(places: Path) -> None:
    """A file for `watch` that nobody has touched for long."""
    dropped = places / "incoming" / "stocks.csv"
    dropped.parent.mkdir(exist_ok=True)
    dropped.write_text("id,symbol\n8,H\n")
    os.utime(dropped, (0, 0))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits, and there is no Spark."""

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    def no_spark(*_arguments: object, **_named: object) -> None:
        raise PipelineError("there is no Spark in this test")

    monkeypatch.setattr(time, "sleep", interrupt)
    monkeypatch.setattr("penstock.pipeline.session._launch_java", no_spark)


def command_line(path: tuple[str, ...], command: Any, home: Path, odd: str, word: str) -> list[str]:
    """A command with one odd parameter; the others are sound, or left out."""
    group, *rest = path
    words = [group, word if odd == "home" else str(home)] if rest else [group]
    words += rest
    options: list[str] = []
    sound = SOUND | SOUND_OF.get(path, {}) | {"home": str(home)}
    for parameter in command.params:
        name = parameter.name
        if name == odd:
            if parameter.param_type_name == "argument":
                words.append(word)
            else:
                options += [parameter.opts[-1]] + ([] if parameter.is_flag else [word])
        elif parameter.param_type_name == "argument" and name in sound:
            words.append(sound[name])
        else:
            options += SOUND_OPTIONS.get(path, {}).get(name, [])
    return [*words[:1], *options, *words[1:]] if not rest else [*words, *options]


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_odd_arguments(
    cli: Cli, used: Path, places: Path, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    monkeypatch.chdir(places)
    try_out(cli, path, used, places, [*ODD_WORDS.values(), *PLACES][:: len(path[0])])


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_all_odd_arguments(
    cli: Cli, used: Path, places: Path, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    monkeypatch.chdir(places)
    try_out(cli, path, used, places, [*ODD_WORDS.values(), *PLACES])


def try_out(cli: Cli, path: tuple[str, ...], used: Path, places: Path, tried: list[str]) -> None:
    home = places / "shop"
    names = {parameter.name for parameter in COMMANDS[path].params} - {"help"}
    for odd in sorted({*names, "home"} if len(path) > 1 else names):
        for word in tried:
            if not home.exists():
                shutil.copytree(used, home)
            end = Home.open(home).log.end
            words = command_line(path, COMMANDS[path], home, odd, word)
            ran = cli(*words, input="")
            check_ending(words, ran)
            if home.exists() and Home.open(home).log.end != end:
                rebuild(Home.open(home))
                shutil.rmtree(home)
            drop(places)
            for made in (places / word for word in ODD_WORDS.values() if 0 < len(word) < 99):
                if made.is_dir():
                    shutil.rmtree(made)


def check_ending(words: list[str], ran: Ran) -> None:
    said = f"penstock {' '.join(words)[:300]}\n{ran.code}: {ran.err[:2000]}"
    assert ran.code in EXIT_CODES, said
    assert ran.code != 1, said
    assert not [fault for fault in FAULTS if fault in ran.err], said
    assert (ran.code == 0) or ran.err.strip(), said


@pytest.mark.parametrize("path", ALL_COMMANDS, ids=" ".join)
def test_completion_is_installed_for_the_whole_command_line(path: tuple[str, ...]) -> None:
    """Not for a part of it, by an option that every part has."""
    names = {parameter.name for parameter in ALL_COMMANDS[path].params}
    assert not names & {"install_completion", "show_completion"}


@pytest.mark.slow
@pytest.mark.parametrize("path", LAB_COMMANDS, ids=" ".join)
def test_odd_arguments_of_demonstrations_and_measurements(
    cli: Cli, places: Path, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    """They are refused before work begins, or work begins."""
    monkeypatch.chdir(places)
    began: list[str] = []

    def begin(text: str, *_: object) -> None:
        began.append(text)
        raise PipelineError("no work is done in this test")

    command = LAB_COMMANDS[path]
    module = sys.modules[command.callback.__module__]
    if path == ("lab", "paper"):
        where = "penstock.cli.paper_report.run_papers"
        monkeypatch.setattr(where, lambda *_, **__: begin("papers"))
    elif path[0] == "demo":
        monkeypatch.setattr(module._Steps, "step", lambda _, text: begin(text))
    elif path != ("lab", "list"):  # which does no work
        monkeypatch.setattr(module, "progress", begin)
    path = (*path, *NAMES.get(path, ()))
    for parameter in command.params:
        for word in [*ODD_WORDS.values(), *PLACES]:
            check_ending(*_run_with(cli, path, parameter, word))
    check_ending([*path], cli(*path, input=""))
    assert began or path == ("lab", "list")


NAMES: dict[tuple[str, ...], tuple[str, ...]] = {("lab", "paper"): ("liu2007",)}
"""Arguments without which no work begins."""


def _run_with(cli: Cli, path: tuple[str, ...], parameter: Any, word: str) -> tuple[list[str], Ran]:
    """A command with one odd word, and what became of it."""
    words = [*path, word]
    if parameter.param_type_name != "argument":
        words = [*path, parameter.opts[-1], *([] if parameter.is_flag else [word])]
    return words, cli(*words, input="")


def test_a_name_that_is_not_utf_8(
    places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(places)
    for words, code in ((["init"], 0), (["init"], 6), (["tables"], 0), (["content"], 2)):
        monkeypatch.setattr(sys, "argv", ["penstock", *words, "\udcff"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code
        assert "Traceback" not in capsys.readouterr().err
