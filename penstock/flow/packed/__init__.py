"""The fast gear of the row stage: by kernels on packed rows, many changes at a time.

`penstock.flow.plain` is the plain gear: one change after the other, on rows that are tuples. The
pipeline gets rows as MessagePack, and nearly everything is done with their bytes: rows are found by
the bytes of their keys and put into messages as they are, so nothing becomes an object for each
change. Unsupported column types fall back to the plain gear; both give the same bytes. The fast
gear of joins is `penstock.joins.packed`.
"""
