"""The marker of a home, `penstock.json`: what it is, and its settings.

Members that a later release adds are ignored; changes that earlier releases must not ignore raise
the version of the layout.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from penstock.arguments import lease_length, shown
from penstock.errors import HomeError
from penstock.storage.disk import write_aside
from penstock.storage.interfaces import DEFAULT_BUCKETS, MAX_BUCKETS

MARKER_NAME = "penstock.json"
LAYOUT_VERSION = 1
BUCKETS_LAYOUT_VERSION = 2
"""For homes whose number of buckets is not `DEFAULT_BUCKETS`. Earlier releases know only that one,
so they must refuse them."""
BUCKET_NUMBERS = tuple(1 << power for power in range(MAX_BUCKETS.bit_length()))
"""Powers of two, which Spark can divide evenly among its partitions."""

OLDEST_FAMILY = "semijoins"
"""The family of the schemes that processed a home whose marker does not name one; see
`penstock.storage.families`."""


class Marker(msgspec.Struct):
    penstock_home: int
    created: str
    shared: bool = False
    schemes: str = OLDEST_FAMILY
    buckets: int = DEFAULT_BUCKETS
    default_lease_seconds: float | None = None

    @classmethod
    def of_new_home(
        cls, *, shared: bool, buckets: int, default_lease_seconds: float | None
    ) -> Marker:
        """HomeError if a home cannot have these settings."""
        version = LAYOUT_VERSION if buckets == DEFAULT_BUCKETS else BUCKETS_LAYOUT_VERSION
        created = datetime.now(UTC).isoformat(timespec="seconds")
        default = _check_default_lease(default_lease_seconds)
        buckets = check_buckets(buckets)
        return cls(version, created, shared, buckets=buckets, default_lease_seconds=default)


def write_marker(home: Path, marker: Marker) -> None:
    write_aside(home / MARKER_NAME, msgspec.json.encode(marker))


def read_marker(home: Path) -> Marker:
    """The marker of the home at this path; HomeError if this release cannot use it."""
    try:
        marker = msgspec.json.decode((home / MARKER_NAME).read_bytes(), type=Marker)
    except (FileNotFoundError, NotADirectoryError):
        if home.is_file():
            raise HomeError(
                f"{home} is not a penstock home, but a file", hint="a home is a directory"
            ) from None
        what = "is not a penstock home" if home.exists() else "does not exist"
        raise HomeError(f"{home} {what}", hint=f"make one: penstock init {home}") from None
    except OSError as error:
        raise HomeError(f"cannot open {home}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HomeError(
            f"{home} is not a penstock home",
            detail=f"{MARKER_NAME}: {error}",
            hint=f"restore {MARKER_NAME} from a backup",
        ) from None
    if marker.penstock_home not in (LAYOUT_VERSION, BUCKETS_LAYOUT_VERSION):
        raise HomeError(
            f"{home} has layout version {marker.penstock_home}",
            detail=f"this release knows versions up to {BUCKETS_LAYOUT_VERSION}",
            hint="use the release that made it, or a newer one",
        )
    check_buckets(marker.buckets)
    _check_default_lease(marker.default_lease_seconds)
    return marker


def check_buckets(buckets: object) -> int:
    if isinstance(buckets, bool) or buckets not in BUCKET_NUMBERS:
        numbers = ", ".join(map(str, BUCKET_NUMBERS))
        raise HomeError(f"a home has {numbers} buckets, not {shown(buckets)}")
    assert isinstance(buckets, int)
    return buckets


def _check_default_lease(seconds: float | None) -> float | None:
    return None if seconds is None else lease_length(seconds, HomeError)
