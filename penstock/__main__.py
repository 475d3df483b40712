"""`python -m penstock`: the command line."""

from penstock.cli.main import main

main()
