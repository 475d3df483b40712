"""The home: the directory of one Penstock instance.

penstock.json   what this is, and the version of its layout
owner.key       what tickets of subscriptions are hashed with
log/            the one log: everything else can be derived from it
messages/       the message log, one file per batch, old ones rolled into larger files
quarantine/     events that could not be applied
catalog.db      tables and streams, derived from the log
registry.db     subscriptions, derived from the log
sources.db      ingested files, derived from the log
checkpoint/     the progress and the state of the pipeline
staging/        output of a batch that is not published yet
snapshots/      indexes of subscriptions
statistics/     statistics of the history
contents/       saved contents: a cache
cursors/        acknowledged cursors of deliveries
logs/           Spark's log files
metrics/        metrics of the pipeline's batches
lost/           what was derived from lost records, moved aside by `penstock rebuild --accept-loss`
processing.lock held by the process that processes this home
publishing.lock held while a batch is put into the message log
"""

from __future__ import annotations

import fcntl
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from penstock.arguments import shown
from penstock.errors import HomeError, LockedError
from penstock.storage.disk import file_lock, locked_within, os_errors, sync_directory
from penstock.storage.file_access import OWNER_ALONE, OWNER_AND_GROUP, make_directory, open_file
from penstock.storage.interfaces import DEFAULT_BUCKETS
from penstock.storage.log import Log
from penstock.storage.marker import MARKER_NAME, Marker, read_marker, write_marker
from penstock.storage.message_log import MessageLog
from penstock.storage.owner_key import KEY_NAME, make_owner_key, read_owner_key
from penstock.storage.quarantine import Quarantine
from penstock.storage.witnesses import Witness, read_applied

MAX_PATH_BYTES = 512 - len("/registry.db-journal")
"""Maximum length of a home's absolute path, links resolved: SQLite opens paths of at most 512
bytes, and this is the longest file name it uses."""

PUBLISHING_LOCK_SECONDS = 60.0  # far longer than writing the largest batch
LOCK_GRACE_SECONDS = 10.0  # Java exits half a second after the process that started it

PROCESSING_LOCK = "processing.lock"
PUBLISHING_LOCK = "publishing.lock"
_DIRECTORIES = ("log", "messages", "quarantine", "checkpoint", "staging", "snapshots")


class _Holder(msgspec.Struct):
    """What the lock file says about the process that holds it."""

    who: str
    pid: int
    since: str
    term: str = ""


@dataclass(frozen=True, slots=True)
class Processing:
    """The right to process a home, for as long as the lock is held.

    `descriptor` is the locked file: a process that inherits it also keeps the lock until it ends.
    `term` identifies the holder to processes that publish on its behalf (see `Home.publishing`).
    """

    descriptor: int
    term: str


class Home:
    """The paths of one instance. `Home.open` checks that it is one."""

    def __init__(
        self,
        path: Path,
        *,
        shared: bool = False,
        buckets: int = DEFAULT_BUCKETS,
        default_lease_seconds: float | None = None,
    ) -> None:
        self.path = path
        self.shared = shared
        self.buckets = buckets
        self.default_lease_seconds = default_lease_seconds
        self.log = Log(path / "log", witnesses=self._witnesses)
        self.messages = MessageLog(path / "messages", path / "quarantine")
        self.catalog_db = path / "catalog.db"
        self.registry_db = path / "registry.db"
        self.sources_db = path / "sources.db"
        self.checkpoint = path / "checkpoint"
        self.staging = path / "staging"
        self.snapshots = path / "snapshots"
        self.metrics = path / "metrics"

    @property
    def quarantine(self) -> Quarantine:
        return self.messages.quarantine

    def owner_key(self) -> str:
        """Homes of earlier releases have none; it is created on first use."""
        return read_owner_key(self.path)

    def _witnesses(self) -> Iterator[Witness]:
        """Everything derived from the log's records, which proves that they existed."""
        yield Witness(self.messages.reached, "were processed: their messages are there")
        with os_errors("read the snapshots", self.snapshots):
            names = [name for name in os.listdir(self.snapshots) if name.isdecimal()]
        for name in names:
            yield Witness(int(name), "were there before: a snapshot is of them")
        for path in (self.catalog_db, self.registry_db, self.sources_db):
            applied = read_applied(path)
            if applied is not None:
                yield Witness(applied, f"were there before: {path.name} has seen them")

    @classmethod
    def create(
        cls,
        path: Path | str,
        *,
        shared: bool = False,
        group_access: bool = False,
        buckets: int = DEFAULT_BUCKETS,
        default_lease_seconds: float | None = None,
    ) -> Home:
        """Create a home in an empty or new directory.

        A home used by processes on several machines must be created as `shared`. Only its owner can
        access it; with `group_access`, the members of its group can as well. The number of
        `buckets` for the state of the pipeline is fixed here. Subscriptions without a lease of
        their own get the default lease, if there is one.
        """
        marker = Marker.of_new_home(
            shared=shared, buckets=buckets, default_lease_seconds=default_lease_seconds
        )
        path = home_path(path)
        with os_errors("create the home", path):
            path.mkdir(parents=True, exist_ok=True)
            _check_unused(path)
            _restrict(path, OWNER_AND_GROUP if group_access else OWNER_ALONE)
            for name in _DIRECTORIES:
                make_directory(path / name)
                _restrict(path / name, path.stat().st_mode)
            make_owner_key(path)
            # The marker is written last: a directory that has it is a complete home.
            write_marker(path, marker)
            sync_directory(path.absolute().parent)
        return cls._described(path, marker)

    @classmethod
    def open(cls, path: Path | str) -> Home:
        """The home at this path; HomeError if this release cannot use it."""
        path = home_path(path)
        marker = read_marker(path)
        missing = [name for name in _DIRECTORIES if not (path / name).is_dir()]
        if missing:
            raise HomeError(
                f"{path} lacks its directory {missing[0]}", hint="was it moved in part?"
            )
        return cls._described(path, marker)

    @classmethod
    def _described(cls, path: Path, marker: Marker) -> Home:
        return cls(
            path,
            shared=marker.shared,
            buckets=marker.buckets,
            default_lease_seconds=marker.default_lease_seconds,
        )

    @property
    def schemes(self) -> str:
        """The family of the schemes that made its messages."""
        return read_marker(self.path).schemes

    def record_schemes(self, family: str) -> None:
        """Record the family of schemes that makes its messages; for the holder of the processing
        lock."""
        marker = read_marker(self.path)
        if marker.schemes != family:
            with os_errors("record the schemes of the home", self.path):
                marker.schemes = family
                write_marker(self.path, marker)

    @contextmanager
    def processing_lock(self, who: str, *, check: bool = True) -> Iterator[Processing]:
        """CorruptionError if the log has lost its end. With `check=False` the caller handles that,
        and nothing is cleaned up."""
        lock = self.path / PROCESSING_LOCK
        term = uuid.uuid4().hex
        with os_errors("lock the home", lock):
            descriptor = open_file(lock, os.O_RDWR)
        try:
            with os_errors("lock the home", lock):
                _take(self.path, descriptor)
                since = datetime.now(UTC).isoformat(timespec="seconds")
                holder = msgspec.json.encode(_Holder(who, os.getpid(), since, term))
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, holder, 0)
                if check:
                    self.log.check_end()
                # A process that still publishes for the last holder has finished by now, or will
                # find that its term is over.
                with self._publishing_lock():
                    if check:
                        self.messages.sweep(self.log.compacted_to)
                if check:
                    self.log.sweep()
            try:
                yield Processing(descriptor, term)
            finally:
                # Closing is not enough: a process that inherited the file may still be running.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def processed_by(self) -> str | None:
        """The process that holds the processing lock, if there is one."""
        path = self.path / PROCESSING_LOCK
        with os_errors("see who processes the home", path):
            try:
                with path.open("rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except FileNotFoundError:
                pass
            except BlockingIOError:
                held = _holder(path.read_bytes())
                return "another process" if held is None else f"{held.who} (process {held.pid})"
        return None

    @contextmanager
    def publishing(self, term: str) -> Iterator[None]:
        """Publish for the holder of the processing lock, from another process.

        When the holder is killed, its child processes live on for a moment. Their publications are
        refused as soon as another process has taken the lock.
        """
        with self._publishing_lock():
            try:
                holder = _holder((self.path / PROCESSING_LOCK).read_bytes())
            except OSError:
                holder = None
            if holder is None or holder.term != term:
                raise LockedError(
                    f"{self.path} is processed by somebody else by now",
                    detail="what should be published comes from a run that has ended",
                )
            yield

    def _publishing_lock(self) -> AbstractContextManager[None]:
        path = self.path / PUBLISHING_LOCK
        refusal = LockedError(
            "another process keeps the message log locked",
            detail=f"waited {PUBLISHING_LOCK_SECONDS:g} seconds for {path}",
            hint="look for a penstock process that hangs",
        )
        return file_lock(path, PUBLISHING_LOCK_SECONDS, refusal)


def home_around(directory: Path) -> Path | None:
    """The home that a directory is, or is inside of."""
    resolved = directory.resolve()
    for one in (resolved, *resolved.parents):
        if (one / MARKER_NAME).is_file():
            return one
    return None


def home_path(path: object) -> Path:
    """A valid path; whether it exists is not checked."""
    plain = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(plain, str):
        raise HomeError(f"the path of a home is a text or a Path, not {shown(path)}")
    try:
        encoded = os.fsencode(plain)
    except UnicodeEncodeError:
        encoded = b""
    if b"\0" in encoded or not encoded:
        raise HomeError(f"the path of a home cannot be {shown(plain)}")
    length = len(os.path.realpath(encoded))
    if length > MAX_PATH_BYTES:
        raise HomeError(
            f"the path of a home has at most {MAX_PATH_BYTES} bytes; {shown(plain)} has {length}",
            detail="from the root on, links followed: SQLite opens no longer ones",
            hint="keep it in a directory that is nearer to the root",
        )
    return Path(plain)


def _restrict(path: Path, mode: int) -> None:
    """A directory that somebody else created for us stays as it is: its owner decides."""
    if path.stat().st_uid == os.geteuid():
        path.chmod(stat.S_IMODE(mode))


def _check_unused(path: Path) -> None:
    if (path / MARKER_NAME).exists():
        raise HomeError(f"{path} already is a penstock home", hint="use it, or choose another path")
    for entry in sorted(path.iterdir()):
        # Our empty directories and a key are what a crash during `create` leaves.
        ours = entry.name in _DIRECTORIES and entry.is_dir() and not any(entry.iterdir())
        begun = entry.name.startswith((f"{MARKER_NAME}.", KEY_NAME))
        if not ours and not begun:
            raise HomeError(
                f"{path} is not empty",
                detail=f"it holds {entry.name}",
                hint="a home needs a directory of its own",
            )


def _take(path: Path, descriptor: int) -> None:
    """Lock the file. Child processes of a killed holder may hold it for a moment longer."""
    if locked_within(descriptor, timeout_seconds=0.0):
        return
    holder = _holder(os.pread(descriptor, 4096, 0))
    is_gone = holder is not None and not _is_alive(holder.pid)
    if not (is_gone and locked_within(descriptor, LOCK_GRACE_SECONDS)):
        raise _held(path, holder)


def _holder(content: bytes) -> _Holder | None:
    try:
        return msgspec.json.decode(content, type=_Holder)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # owned by somebody else
    return True


def _held(path: Path, holder: _Holder | None) -> LockedError:
    if holder is None:
        by, detail = "another process", ""
    else:
        by, detail = f"{holder.who} (process {holder.pid})", f"since {holder.since}"
    return LockedError(
        f"{path} is being processed by {by}",
        detail=detail,
        hint="a home is processed by one Hub or one pipeline at a time: stop that one first",
    )
