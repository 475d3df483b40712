"""The order in which to evaluate expensive predicates, so that few evaluations decide every branch.

Every schedule implements the same Protocol (`schedule.Schedule`) and is made by name. `benefit` is
the default; `naive`, `sequential` and `sub-order` are those of Liu et al. (2007), `optimal` and
`lower_bound` are the yardsticks for all of them.
"""

from penstock.operators.schedules.registry import DEFAULT_SCHEDULE, make_schedule, schedule_names
from penstock.operators.schedules.schedule import Estimates, FixedEstimates, Run, Schedule

__all__ = [
    "DEFAULT_SCHEDULE",
    "Estimates",
    "FixedEstimates",
    "Run",
    "Schedule",
    "make_schedule",
    "schedule_names",
]
