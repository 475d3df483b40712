"""The stages with state, on packed rows: by kernels, many changes at a time.

`penstock.flow.plain` says what the stages do, one change after the other, on rows that are
tuples. The pipeline gets rows as MessagePack, and nearly all it does with them can be done with
their bytes: rows are found by the bytes of their keys, joined by the bytes of their join values,
and put into messages as they are. So here nothing becomes an object for each change. Whatever is
not of the usual kind is left to `penstock.flow.plain`, and what comes of it is the same.
"""
