"""The XPath forms that tree patterns can express, parsed into steps.

    path       = ("/" | "//" | "./" | ".//")? step (("/" | "//") step)*   |   "."
    step       = ("child::" | "descendant::" | "attribute::" | "@")? name condition*
    condition  = "[" test ("and" test)* "]"
    test       = path (operator literal)?
    name       = NCName | "Q{" uri "}" NCName

Everything else is refused by name, with its position underlined.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from penstock.documents.patterns import MAX_PATTERN_NODES, Axis, Operator, Predicate
from penstock.errors import SqlError
from penstock.xml_text import ATTRIBUTE

MAX_PATH_CHARACTERS = 10_000
MAX_CONDITION_DEPTH = 16
"""Deeper conditions would have more nodes than a pattern may have."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<axis>[A-Za-z-]+)\s*::
    | (?P<function>(?!and\b|or\b)[A-Za-z_][\w.:-]*)\s*\(
    | (?P<name>@?\s*(?:Q\{[^{}]*\})?[^\W\d][\w.-]*(?::[^\W\d][\w.-]*)?)
    | (?P<text>'[^']*'|"[^"]*")
    | (?P<number>-?(?:\d+(?:\.\d*)?|\.\d+))
    | (?P<symbol>//|\.\.|!=|<=|>=|[/.\[\]=<>|*,+()@$])
    )""",
    re.VERBOSE,
)
_AXES = {"child": Axis.CHILD, "descendant": Axis.DESCENDANT, "attribute": Axis.CHILD}
_OPERATORS = {operator.value: operator for operator in Operator}


@dataclass(frozen=True, slots=True)
class Step:
    """A node of a path: its label, its axis, and its conditions."""

    axis: Axis
    label: str
    predicate: Predicate | None = None
    branches: tuple[tuple[Step, ...], ...] = ()
    """Paths below it that must exist."""


@dataclass(frozen=True, slots=True)
class Path:
    """Steps, and whether they begin at the document or at the current node."""

    is_absolute: bool
    steps: tuple[Step, ...]


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    position: int


@dataclass
class _Draft:
    """A step whose conditions are being parsed."""

    axis: Axis
    label: str
    predicate: Predicate | None = None
    branches: list[tuple[Step, ...]] = field(default_factory=list)

    def step(self) -> Step:
        return Step(self.axis, self.label, self.predicate, tuple(self.branches))


def parse_path(text: str) -> Path:
    """Parse a path, or raise a SqlError that names what it cannot express."""
    if len(text) > MAX_PATH_CHARACTERS:
        raise SqlError(
            "The path is too long",
            detail=f"it has {len(text):,} characters; at most {MAX_PATH_CHARACTERS:,} are read",
        )
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._tokenise())
        self.at = 0
        self.steps = 0

    def parse(self) -> Path:
        if self._peek().kind == "end":
            raise self._refuse("The path is empty", hint="write a path such as '//item'")
        is_absolute = self._peek().text in ("/", "//")
        steps, predicate = self._path(0)
        if predicate is not None:
            raise self._refuse("A comparison stands outside of brackets", hint="write [... = ...]")
        if self._peek().kind != "end":
            raise self._unexpected()
        if is_absolute and not steps:
            raise self._refuse("The path names no element", hint="write a path such as '//item'")
        return Path(is_absolute, steps)

    def _path(self, depth: int) -> tuple[tuple[Step, ...], Predicate | None]:
        """Steps and, inside conditions, the comparison that follows them."""
        drafts: list[_Draft] = []
        axis: Axis | None = Axis.CHILD
        if self._take("."):
            axis = self._separator()
        elif (leading := self._separator()) is not None:
            if depth:
                raise self._refuse(
                    "A path in a condition begins at the document",
                    hint="begin it with './/' to search below the node",
                )
            axis = leading
        while axis is not None:
            drafts.append(self._step(axis, depth))
            axis = self._separator()
            self.steps += 1
            if self.steps > MAX_PATTERN_NODES:
                raise self._refuse(
                    "The pattern has too many nodes",
                    hint=f"at most {MAX_PATTERN_NODES} are accepted: split the view into several",
                )
        comparison = self._comparison() if depth else None
        if comparison is not None and drafts:
            last = drafts[-1]
            if last.predicate is not None:
                raise self._two_predicates()
            last.predicate, comparison = comparison, None
        return tuple(draft.step() for draft in drafts), comparison

    def _separator(self) -> Axis | None:
        if self._take("//"):
            return Axis.DESCENDANT
        return Axis.CHILD if self._take("/") else None

    def _step(self, axis: Axis, depth: int) -> _Draft:
        is_attribute = False
        token = self._peek()
        if token.kind == "axis":
            if token.text not in _AXES:
                raise self._refuse(
                    f"The axis {token.text!r} is not supported",
                    hint="tree patterns have child, descendant and attribute",
                )
            self.at += 1
            is_attribute = token.text == "attribute"
            axis = Axis.DESCENDANT if token.text == "descendant" else axis
        token = self._peek()
        if token.kind != "name":
            raise self._unexpected()
        self.at += 1
        draft = _Draft(axis, self._label(token, is_attribute))
        while self._take("["):
            self._condition(draft, depth + 1)
        return draft

    def _label(self, token: _Token, is_attribute: bool) -> str:
        name = re.sub(r"\s", "", token.text) if "{" not in token.text else token.text
        if name.startswith(ATTRIBUTE):
            name, is_attribute = name[1:].lstrip(), True
        if ":" in name.rpartition("}")[2]:
            raise self._refuse(
                f"The name {name!r} has a prefix, and prefixes are not declared here",
                hint="write Q{namespace-uri}name",
                token=token,
            )
        label = name.removeprefix("Q") if name.startswith("Q{") else name
        label = label.removeprefix("{}")
        return ATTRIBUTE + label if is_attribute else label

    def _condition(self, draft: _Draft, depth: int) -> None:
        if depth > MAX_CONDITION_DEPTH:
            raise self._refuse("Conditions are nested too deeply")
        while True:
            if self._peek().kind == "number":
                raise self._refuse(
                    "Positions are not supported", hint="tree patterns do not count siblings"
                )
            before = self.at
            steps, predicate = self._path(depth)
            if self.at == before:
                raise self._unexpected()
            if steps:
                draft.branches.append(steps)
            elif predicate is None:
                raise self._refuse("The condition '.' asks for nothing")
            elif draft.predicate is not None:
                raise self._two_predicates()
            else:
                draft.predicate = predicate
            if self._take("]"):
                return
            if self._peek().text != "and":
                raise self._unexpected()
            self.at += 1

    def _comparison(self) -> Predicate | None:
        operator = _OPERATORS.get(self._peek().text)
        if operator is None or self._peek().kind != "symbol":
            return None
        self.at += 1
        token = self._peek()
        if token.kind == "number":
            self.at += 1
            return Predicate(operator, float(token.text))
        if token.kind != "text":
            raise self._refuse("A path is compared with something that is no constant")
        if operator not in (Operator.EQ, Operator.NE):
            raise self._refuse(
                f"Texts cannot be compared with {operator.value!r}",
                hint="XPath compares numbers only: leave out the quotes",
            )
        self.at += 1
        return Predicate(operator, token.text[1:-1])

    def _peek(self) -> _Token:
        return self.tokens[self.at]

    def _take(self, symbol: str) -> bool:
        if self._peek().kind == "symbol" and self._peek().text == symbol:
            self.at += 1
            return True
        return False

    def _tokenise(self) -> list[_Token]:
        tokens = []
        at, end = 0, len(self.text.rstrip())
        while at < end:
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self._refuse(
                    f"The character {self.text[at]!r} has no meaning in a path",
                    token=_Token("", self.text[at], at),
                )
            kind = str(found.lastgroup)
            tokens.append(_Token(kind, found[kind], found.start(kind)))
            at = found.end()
        return [*tokens, _Token("end", "", len(self.text))]

    def _refuse(self, primary: str, *, hint: str = "", token: _Token | None = None) -> SqlError:
        token = token or self._peek()
        length = max(1, len(token.text))
        return SqlError(primary, hint=hint, sql=self.text, position=token.position, length=length)

    def _two_predicates(self) -> SqlError:
        return self._refuse(
            "A node has two conditions on its value",
            hint="one comparison per node can be expressed",
        )

    def _unexpected(self) -> SqlError:
        token = self._peek()
        if token.kind == "end":
            return self._refuse("The path ends too early")
        if token.kind == "function":
            return self._refuse(
                f"The function {token.text}() is not supported",
                hint="a column of type VARCHAR gives a node's text",
            )
        known = {"*": "Wildcards", "..": "The parent axis", "|": "Unions", "or": "'or'"}
        if token.text in known:
            return self._refuse(f"{known[token.text]} cannot be expressed by a tree pattern")
        return self._refuse(f"{token.text!r} is not expected here")
