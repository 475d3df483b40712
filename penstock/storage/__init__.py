"""What a home keeps: the log, the message log and the quarantine, on disk or in memory."""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.storage.batch_codec import (
        COMPRESSED_VERSION,
        Place,
        batch_name,
        encode_batch,
        parse_batch_name,
        read_batch,
    )
    from penstock.storage.batch_directory import BatchKind
    from penstock.storage.batch_files import BatchFiles
    from penstock.storage.disk import (
        NO_ROOM,
        FileFormat,
        file_lock,
        is_full,
        os_errors,
        sync_directory,
        write_aside,
    )
    from penstock.storage.families import claim_family, home_family
    from penstock.storage.file_access import (
        make_directory,
        open_appending,
        open_file,
        open_new,
        umask_of,
    )
    from penstock.storage.frames import MAX_RECORD_BYTES
    from penstock.storage.home import (
        PROCESSING_LOCK,
        PUBLISHING_LOCK,
        Home,
        home_around,
        home_path,
    )
    from penstock.storage.home_statistics import (
        STATISTICS_DIRECTORY,
        STATISTICS_FORMAT,
        STATISTICS_SUFFIX,
        ColumnStatistics,
        EdgeStatistics,
        HomeStatistics,
        TableStatistics,
        load_statistics,
        samples,
        save_statistics,
        usable_statistics,
    )
    from penstock.storage.interfaces import (
        DEFAULT_BUCKETS,
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
    from penstock.storage.log_compaction import compacted_segment
    from penstock.storage.log_segment import SEGMENT_SUFFIX, LogSegment
    from penstock.storage.lost_records import accept_loss
    from penstock.storage.memory_home import MemoryHome, MemoryLog, MemoryMessageLog
    from penstock.storage.message_log import (
        BASE_FORMAT,
        BASE_SUFFIX,
        MESSAGE_FILES,
        MESSAGE_SUFFIX,
        MessageLog,
    )
    from penstock.storage.owner_key import KEY_NAME, find_owner_key
    from penstock.storage.packed_batch import PackedMessages
    from penstock.storage.quarantine import QUARANTINE_FILES, list_quarantine, replay
    from penstock.storage.rolled import ROLLED_SUFFIX, Extent
    from penstock.storage.set_aside import (
        events_in_quarantine,
        events_not_applied,
        refusal,
        set_aside_entry,
        set_aside_in,
        set_aside_of,
        suspects_among,
    )
    from penstock.storage.table_replay import Replay, replay_tables
    from penstock.storage.witnesses import LOST_HINT, Witness, lost_end

__all__ = [
    "BASE_FORMAT",
    "BASE_SUFFIX",
    "COMPRESSED_VERSION",
    "DEFAULT_BUCKETS",
    "KEY_NAME",
    "LOST_HINT",
    "MAX_RECORD_BYTES",
    "MESSAGE_FILES",
    "MESSAGE_SUFFIX",
    "NO_ROOM",
    "PROCESSING_LOCK",
    "PUBLISHING_LOCK",
    "QUARANTINE_FILES",
    "ROLLED_SUFFIX",
    "SEGMENT_SUFFIX",
    "STATISTICS_DIRECTORY",
    "STATISTICS_FORMAT",
    "STATISTICS_SUFFIX",
    "UNREADABLE_BODY",
    "AnyHome",
    "BatchFiles",
    "BatchHeader",
    "BatchKind",
    "BatchLog",
    "ColumnStatistics",
    "EdgeStatistics",
    "Entry",
    "Extent",
    "FileFormat",
    "Home",
    "HomeStatistics",
    "Log",
    "LogSegment",
    "MemoryHome",
    "MemoryLog",
    "MemoryMessageLog",
    "MessageLog",
    "Offset",
    "PackedMessages",
    "Place",
    "QuarantinedEvent",
    "Record",
    "RecordKind",
    "RecordLog",
    "Replay",
    "TableStatistics",
    "Tail",
    "Witness",
    "accept_loss",
    "batch_name",
    "claim_family",
    "compacted_away",
    "compacted_segment",
    "encode_batch",
    "events_in_quarantine",
    "events_not_applied",
    "file_lock",
    "find_owner_key",
    "home_around",
    "home_family",
    "home_path",
    "is_full",
    "list_quarantine",
    "load_statistics",
    "lost_end",
    "make_directory",
    "open_appending",
    "open_file",
    "open_new",
    "os_errors",
    "parse_batch_name",
    "read_batch",
    "refusal",
    "replay",
    "replay_tables",
    "samples",
    "save_statistics",
    "set_aside_entry",
    "set_aside_in",
    "set_aside_of",
    "suspects_among",
    "sync_directory",
    "umask_of",
    "usable_statistics",
    "write_aside",
]

__getattr__ = lazy_door(
    __name__,
    {
        "batch_codec": (
            "COMPRESSED_VERSION Place batch_name encode_batch parse_batch_name read_batch"
        ),
        "batch_directory": "BatchKind",
        "batch_files": "BatchFiles",
        "disk": "FileFormat NO_ROOM file_lock is_full os_errors sync_directory write_aside",
        "families": "claim_family home_family",
        "file_access": "make_directory open_appending open_file open_new umask_of",
        "frames": "MAX_RECORD_BYTES",
        "home": "PROCESSING_LOCK PUBLISHING_LOCK Home home_around home_path",
        "home_statistics": (
            "ColumnStatistics EdgeStatistics HomeStatistics STATISTICS_DIRECTORY "
            "STATISTICS_FORMAT STATISTICS_SUFFIX TableStatistics load_statistics samples "
            "save_statistics usable_statistics"
        ),
        "interfaces": (
            "AnyHome BatchHeader BatchLog DEFAULT_BUCKETS Entry Offset QuarantinedEvent "
            "Record RecordKind RecordLog Tail UNREADABLE_BODY compacted_away"
        ),
        "log": "Log",
        "log_compaction": "compacted_segment",
        "log_segment": "LogSegment SEGMENT_SUFFIX",
        "lost_records": "accept_loss",
        "memory_home": "MemoryHome MemoryLog MemoryMessageLog",
        "message_log": "BASE_FORMAT BASE_SUFFIX MESSAGE_FILES MESSAGE_SUFFIX MessageLog",
        "owner_key": "KEY_NAME find_owner_key",
        "packed_batch": "PackedMessages",
        "quarantine": "QUARANTINE_FILES list_quarantine replay",
        "rolled": "Extent ROLLED_SUFFIX",
        "set_aside": (
            "events_in_quarantine events_not_applied refusal set_aside_entry set_aside_in "
            "set_aside_of suspects_among"
        ),
        "table_replay": "Replay replay_tables",
        "witnesses": "LOST_HINT Witness lost_end",
    },
)
