"""The flow: the stages from records to messages. A new stage is one file and one entry here."""

from penstock.flow.stage import Stage
from penstock.flow.stages.decode import Decode
from penstock.flow.stages.groups import Groups
from penstock.flow.stages.rows import Rows

STAGES: tuple[Stage, ...] = (Decode(), Rows(), Groups())

__all__ = ["STAGES", "Decode", "Groups", "Rows"]
