"""The owner key: a secret in the home's files, known to everyone who may read them.

It authorises renewing and withdrawing every subscription, and keys the hashes of tickets
(`penstock.registry.tickets`): with the log alone nobody can test guesses.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import msgspec

from penstock.errors import CorruptionError
from penstock.storage.disk import TEMPORARY_SUFFIX, os_errors, sync_directory

KEY_NAME = "owner.key"
KEY_BYTES = 32  # 256 random bits: the maximum key size of the hash

_FOR_OWNER = 0o600
_FOR_GROUP = 0o660


class _Stored(msgspec.Struct):
    owner_key: str
    checksum: int
    """Of the key: a flipped bit would silently invalidate all tickets."""


def new_owner_key() -> str:
    import secrets  # lazy: 10 ms, which processes that only read a home do not need

    return secrets.token_urlsafe(KEY_BYTES)


def read_owner_key(home: Path) -> str:
    """The key of a home, created if missing; CorruptionError if it is not as it was written."""
    found = find_owner_key(home)
    if found is None:
        with os_errors("make the owner key", home):
            make_owner_key(home)
        found = find_owner_key(home)
    assert found is not None
    return found


def find_owner_key(home: Path) -> str | None:
    """The key of a home, if it has one; CorruptionError if it is not as it was written."""
    path = home / KEY_NAME
    with os_errors("read the owner key", path):
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return None
    try:
        stored = msgspec.json.decode(raw, type=_Stored)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _damaged(path) from None
    if crc32(stored.owner_key.encode()) != stored.checksum:
        raise _damaged(path)
    return stored.owner_key


def make_owner_key(home: Path) -> None:
    """Create a key, unless there is one: of several concurrent processes, one succeeds.

    The file is readable by the home's owner only, or by its group if that may use the home.
    """
    import tempfile

    key = new_owner_key()
    content = msgspec.json.encode(_Stored(key, crc32(key.encode())))
    is_for_group = home.stat().st_mode & stat.S_IWGRP
    descriptor, name = tempfile.mkstemp(TEMPORARY_SUFFIX, f"{KEY_NAME}.", home)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _FOR_GROUP if is_for_group else _FOR_OWNER)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(name, home / KEY_NAME)  # renaming would replace a key that is in use
    finally:
        os.unlink(name)
    sync_directory(home)


def _damaged(path: Path) -> CorruptionError:
    return CorruptionError(
        f"{path.name} is damaged: it is not as it was written",
        detail=f"file {path}",
        hint="restore it from a backup; without one, remove it: a new one is made, and tickets "
        "from before no longer fit",
    )
