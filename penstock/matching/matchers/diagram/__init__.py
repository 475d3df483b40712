"""Shared decision diagrams with many roots (Li, Hou and Jacobsen, 2005)."""

from penstock.matching.attribute_order import AttributeStatistics, attribute_order, random_order
from penstock.matching.matchers.diagram.expressions import And, Expression, Is, Not, Or
from penstock.matching.matchers.diagram.matcher import DiagramMatcher

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
