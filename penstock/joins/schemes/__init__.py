"""The schemes, one file each: found by name in `penstock.joins.scheme_registry`."""
