"""The fast gear of the row stage: kernels over packed rows, a batch of changes at a time.

`penstock.flow.plain` is the plain gear: one change after the other, on rows that are tuples. The
pipeline receives rows as MessagePack, and nearly all processing works on these bytes: rows are
found by the bytes of their keys, grouped by the bytes of their join values, and copied into
messages. Columns of every type have a codec here (`penstock.flow.columnar.layout`): kernels read
and write their JSON, packed form, key and join value. Both gears give the same bytes;
`penstock.flow.plan` decides between them. The fast gear of joins is `penstock.joins.packed`.
"""
