#!/bin/sh
# Make the environment: setup.sh DIRECTORY [PYTHON]. Run from the root of the repository.
set -eu

environment="$1"
python="$(sh scripts/find_python.sh "${2:-}")"

# First, because it is quick and everything else takes minutes.
"$python" scripts/setup_java.py

# An environment of another Python, or one that no longer starts, is made anew. One that fits is
# kept, so that a change of one package does not install them all again.
identity='import sys; print(sys.version, sys.base_prefix)'
wanted="$("$python" -c "$identity")"
present="$("$environment/bin/python" -c "$identity" 2>/dev/null || true)"
echo "Setting up $environment with $("$python" --version). Spark is large: this can take minutes."
if [ "$present" = "$wanted" ]; then
    "$python" -m venv "$environment"
else
    "$python" -m venv --clear "$environment"
fi

pip() {
    "$environment/bin/python" -m pip --disable-pip-version-check "$@"
}
# The lock names every package, so nothing is looked for beyond it; the check would tell.
pip install --quiet --no-deps --requirement requirements-dev.lock
pip install --quiet --no-deps --no-build-isolation --editable .
pip check
