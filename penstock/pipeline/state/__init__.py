"""The state of the stages: rows and groups, durable in Spark's state store, with a local cache.

* `stores`: the two interfaces that the stages see, over a map from bytes to bytes;
* `bucket`: that map, for one bucket and one batch;
* `ledger`: its durable form, numbered blobs of changed entries in Spark's state store;
* `mirror`: its cache, a memory-mapped copy on the worker's machine.

docs/notes/state-layout.md says why.
"""

from penstock.flow.stores import StoredGroups, StoredRows
from penstock.pipeline.state.bucket import BucketState
from penstock.pipeline.state.ledger import Ledger, StoredMap
from penstock.pipeline.state.mirror import Mirror, mirror_directory

__all__ = [
    "BucketState",
    "Ledger",
    "Mirror",
    "StoredGroups",
    "StoredMap",
    "StoredRows",
    "mirror_directory",
]
