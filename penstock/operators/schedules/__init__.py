"""In which order to evaluate expensive predicates, so that few evaluations decide every branch.

Every schedule answers the same Protocol (`schedule.Schedule`) and is made by name. `benefit`
serves; `naive`, `sequential` and `sub-order` are those of Liu et al. (2007), `optimal` and
`lower_bound` what all of them are compared with.
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
