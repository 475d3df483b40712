"""`penstock version`"""

from __future__ import annotations

from penstock.cli.output import Output
from penstock.cli.parameters import JsonOption

PANEL = "Set up"
EXAMPLES = """
  penstock version
  penstock version --json
"""


def version(as_json: JsonOption = False) -> None:
    """Print the versions of Penstock, Python and Spark."""
    import platform
    from importlib.metadata import version as installed

    out = Output(as_json=as_json)
    versions = {
        "penstock": installed("penstock"),
        "python": platform.python_version(),
        "pyspark": installed("pyspark"),
    }
    out.result(versions)
    out.say(" · ".join(f"{name} {number}" for name, number in versions.items()))
