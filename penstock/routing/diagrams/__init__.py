"""Covering and merging on decision diagrams, as published (Li, Hou and Jacobsen, 2005)."""

from penstock.routing.diagrams.dependencies import DependencyTable
from penstock.routing.diagrams.merging import merge_diagrams
from penstock.routing.diagrams.table import DiagramTable, Relations

__all__ = ["DependencyTable", "DiagramTable", "Relations", "merge_diagrams"]
