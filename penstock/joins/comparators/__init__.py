"""Published schemes for comparison, one file each, found by name."""
