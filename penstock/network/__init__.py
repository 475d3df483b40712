"""Content networks: brokers that forward messages to the subscriptions they are addressed to."""

from penstock.network.node import BrokerNode
from penstock.network.ports import Outcome
from penstock.network.sessions import Timing

__all__ = ["BrokerNode", "Outcome", "Timing"]
