"""Values of rows as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from decimal import Decimal


def json_line(value: object) -> str:
    """A value as one line of JSON, in ASCII, so that it is safe in every encoding."""
    return json.dumps(json_ready(value), allow_nan=False)


def json_ready(value: object) -> object:
    """A value in JSON types: decimals as strings, dates as ISO 8601, NaN and infinities as strings,
    as publishers write them."""
    if isinstance(value, Mapping):
        return {str(name): json_ready(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    return value
