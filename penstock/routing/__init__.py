"""Finding the subscriptions, and the links, that a message is meant for."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.routing.recipients import recipients, subscribers

__all__ = ["recipients", "subscribers"]

# Loaded when first asked for: brokers load this room, and need the kernels for large tables only.
_HOMES = {"recipients": "penstock.routing.recipients", "subscribers": "penstock.routing.recipients"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
