"""The column type of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.catalog.types import Key, Outside, Stored, ValueType
from penstock.xml_text import canonical_text


@dataclass(frozen=True, slots=True)
class XmlType(ValueType):
    """XML documents, stored in canonical form. Conditions can only test them for NULL."""

    kind: ClassVar[str] = "xml"
    discrete: ClassVar[bool] = False
    stored_as: ClassVar[type] = str
    is_opaque: ClassVar[bool] = True

    def __str__(self) -> str:
        return "XML"

    def store(self, value: Outside) -> Stored:
        """DocumentError, a ChangeError, if the document is unsafe, too large or not well-formed."""
        if not isinstance(value, str):
            raise self.misfit(value)
        return canonical_text(value)

    def joins_with(self, other: ValueType) -> bool:
        return False

    def key(self, stored: Stored) -> Key:
        assert isinstance(stored, str)
        return stored

    def near_keys(self, key: Key) -> list[Key]:
        return [key]

    def literal(self, stored: Stored) -> str:
        return self.quoted(stored)

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        return "", None
