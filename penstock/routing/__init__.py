"""Finding the subscriptions that a message is meant for."""

from penstock.routing.recipients import recipients, subscribers

__all__ = ["recipients", "subscribers"]
