"""Every error Penstock raises on purpose.

    PenstockError                 primary + detail + hint, and an exit code for the command line
    ├── SqlError                  a statement was refused; knows the place in the text
    │   └── NotYetError           understood, but this release cannot do it
    ├── CatalogError              a relation cannot be declared
    ├── ChangeError               a change does not fit the tables (bad value, duplicate key, ...)
    │   ├── EventError            bytes from a publisher that are not a change at all
    │   │   └── NoChangeError     nor meant as one: a tombstone, a heartbeat; counted, not kept
    │   └── DocumentError         a document that is no safe, well-formed XML
    ├── SubscriptionError         no such subscription, or it was withdrawn
    │   └── TicketError           not the ticket of that subscription
    ├── WireError                 bytes that are not a message of a known version
    ├── HomeError                 a home is missing, foreign, or in use
    │   ├── CorruptionError       a checksum failed; names the file and the place
    │   ├── RecordError           a record of the log that another release wrote
    │   ├── CompactedError        what a reader wants to be told of has been compacted away
    │   ├── LockedError           another process works on this home
    │   └── InputError            a file of events cannot be read; the home is as it was
    ├── NetworkError              a peer, a link or an interest that a broker cannot work with
    ├── BacklogError              the log runs too far ahead of the pipeline; try again later
    ├── ChannelError              a channel did not take notifications; they are sent again
    ├── PlanError                 views cannot be planned within their capacity limits
    ├── OperatorError             an operator is not there, badly defined, or used wrongly
    ├── ExtraError                a feature needs an optional library that is not installed
    └── PipelineError             Spark could not start, or the query failed

Nothing from a lower layer (sqlglot, sqlite, Spark, the operating system) leaks through a public
door: it is caught where it is understood and re-raised as one of these.
"""

from __future__ import annotations

from typing import ClassVar

MAX_REASON_CHARACTERS = 1_000
"""Maximum length of each part of a stored reason. Reasons contain names and values of publishers,
up to a megabyte each; the event itself is stored anyway."""


class PenstockError(Exception):
    """What went wrong, why, and what to do about it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, primary: str, *, detail: str = "", hint: str = "") -> None:
        super().__init__(primary)
        self.primary = primary
        self.detail = detail
        self.hint = hint
        self.facts: dict[str, object] = {}
        """For programs: what was done before the error."""

    def __str__(self) -> str:
        lines = [self.primary]
        if self.detail:
            lines.append(f"  detail: {self.detail}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling, and Spark pickles errors.
        return (_rebuild, (type(self), dict(self.__dict__), self.primary))


def shortened(text: str, most: int = MAX_REASON_CHARACTERS) -> str:
    """A text, or its beginning and an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _rebuild(kind: type[PenstockError], state: dict[str, object], primary: str) -> PenstockError:
    error = kind.__new__(kind)
    Exception.__init__(error, primary)
    error.__dict__.update(state)
    return error


class SqlError(PenstockError):
    """A statement was refused. `position` is the character offset of the cause, if known."""

    exit_code = 3

    def __init__(
        self,
        primary: str,
        *,
        detail: str = "",
        hint: str = "",
        sql: str = "",
        position: int | None = None,
        length: int = 1,
    ) -> None:
        super().__init__(primary, detail=detail, hint=hint)
        self.sql = sql
        self.position = position
        self.length = length

    def __str__(self) -> str:
        return "\n".join(part for part in (super().__str__(), self.excerpt()) if part)

    def excerpt(self, width: int = 76) -> str:
        """The line of the statement around the cause, with the cause underlined."""
        if self.position is None or not self.sql:
            return ""
        position = min(max(self.position, 0), len(self.sql))
        line_start = self.sql.rfind("\n", 0, position) + 1
        line_end = self.sql.find("\n", position)
        line = self.sql[line_start : line_end if line_end >= 0 else len(self.sql)]
        column = position - line_start
        first = 0 if len(line) <= width else max(0, column - width // 2)
        shown = line[first : first + width].replace("\t", " ")
        marks = "^" * max(1, min(self.length, len(shown) - (column - first)))
        return f"  {shown}\n  {' ' * (column - first)}{marks}"


class UnknownOperatorError(SqlError):
    """A statement calls a function that is neither built in nor an operator of the catalog."""

    def __init__(self, name: str, *, hint: str = "") -> None:
        super().__init__(
            f"there is no function or operator {name}",
            hint=hint or "operators are declared by CREATE OPERATOR or Hub.register_operator",
        )
        self.name = name


class NotYetError(SqlError):
    """A statement that Penstock means to support, but not in this release."""


class CatalogError(PenstockError):
    """A table, stream or operator cannot be declared like this."""

    exit_code = 3


class ChangeError(PenstockError):
    """A change that does not fit the tables."""

    exit_code = 4

    def reason(self) -> tuple[str, str, str]:
        """Primary, detail and hint as the quarantine stores them, truncated."""
        return shortened(self.primary), shortened(self.detail), shortened(self.hint)


class EventError(ChangeError):
    """Bytes from a publisher that cannot be read as a change."""


class NoChangeError(EventError):
    """Valid bytes that ask for no change: they are skipped."""


class DocumentError(ChangeError):
    """A document that is refused: not well-formed, unsafe, or beyond a limit."""


class SubscriptionError(PenstockError):
    """No such subscription."""

    exit_code = 5


class TicketError(SubscriptionError):
    """The ticket does not match. Reveals neither whether there is one nor what was shown."""


class WireError(PenstockError):
    """Bytes that are not a message of a version this release knows."""

    exit_code = 6


class HomeError(PenstockError):
    """The home is missing, is not a home, or cannot be used."""

    exit_code = 6


class CompactedError(HomeError):
    """Changes that a reader asks for were compacted away; the content is still available."""


class CorruptionError(HomeError):
    """A checksum failed. Nothing after the named position has been read or dropped."""

    exit_code = 7


class RecordError(HomeError):
    """A record of the log that this release cannot read."""


class LockedError(HomeError):
    """Another process is using this home."""

    exit_code = 8


class InputError(HomeError):
    """A file of events cannot be read: it is missing, not a regular file, or not permitted."""

    def __init__(self, primary: str, *, detail: str = "", is_gone: bool = False) -> None:
        super().__init__(primary, detail=detail)
        self.is_gone = is_gone


class NetworkError(PenstockError):
    """A peer, a link or an interest that a broker cannot work with; others are not affected."""

    exit_code = 15


class BacklogError(PenstockError):
    """Too many records are unprocessed. Nothing was appended; the same request may succeed
    later."""

    exit_code = 11


class PipelineError(PenstockError):
    """Spark could not start, or the streaming query failed."""

    exit_code = 9


class ChannelError(PenstockError):
    """A channel did not accept notifications. They stay in the message log, and are sent again."""

    exit_code = 12


class OperatorError(PenstockError):
    """An operator that is not registered, invalid, or called with the wrong arguments."""

    exit_code = 17


class ExtraError(PenstockError):
    """A feature needs an optional library that is not installed."""

    exit_code = 13

    def __init__(self, feature: str, library: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the library {library!r}, which is not installed",
            hint=f"pip install 'penstock[{extra}]'",
        )


class PlanError(PenstockError):
    """No plan of the views is within the capacity limits."""

    exit_code = 14
