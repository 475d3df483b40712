"""The fast gear of the stages with state: kernels over packed rows, many changes at a time.

`penstock.flow.stages` is the plain gear: one change after the other, on rows that are tuples. The
pipeline gets rows as MessagePack, and nearly all it does with them can be done with their bytes:
rows are found by the bytes of their keys, grouped by the bytes of their join values, and copied
into messages. Columns of every type have a codec here (`penstock.flow.columnar.layout`): their
JSON, packed form, key and join value are read and written by kernels.

Both gears give the same bytes. What decides between them, from the source to the sink:

* decode (`columnar.reader`): events that are not plain JSON lines of one of the first `MAX_FORMS`
  relations, or that the JSON kernels cannot vouch for (escapes, exponents, coercions, ...), are
  read one by one; the others of the batch are not.
* selections (`SCANNED_ROWS` in `penstock.joins.selections`): few rows are tested one by one,
  because compiling a matcher takes longer.
* steps of groups (`delta_steps.is_joined_by_bytes`): payload halves take the plain gear, since
  their rows are made of digests that no packed row holds.
* groups (`PackedJoins.can_run` in `penstock.joins.packed`): so do edges between payload halves,
  and edges that are new in the batch, whose groups are filled one by one.
* spaces (`PackedScheme.can_take` in `penstock.joins.packed`): so do spaces with several filter
  columns, and those whose shadow index has more than one segment.
* any stage whose fast gear failed on a batch (`penstock.pipeline.faults`).
"""
