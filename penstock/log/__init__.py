"""What a home keeps: the log, the message log and the quarantine, on disk or in memory."""

from penstock.log.home import Home
from penstock.log.interfaces import (
    AnyHome,
    BatchHeader,
    BatchLog,
    QuarantinedEvent,
    Record,
    RecordKind,
    RecordLog,
    Tail,
)
from penstock.log.log import Log
from penstock.log.memory import MemoryHome, MemoryLog, MemoryMessageLog
from penstock.log.messagelog import MessageLog

__all__ = [
    "AnyHome",
    "BatchHeader",
    "BatchLog",
    "Home",
    "Log",
    "MemoryHome",
    "MemoryLog",
    "MemoryMessageLog",
    "MessageLog",
    "QuarantinedEvent",
    "Record",
    "RecordKind",
    "RecordLog",
    "Tail",
]
