"""What a home keeps: the log, the message log and the quarantine, on disk or in memory."""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.storage.disk import NO_ROOM, is_full, os_errors
    from penstock.storage.families import claim_family
    from penstock.storage.file_access import open_file
    from penstock.storage.frames import MAX_RECORD_BYTES
    from penstock.storage.home import Home, home_around, home_path
    from penstock.storage.home_statistics import (
        EdgeStatistics,
        HomeStatistics,
        TableStatistics,
        load_statistics,
        samples,
        usable_statistics,
    )
    from penstock.storage.interfaces import (
        UNREADABLE_BODY,
        AnyHome,
        BatchHeader,
        BatchLog,
        Entry,
        Offset,
        QuarantinedEvent,
        Record,
        RecordKind,
        RecordLog,
        Tail,
        compacted_away,
    )
    from penstock.storage.log import Log
    from penstock.storage.lost_records import accept_loss
    from penstock.storage.memory_home import MemoryHome, MemoryLog, MemoryMessageLog
    from penstock.storage.message_log import MessageLog
    from penstock.storage.quarantine import list_quarantine, replay
    from penstock.storage.set_aside import (
        events_not_applied,
        refusal,
        set_aside_entry,
        set_aside_in,
        set_aside_of,
        suspects_among,
    )
    from penstock.storage.table_replay import replay_tables
    from penstock.storage.witnesses import Witness, lost_end

__all__ = [
    "MAX_RECORD_BYTES",
    "NO_ROOM",
    "UNREADABLE_BODY",
    "AnyHome",
    "BatchHeader",
    "BatchLog",
    "EdgeStatistics",
    "Entry",
    "Home",
    "HomeStatistics",
    "Log",
    "MemoryHome",
    "MemoryLog",
    "MemoryMessageLog",
    "MessageLog",
    "Offset",
    "QuarantinedEvent",
    "Record",
    "RecordKind",
    "RecordLog",
    "TableStatistics",
    "Tail",
    "Witness",
    "accept_loss",
    "claim_family",
    "compacted_away",
    "events_not_applied",
    "home_around",
    "home_path",
    "is_full",
    "list_quarantine",
    "load_statistics",
    "lost_end",
    "open_file",
    "os_errors",
    "refusal",
    "replay",
    "replay_tables",
    "samples",
    "set_aside_entry",
    "set_aside_in",
    "set_aside_of",
    "suspects_among",
    "usable_statistics",
]

__getattr__ = lazy_door(
    __name__,
    {
        "disk": "NO_ROOM is_full os_errors",
        "families": "claim_family",
        "file_access": "open_file",
        "frames": "MAX_RECORD_BYTES",
        "home": "Home home_around home_path",
        "home_statistics": (
            "EdgeStatistics HomeStatistics TableStatistics load_statistics samples "
            "usable_statistics"
        ),
        "interfaces": (
            "AnyHome BatchHeader BatchLog Entry Offset QuarantinedEvent Record RecordKind "
            "RecordLog Tail UNREADABLE_BODY compacted_away"
        ),
        "log": "Log",
        "lost_records": "accept_loss",
        "memory_home": "MemoryHome MemoryLog MemoryMessageLog",
        "message_log": "MessageLog",
        "quarantine": "list_quarantine replay",
        "set_aside": (
            "events_not_applied refusal set_aside_entry set_aside_in set_aside_of suspects_among"
        ),
        "table_replay": "replay_tables",
        "witnesses": "Witness lost_end",
    },
)
