"""Views: tree patterns over documents that feed each other, planned under capacity limits.

The door holds what a subscription needs: documents, patterns and their evaluation. Planning and
execution are imported by module: they load numba, and some of them the libraries of the extra
`views`.
"""

from penstock.views.documents import Document, DocumentLimits, NodeId, parse_document
from penstock.views.evaluation import Cell, ResultRow, evaluate, visible_rows
from penstock.views.patterns import Axis, Operator, PatternNode, Predicate, TreePattern
from penstock.views.xmltable import ColumnPath, OutputColumn, TableView, table_view

__all__ = [
    "Axis",
    "Cell",
    "ColumnPath",
    "Document",
    "DocumentLimits",
    "NodeId",
    "Operator",
    "OutputColumn",
    "PatternNode",
    "Predicate",
    "ResultRow",
    "TableView",
    "TreePattern",
    "evaluate",
    "parse_document",
    "table_view",
    "visible_rows",
]
