"""Looking after a home: is everything in it whole, and what can go?"""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.maintenance.compaction import compact
    from penstock.maintenance.findings import Severity
    from penstock.maintenance.home_status import Status, seconds_since, status_of
    from penstock.maintenance.oracle import Oracle, comparable
    from penstock.maintenance.traffic import Clients, Traffic
    from penstock.maintenance.verification import Verdict, verify

__all__ = [
    "Clients",
    "Oracle",
    "Severity",
    "Status",
    "Traffic",
    "Verdict",
    "compact",
    "comparable",
    "seconds_since",
    "status_of",
    "verify",
]

__getattr__ = lazy_door(
    __name__,
    {
        "compaction": "compact",
        "findings": "Severity",
        "home_status": "Status seconds_since status_of",
        "oracle": "Oracle comparable",
        "traffic": "Clients Traffic",
        "verification": "Verdict verify",
    },
)
