"""Content networks: brokers that pass messages on to whoever they are meant for."""

from penstock.network.node import BrokerNode
from penstock.network.ports import Outcome
from penstock.network.sessions import Timing

__all__ = ["BrokerNode", "Outcome", "Timing"]
