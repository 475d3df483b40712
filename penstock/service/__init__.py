"""Server processes: brokers, sites of views, and readers that follow through one."""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.service.addresses import Address, parse_address
    from penstock.service.broker import Broker
    from penstock.service.broker_reader import BrokerReader
    from penstock.service.broker_settings import BrokerSettings
    from penstock.service.calibration import Calibration, calibrate_site
    from penstock.service.local_network import LocalNetwork
    from penstock.service.local_sites import LocalSites
    from penstock.service.site import Site, SiteSettings, run_site
    from penstock.service.tokens import read_tokens
    from penstock.service.view_reader import ViewNews, ViewReader, ask_state
    from penstock.service.view_source import SourceSettings, ViewSource, run_source

__all__ = [
    "Address",
    "Broker",
    "BrokerReader",
    "BrokerSettings",
    "Calibration",
    "LocalNetwork",
    "LocalSites",
    "Site",
    "SiteSettings",
    "SourceSettings",
    "ViewNews",
    "ViewReader",
    "ViewSource",
    "ask_state",
    "calibrate_site",
    "parse_address",
    "read_tokens",
    "run_site",
    "run_source",
]

__getattr__ = lazy_door(
    __name__,
    {
        "addresses": "Address parse_address",
        "broker": "Broker",
        "broker_reader": "BrokerReader",
        "broker_settings": "BrokerSettings",
        "calibration": "Calibration calibrate_site",
        "local_network": "LocalNetwork",
        "local_sites": "LocalSites",
        "site": "Site SiteSettings run_site",
        "tokens": "read_tokens",
        "view_reader": "ViewNews ViewReader ask_state",
        "view_source": "SourceSettings ViewSource run_source",
    },
)
