"""The command line: one file per command; the work is done in other packages."""
