"""Shared decision diagrams with many roots (Li, Hou and Jacobsen, 2005)."""

from penstock.matching.diagram.expressions import And, Expression, Is, Not, Or
from penstock.matching.diagram.matcher import DiagramMatcher
from penstock.matching.diagram.order import AttributeStatistics, attribute_order, random_order

__all__ = [
    "And",
    "AttributeStatistics",
    "DiagramMatcher",
    "Expression",
    "Is",
    "Not",
    "Or",
    "attribute_order",
    "random_order",
]
