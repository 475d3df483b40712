#!/bin/sh
# Print the Python to build the environment with: the one asked for, or the first that fits.
# Each candidate is run, not only looked up: version managers leave commands that cannot start.
set -eu

fits() {
    "$1" -c '
import sys
import ensurepip, venv  # some systems package these apart
sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
' >/dev/null 2>&1
}

asked_for="${1:-}"
if [ -n "$asked_for" ]; then
    missing="$asked_for is not a Python from 3.11 to 3.13 with the venv and ensurepip modules."
else
    missing="No Python from 3.11 to 3.13 with the venv and ensurepip modules was found."
    set -- python3.11 python3.12 python3.13 python3 python
fi

for candidate in "$@"; do
    if fits "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done

{
    echo "$missing"
    echo "Debian and Ubuntu: sudo apt-get install python3 python3-venv"
    echo "To choose one yourself: make setup PYTHON=/path/to/python3.12"
} >&2
exit 1
