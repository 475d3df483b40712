"""Published schemes that exist for comparison: one file each, found by name."""
