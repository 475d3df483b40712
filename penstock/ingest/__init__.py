"""How events get into the log: input formats, and directories into which files are dropped."""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.ingest.dry_run import FileCheck, Refusal, check_file
    from penstock.ingest.file_ingest import FileIngest, IngestResult
    from penstock.ingest.formats import InputFormat, input_formats, read_file
    from penstock.ingest.formats.json_lines import ByteSource, read_lines
    from penstock.ingest.ingest_ledger import decode_taken, remove_ledger
    from penstock.ingest.input_files import InputBatch, shown_name
    from penstock.ingest.publication import MAX_BACKLOG, Published, leave_out, publish
    from penstock.ingest.resumable_file import open_resumable
    from penstock.ingest.watcher import WatchSummary, watch

__all__ = [
    "MAX_BACKLOG",
    "ByteSource",
    "FileCheck",
    "FileIngest",
    "IngestResult",
    "InputBatch",
    "InputFormat",
    "Published",
    "Refusal",
    "WatchSummary",
    "check_file",
    "decode_taken",
    "input_formats",
    "leave_out",
    "open_resumable",
    "publish",
    "read_file",
    "read_lines",
    "remove_ledger",
    "shown_name",
    "watch",
]

__getattr__ = lazy_door(
    __name__,
    {
        "dry_run": "FileCheck Refusal check_file",
        "file_ingest": "FileIngest IngestResult",
        "formats": "InputFormat input_formats read_file",
        "formats.json_lines": "ByteSource read_lines",
        "ingest_ledger": "decode_taken remove_ledger",
        "input_files": "InputBatch shown_name",
        "publication": "MAX_BACKLOG Published leave_out publish",
        "resumable_file": "open_resumable",
        "watcher": "WatchSummary watch",
    },
)
