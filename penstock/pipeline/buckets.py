"""The partitions of keyed stages on Spark, and the schema of what moves between them.

Loaded by many processes that never see a row, so it loads nothing itself.
"""

BUCKETS = (0, 1, 2, 5, 6, 12, 15, 25)
"""State is kept by bucket, so that a batch touches few state keys. These numbers Spark deals out
evenly to 2, 4 or 8 partitions; from 0 to 7 it would give five to one of two. A checkpoint that was
begun with them can only go on with them (`penstock.pipeline.offsets.LAYOUT`)."""

CHUNK_SCHEMA = "bucket int, kind int, count int, chunk binary"
