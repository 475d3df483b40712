"""Finding the subscriptions that a message is meant for."""

from penstock.routing.recipients import recipients

__all__ = ["recipients"]
