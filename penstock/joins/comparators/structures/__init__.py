"""Index structures shared by several published schemes."""
