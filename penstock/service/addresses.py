"""Addresses of brokers: HOST:PORT."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from penstock.errors import NetworkError

MAX_PORT = 65_535


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only processes on the same machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """`127.0.0.1:7070`, `host:7070`, `[::1]:7070`; else NetworkError."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""  # an IPv6 address without brackets: the port is ambiguous
    if not host or not port.isascii() or not port.isdigit() or int(port) > MAX_PORT:
        raise NetworkError(
            f"{text!r} is not an address",
            hint="write HOST:PORT, for instance 127.0.0.1:7070 or [::1]:7070",
        )
    return Address(host, int(port))
