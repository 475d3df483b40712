"""CREATE OPERATOR: from text to a signature, and back.

    CREATE OPERATOR mobPattern (image VARCHAR) RETURNS (people BIGINT) AS 'recognisers:mob_pattern'
    CREATE OPERATOR locIn (place VARCHAR, region VARCHAR) CONSTANT (region)

RETURNS lists the variables that the operator binds; CONSTANT the arguments that cannot be columns;
AS names the implementation, unless it is found by the operator's name. Without a list of arguments
the signature is that of the implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import Token, TokenType
from sqlglot.dialects import DuckDB

from penstock.catalog import Column
from penstock.catalog.signatures import Parameter, Signature
from penstock.sql.source import Source

MAX_PARAMETERS = 32
BUILT_IN = frozenset(DuckDB.Parser.FUNCTIONS) | frozenset(DuckDB.Parser.FUNCTION_PARSERS)
"""The functions that the parser knows: a call of them would not be parsed as an operator's."""

ColumnsOf = Callable[[Source, Sequence[Token]], tuple[Column, ...]]
"""Parses columns between parentheses, as in a table."""


def parse_operator(source: Source, columns_of: ColumnsOf) -> Signature:
    """The operator that a CREATE OPERATOR statement declares."""
    reader = _Reader(source)
    name = reader.take_name()
    arguments = columns_of(source, reader.take_parentheses()) if reader.is_at("(") else ()
    outputs: tuple[Column, ...] = ()
    constants: set[str] = set()
    place = ""
    while not reader.is_at_end():
        if reader.skip("RETURNS"):
            outputs = columns_of(source, reader.take_parentheses())
        elif reader.skip("CONSTANT"):
            constants = {one.text.lower() for one in reader.take_parentheses()[1:-1]} - {","}
        elif reader.skip("AS"):
            place = reader.take_string()
        else:
            raise source.refuse(f"{reader.here.text} is not expected here", reader.here)
    if len(arguments) + len(outputs) > MAX_PARAMETERS:
        raise source.refuse(f"an operator has at most {MAX_PARAMETERS} parameters")
    unknown = constants - {one.name.lower() for one in arguments}
    if unknown:
        raise source.refuse(f"{name} has no argument {min(unknown)}", source.token_of("CONSTANT"))
    return Signature(
        name,
        tuple(Parameter(one.name, one.type, one.name.lower() in constants) for one in arguments),
        tuple(Parameter(one.name, one.type) for one in outputs),
        place,
    )


def operator_statement(one: Signature) -> str:
    """The statement that declares an operator."""
    parts = [f"CREATE OPERATOR {_quoted(one.name)} ({_listed(one.arguments)})"]
    constants = [_quoted(argument.name) for argument in one.arguments if argument.constant]
    if constants:
        parts.append(f"CONSTANT ({', '.join(constants)})")
    if one.outputs:
        parts.append(f"RETURNS ({_listed(one.outputs)})")
    if one.place:
        parts.append("AS '" + one.place.replace("'", "''") + "'")
    return " ".join(parts)


def _listed(parameters: Sequence[Parameter]) -> str:
    return ", ".join(f"{_quoted(one.name)} {one.type}" for one in parameters)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Reader:
    """Walks the tokens after CREATE OPERATOR."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 2

    def is_at_end(self) -> bool:
        return self._at >= len(self._source.tokens)

    @property
    def here(self) -> Token:
        if self.is_at_end():
            last = self._source.tokens[-1]
            raise self._source.refuse("the statement ends too early", last)
        return self._source.tokens[self._at]

    def is_at(self, word: str) -> bool:
        return not self.is_at_end() and self.here.text.upper() == word

    def skip(self, word: str) -> bool:
        found = self.is_at(word)
        self._at += found
        return found

    def take_name(self) -> str:
        token = self.here
        if token.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
            raise self._source.refuse("the name of an operator is expected here", token)
        if token.text.upper() in BUILT_IN:
            raise self._source.refuse(
                f"no operator can be named {token.text}: it is a built-in function",
                token,
                hint="give the operator another name",
            )
        self._at += 1
        return token.text

    def take_string(self) -> str:
        token = self.here
        if token.token_type != TokenType.STRING:
            raise self._source.refuse(
                "a place is expected here", token, hint="write AS 'module:attribute'"
            )
        self._at += 1
        return token.text

    def take_parentheses(self) -> list[Token]:
        """All tokens up to the matching closing parenthesis."""
        if not self.is_at("("):
            raise self._source.refuse("( is expected here", self.here)
        first, depth = self._at, 0
        while True:
            depth += {"(": 1, ")": -1}.get(self.here.text, 0)
            self._at += 1
            if depth == 0:
                return self._source.tokens[first : self._at]
