"""A network of views on this machine, for trying things out: the source at a home, and some
sites."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import NetworkError
from penstock.service.local_network import LocalProcesses
from penstock.service.site import DEFAULT_FEEDS

MAX_LOCAL_SITES = 64


class LocalSites(LocalProcesses):
    """The first address is the source's. Use as a context manager."""

    def __init__(
        self, home: Path, sites: int, feeds: int = DEFAULT_FEEDS, arguments: Sequence[str] = ()
    ) -> None:
        """`feeds`: how many others a view may feed. `arguments` are further options of `penstock
        site` for the source."""
        if not 1 <= sites <= MAX_LOCAL_SITES:
            raise NetworkError(f"a local network has 1 to {MAX_LOCAL_SITES} sites, not {sites}")
        super().__init__()
        self._home = home
        self._wanted = sites
        self._feeds = feeds
        self._arguments = arguments

    def start_all(self) -> None:
        limits = ("--sites", str(self._wanted), "--feeds", str(self._feeds))
        source = self.start("site", "--home", str(self._home), *limits, *self._arguments)
        address = str(self.wait_for(source))
        for started in [self.start_site(address) for _ in range(self._wanted)]:
            self.wait_for(started)

    def start_site(self, source: str) -> subprocess.Popen[str]:
        # Not calibrated: sites that start together would only measure each other.
        return self.start("site", "--upstream", source, "--feeds", str(self._feeds))

    def kill(self, number: int) -> None:
        """Kill a process without a clean shutdown; 0 is the source."""
        self._processes[number].kill()
        self._processes[number].wait()
