"""What a home keeps: the log, the message log and the quarantine, on disk or in memory."""

from penstock.storage.home import Home
from penstock.storage.interfaces import (
    AnyHome,
    BatchHeader,
    BatchLog,
    QuarantinedEvent,
    Record,
    RecordKind,
    RecordLog,
    Tail,
)
from penstock.storage.log import Log
from penstock.storage.memory import MemoryHome, MemoryLog, MemoryMessageLog
from penstock.storage.message_log import MessageLog

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
