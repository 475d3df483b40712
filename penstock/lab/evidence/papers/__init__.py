"""One module for each paper, with its `PAPER`."""
