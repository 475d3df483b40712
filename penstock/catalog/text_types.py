"""Column types of text: strings, and booleans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.catalog.numerals import read_any_number
from penstock.catalog.types import Key, Outside, Stored, ValueType

BOOLEAN_WORDS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


@dataclass(frozen=True, slots=True)
class StringType(ValueType):
    max_length: int | None = None
    kind: ClassVar[str] = "string"
    discrete: ClassVar[bool] = False
    stored_as: ClassVar[type] = str

    def __str__(self) -> str:
        return "VARCHAR" if self.max_length is None else f"VARCHAR({self.max_length})"

    def store(self, value: Outside) -> Stored:
        if not isinstance(value, str):
            raise self.misfit(value)
        if self.max_length is not None and len(value) > self.max_length:
            raise self.misfit(value, f"it has {len(value)} characters")
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self.misfit(value, "a lone surrogate is not a character") from None
        return value

    def key(self, stored: Stored) -> Key:
        assert isinstance(stored, str)
        return stored  # Python compares strings by code point, as SQL's binary collation does

    def near_keys(self, key: Key) -> list[Key]:
        assert isinstance(key, str)
        return [key, key + "a", key + "\0"]

    def literal(self, stored: Stored) -> str:
        return self.quoted(stored)

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        return "", None


@dataclass(frozen=True, slots=True)
class BooleanType(ValueType):
    kind: ClassVar[str] = "boolean"
    stored_as: ClassVar[type] = bool
    json_as: ClassVar[type] = bool

    def __str__(self) -> str:
        return "BOOLEAN"

    def store(self, value: Outside) -> Stored:
        if not isinstance(value, bool):
            raise self.misfit(value)
        return value

    def rewrite(self, value: Outside) -> Outside | None:
        if isinstance(value, str):
            return BOOLEAN_WORDS.get(value.strip().lower())
        number = read_any_number(value)
        return None if number is None or number not in (0, 1) else bool(number)

    def literal(self, stored: Stored) -> str:
        return "TRUE" if stored else "FALSE"

    def key(self, stored: Stored) -> Key:
        return int(bool(stored))

    def unkey(self, key: Key) -> Stored:
        return bool(key)

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        return 0, 1
