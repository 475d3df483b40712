"""The command line: thin doors to the rooms behind it, one file per command."""
