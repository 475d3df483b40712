"""Finding the subscriptions, and the links, that a message is addressed to."""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door
from penstock.routing.plain import PlainRegions
from penstock.routing.table import RoutingTable

if TYPE_CHECKING:
    from penstock.routing.space_recipients import recipients, subscribers

__all__ = ["PlainRegions", "RoutingTable", "recipients", "subscribers"]

__getattr__ = lazy_door(__name__, {"space_recipients": "recipients subscribers"})
