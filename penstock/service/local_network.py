"""Several server processes on this machine, for trying things out: brokers in a chain."""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from penstock.errors import NetworkError
from penstock.service.addresses import Address, parse_address

MAX_BROKERS = 30
END_SECONDS = 10.0
"""A process that does not end by itself within this time is killed."""


class LocalProcesses:
    """Processes on loopback that share a token. Use as a context manager; subclasses start them.

    The token is in `token_file`, readable only by its owner, as long as they run.
    """

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self.addresses: list[Address] = []
        self.statistics: list[dict[str, int]] = []
        """The statistics of each process after it has ended; empty for one that was killed."""

    def start_all(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._directory = tempfile.TemporaryDirectory(prefix="penstock-network-")
        self.token_file = Path(self._directory.name) / "token"
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(secrets.token_urlsafe() + "\n", encoding="ascii")
        try:
            self.start_all()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a serving command on loopback; its address is added when it listens."""
        token = ("--token-file", str(self.token_file))
        process = start_serving(*arguments, "--listen", "127.0.0.1:0", *token)
        self._processes.append(process)
        return process

    def wait_for(self, process: subprocess.Popen[str]) -> Address:
        address = ready_address(process)
        self.addresses.append(address)
        return address

    def ended(self) -> list[Address]:
        """The addresses of processes that have ended by themselves."""
        pairs = zip(self.addresses, self._processes, strict=True)
        return [address for address, process in pairs if process.poll() is not None]

    def end(self) -> None:
        """End all of them, in reverse order."""
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.statistics = list(map(_last_words, self._processes))
        self._directory.cleanup()


class LocalNetwork(LocalProcesses):
    """A chain of brokers, the first at the home."""

    def __init__(self, home: Path, brokers: int, options: Sequence[str] = ()) -> None:
        """`options` of `penstock broker` apply to all of them."""
        if not 1 <= brokers <= MAX_BROKERS:
            raise NetworkError(f"a local network has 1 to {MAX_BROKERS} brokers, not {brokers}")
        super().__init__()
        self._home = home
        self._wanted = brokers
        self._options = tuple(options)

    def start_all(self) -> None:
        for _ in range(self._wanted):
            above = ["--home", str(self._home)]
            if self.addresses:
                above = ["--upstream", str(self.addresses[-1])]
                above += ["--upstream-token-file", str(self.token_file)]
            self.wait_for(self.start("broker", *above, *self._options))


def start_broker(listen: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a broker as a child process."""
    return start_serving("broker", "--listen", listen, *arguments)


def start_serving(*arguments: str) -> subprocess.Popen[str]:
    """Start a serving command as a child process; it prints the address it listens on. It gets no
    signals from the terminal: the caller ends it."""
    return subprocess.Popen(
        [sys.executable, "-m", "penstock", *arguments, "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _last_words(process: subprocess.Popen[str]) -> dict[str, int]:
    assert process.stdout is not None
    with process.stdout:
        lines = process.stdout.read().splitlines()
    try:
        return msgspec.json.decode(lines[-1], type=dict[str, int])
    except (IndexError, msgspec.DecodeError):
        return {}


def ready_address(process: subprocess.Popen[str]) -> Address:
    """Wait until a process listens; NetworkError if it ended instead."""
    assert process.stdout is not None
    line = process.stdout.readline()
    try:
        return parse_address(msgspec.json.decode(line)["listening"])
    except (msgspec.DecodeError, KeyError, TypeError):
        code = process.wait()
        raise NetworkError(f"a process ended with exit code {code}", detail=line.strip()) from None
