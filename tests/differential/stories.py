"""Random stories: tables, subscriptions over them, and changes, small enough to collide often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from penstock.flow.changes import Change, Op
from penstock.testing.scenario import Define, Publish, Replan, Step, Subscribe, Withdraw
from tests.differential import expressions

NAN, INF = float("nan"), float("inf")

# For each SQL type: values a row may hold (as JSON would write them), literals to compare with.
DOMAINS: dict[str, tuple[list[Any], list[str]]] = {
    "BIGINT": ([-(2**63), -1, 0, 1, 2, 3, 2**63 - 1], ["-1", "0", "1", "1.5", "2", "3"]),
    "DOUBLE": (
        [NAN, -INF, -0.0, 0.0, 0.5, 1.0, 2.5, INF],
        ["0", "0.5", "1", "2.5e0", "-0.0", "'NaN'::DOUBLE", "'Infinity'::DOUBLE"],
    ),
    "DECIMAL(6,2)": (["-1.50", "0.00", "0.01", "1.25", "9999.99"], ["0", "0.01", "1.255", "-1.5"]),
    "VARCHAR": (
        ["", "a", "ab", "abc", "b", "\ud7ff", "\ue000", "\U0001f600"],
        ["''", "'a'", "'ab'", "'b'", "'\ud7ff'", "'\ue000'"],
    ),
    # Words that spell numbers, and nothing else: nobody may take the column for one of numbers.
    "VARCHAR(9)": (
        ["10115", " 5 ", "-5", "1_000", "٣", "1e5", "nan", "0x10", "true"],
        ["'10115'", "' 5 '", "'-5'", "'1_000'", "'٣'", "'9'"],
    ),
    "BOOLEAN": ([True, False], ["TRUE", "FALSE"]),
    "DATE": (["1969-12-31", "2024-02-29", "2024-03-01"], ["DATE '2024-02-29'", "'2024-03-01'"]),
    "TIMESTAMP": (
        ["2024-02-29T00:00:00", "2024-02-29T12:30:00.000001"],
        ["TIMESTAMP '2024-02-29 12:30:00'", "DATE '2024-02-29'"],
    ),
    "TIMESTAMPTZ": (
        ["2024-02-29T00:00:00+00:00", "2024-02-29T01:00:00+02:00"],
        ["TIMESTAMPTZ '2024-02-29 00:00:00+00'", "TIMESTAMPTZ '2024-02-28 23:00:00+00'"],
    ),
}
PREFIXES = ["'a%'", "'ab%'", "'%'", "'\ud7ff%'", "'ab'"]


@dataclass(frozen=True)
class TableSpec:
    name: str
    types: dict[str, str]
    is_stream: bool = False
    has_key: bool = True

    @property
    def ddl(self) -> str:
        columns = ", ".join(
            f"{name} {kind}{' PRIMARY KEY' if self.has_key and name == 'id' else ''}"
            for name, kind in self.types.items()
        )
        return f"CREATE {'STREAM' if self.is_stream else 'TABLE'} {self.name} ({columns})"


@dataclass
class Story:
    """Steps in order. Every change in it is valid when its turn comes."""

    steps: list[Step] = field(default_factory=list)

    def __repr__(self) -> str:
        return "\n".join(["Story:", *(f"  {step}" for step in self.steps)])


@dataclass(frozen=True)
class Shape:
    """How large the queries of a story are."""

    tables: tuple[int, int]
    nodes: tuple[int, int]
    ranges: int = 0
    """So many more conditions, all of which must hold: boxes with several columns."""
    is_hot: bool = False
    """Most rows share one join value, come in bursts, and move from one join value to another."""
    expressions: bool = False
    """Whether queries compute with the columns of their tables."""
    predicates: Callable[[list[TableSpec]], st.SearchStrategy[str]] | None = None
    """What conditions are made of, if it is not comparisons; some stand in ON, too."""

    def draw_predicate(self, draw: st.DrawFn, nodes: list[TableSpec]) -> str:
        return draw((self.predicates or predicates)(nodes))


SELECTIONS = Shape(tables=(1, 2), nodes=(1, 1))
PAIRS = Shape(tables=(2, 2), nodes=(2, 2))
MULTI_WAY = Shape(tables=(3, 5), nodes=(3, 5))
SELF_JOINS = Shape(tables=(1, 1), nodes=(2, 3))
HOT_KEYS = Shape(tables=(1, 2), nodes=(2, 2), is_hot=True)
"""With one table, nearly every row joins itself."""
WIDE = Shape(tables=(2, 3), nodes=(2, 3), ranges=4)
JOINS = Shape(tables=(1, 4), nodes=(2, 4))
MIXED = Shape(tables=(1, 4), nodes=(1, 4))
COMPUTED = Shape(tables=(1, 1), nodes=(1, 1), expressions=True)
COMPUTED_JOINS = Shape(tables=(1, 3), nodes=(2, 3), expressions=True)


@st.composite
def tables(draw: st.DrawFn, shape: Shape) -> list[TableSpec]:
    kinds = st.sampled_from(sorted(DOMAINS))
    specs = []
    for i in range(draw(st.integers(*shape.tables))):
        types = {"id": "BIGINT", "k": "INTEGER", "j": "INTEGER", "a": draw(kinds), "b": draw(kinds)}
        is_stream = draw(st.integers(0, 7)) == 7
        specs.append(TableSpec(f"t{i}", types, is_stream, not is_stream or draw(st.booleans())))
    return specs


COLD = ([0, 1, 2, None], [0, 1])
HOT = ([0, 0, 0, 0, 0, 0, 1, None], [0, 0, 0, 1])
"""Values of the columns that tables are joined by."""


@st.composite
def rows(
    draw: st.DrawFn, table: TableSpec, number: int, joined_by: tuple[list[Any], list[Any]] = COLD
) -> dict[str, Any]:
    return {
        "id": number,
        "k": draw(st.sampled_from(joined_by[0])),
        "j": draw(st.sampled_from(joined_by[1])),
        "a": draw(values(table.types["a"])),
        "b": draw(values(table.types["b"])),
    }


def values(kind: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([*DOMAINS[kind][0], None])


@st.composite
def queries(draw: st.DrawFn, specs: list[TableSpec], shape: Shape) -> str:
    fewest, most = shape.nodes
    nodes = draw(st.lists(st.sampled_from(specs), min_size=fewest, max_size=most))
    text = f"{nodes[0].name} x0"
    extra: list[str] = []
    for i in range(1, len(nodes)):
        other = draw(st.integers(0, i - 1))
        text += f" JOIN {nodes[i].name} x{i} ON {draw(join_conditions(other, i))}"
        if shape.predicates is not None and draw(st.booleans()):
            text += f" AND {shape.draw_predicate(draw, nodes[: i + 1])}"
    if len(nodes) > 2 and draw(st.booleans()):
        extra.append(draw(join_conditions(0, len(nodes) - 1)))
    kind = draw(st.sampled_from(["any", "any", "any", "any", "wide", "none"]))
    if kind == "any":
        extra.append(draw(conditions(nodes, shape)))
    elif kind == "wide":
        extra.append(draw(wide_conditions(nodes)))
    extra += [draw(ranges(nodes)) for _ in range(shape.ranges)]
    outputs = draw(st.sampled_from(["*", "x0.id, x0.a AS first", "x0.*"]))
    if shape.expressions:
        named = [(f"x{i}", node.types) for i, node in enumerate(nodes)]
        extra += [
            draw(expressions.predicates(*draw(st.sampled_from(named))))
            for _ in range(draw(st.integers(0, 2)))
        ]
        if draw(st.booleans()):
            outputs = f"x0.id, {draw(expressions.outputs(named))}"
    where = f" WHERE {' AND '.join(f'({one})' for one in extra)}" if extra else ""
    return f"SELECT {outputs} FROM {text}{where}"


@st.composite
def join_conditions(draw: st.DrawFn, left: int, right: int) -> str:
    pairs = draw(
        st.sampled_from(
            [("k", "k"), ("k", "k"), ("j", "j"), ("k", "j"), ("kj", "kj"), ("kj", "jk")]
        )
    )
    return " AND ".join(f"x{left}.{a} = x{right}.{b}" for a, b in zip(*pairs, strict=True))


@st.composite
def conditions(draw: st.DrawFn, nodes: list[TableSpec], shape: Shape, depth: int = 0) -> str:
    form = draw(st.integers(0, 5 if depth < 2 else 2))
    if form <= 2:
        return shape.draw_predicate(draw, nodes)
    if form == 3:
        return f"NOT ({draw(conditions(nodes, shape, depth + 1))})"
    word = "AND" if form == 4 else "OR"
    parts = [draw(conditions(nodes, shape, depth + 1)) for _ in range(2)]
    return f"({parts[0]}) {word} ({parts[1]})"


@st.composite
def predicates(draw: st.DrawFn, nodes: list[TableSpec]) -> str:
    node = draw(st.integers(0, len(nodes) - 1))
    column = draw(st.sampled_from(["a", "a", "b", "k"]))
    kind = nodes[node].types[column] if column != "k" else "BIGINT"
    name, literal = f"x{node}.{column}", st.sampled_from(DOMAINS[kind][1])
    form = draw(st.sampled_from(["compare", "compare", "between", "in", "null", "like"]))
    maybe_not = draw(st.sampled_from(["", "NOT "]))
    if form == "between":
        return f"{name} {maybe_not}BETWEEN {draw(literal)} AND {draw(literal)}"
    if form == "in":
        members = draw(st.lists(literal, min_size=1, max_size=3))
        return f"{name} {maybe_not}IN ({', '.join(members)})"
    if form == "null":
        return f"{name} IS {maybe_not}NULL"
    if form == "like" and kind == "VARCHAR":
        return f"{name} {maybe_not}LIKE {draw(st.sampled_from(PREFIXES))}"
    return f"{name} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {draw(literal)}"


@st.composite
def wide_conditions(draw: st.DrawFn, nodes: list[TableSpec]) -> str:
    """A condition of very many branches, which many rows satisfy."""
    node = draw(st.integers(0, len(nodes) - 1))
    column = draw(st.sampled_from(["a", "k"]))
    kind = nodes[node].types[column] if column != "k" else "BIGINT"
    members = draw(st.lists(st.sampled_from(DOMAINS[kind][1]), min_size=1, max_size=3))
    if kind in ("BIGINT", "DOUBLE", "DECIMAL(6,2)"):
        members += [str(3 * number) for number in range(2, draw(st.sampled_from([10, 300])))]
    elif kind.startswith("VARCHAR"):
        members += [f"'{number}'" for number in range(10110, 10110 + draw(st.integers(3, 300)))]
    return f"x{node}.{column} NOT IN ({', '.join(members)})"


@st.composite
def ranges(draw: st.DrawFn, nodes: list[TableSpec]) -> str:
    """A condition that is one interval, and often holds."""
    node = draw(st.integers(0, len(nodes) - 1))
    column = draw(st.sampled_from(["a", "b", "k"]))
    kind = nodes[node].types[column] if column != "k" else "BIGINT"
    literal = draw(st.sampled_from(DOMAINS[kind][1]))
    return f"x{node}.{column} {draw(st.sampled_from(['<=', '>=']))} {literal}"


@st.composite
def stories(
    draw: st.DrawFn, shape: Shape = MIXED, max_steps: int = 12, *, any_plan: bool = False
) -> Story:
    """`any_plan`: subscriptions have any decomposition, and get others on the way."""
    moves = ["subscribe", "change", "change", "change", "batch", "withdraw"]
    if shape.is_hot:
        moves += ["burst", "burst", "move"]
    specs = draw(tables(shape))
    story = Story([Define(spec.ddl) for spec in specs])
    teller = _Teller(specs, shape.is_hot)
    for _ in range(draw(st.integers(1, max_steps))):
        move = draw(st.sampled_from([*moves, "replan", "replan"] if any_plan else moves))
        story.steps.append(draw(_steps(move, teller, shape, any_plan)))
    return story


@st.composite
def rounds(draw: st.DrawFn, shape: Shape, count: int, records: int) -> list[Story]:
    """A story in parts of so many records each, in each of which subscriptions come and go."""
    specs = draw(tables(shape))
    teller = _Teller(specs, shape.is_hot)
    told: list[Story] = []
    while len(told) < count:
        story = Story([] if told else [Define(spec.ddl) for spec in specs])
        comings = draw(st.lists(st.sampled_from(COMINGS), min_size=1, max_size=3))
        changes = ["change"] * (records - len(story.steps) - len(comings))
        for move in draw(st.permutations([*comings, *changes])):
            possible = move == "change" or len(teller.names) > 1
            step = _steps(move if possible else "subscribe", teller, shape, any_plan=True)
            story.steps.append(draw(step))
        told.append(story)
    return told


COMINGS = ("subscribe", "withdraw", "subscribe", "replan")


@st.composite
def _steps(draw: st.DrawFn, move: str, teller: _Teller, shape: Shape, any_plan: bool) -> Step:
    if move == "subscribe" or not teller.names:
        plan = draw(st.none() | st.integers(0, 50)) if any_plan else None
        return Subscribe(teller.new_name(), draw(queries(teller.specs, shape)), plan)
    if move == "replan":
        return Replan(draw(st.sampled_from(teller.names)), draw(st.integers(0, 50)))
    if move == "withdraw" and len(teller.names) > 1:
        return Withdraw(teller.names.pop(0))
    if move == "burst":
        return Publish(tuple(draw(teller.burst())))
    if move == "move":
        return Publish((draw(teller.move()),))
    size = draw(st.integers(2, 5)) if move == "batch" else 1
    return Publish(tuple(draw(teller.change()) for _ in range(size)))


class _Teller:
    """Knows which rows exist, so that every change it tells is valid."""

    def __init__(self, specs: list[TableSpec], is_hot: bool = False) -> None:
        self.specs = specs
        self._joined_by = HOT if is_hot else COLD
        self.names: list[str] = []
        self._told = 0
        self._next_id = 0
        self._alive: dict[str, list[int]] = {spec.name: [] for spec in specs}

    def new_name(self) -> str:
        self._told += 1
        self.names.append(f"s{self._told}")
        return self.names[-1]

    def change(self) -> st.SearchStrategy[Change]:
        return _changes(self)

    def burst(self) -> st.SearchStrategy[list[Change]]:
        """Many rows for one table at once."""
        return _bursts(self)

    def move(self) -> st.SearchStrategy[Change]:
        """A row that is joined by another value from now on, if there is one that can be."""
        return _moves(self)

    def draw_burst(self, draw: st.DrawFn) -> list[Change]:
        spec = draw(st.sampled_from(self.specs))
        return [self._insert(draw, spec) for _ in range(draw(st.integers(5, 14)))]

    def draw_move(self, draw: st.DrawFn) -> Change:
        movable = [
            (spec, number)
            for spec in self.specs
            if not spec.is_stream
            for number in self._alive[spec.name]
        ]
        if not movable:
            return self.draw_change(draw)
        spec, number = draw(st.sampled_from(movable))
        moves: list[tuple[str, list[Any]]] = [("k", COLD[0]), ("j", COLD[1])]
        column, values = draw(st.sampled_from(moves))
        return Change(spec.name, Op.UPDATE, {"id": number, column: draw(st.sampled_from(values))})

    def _insert(self, draw: st.DrawFn, spec: TableSpec) -> Change:
        self._next_id += 1
        self._alive[spec.name].append(self._next_id)
        row = draw(rows(spec, self._next_id, self._joined_by))
        return Change(spec.name, Op.INSERT, row)

    def draw_change(self, draw: st.DrawFn) -> Change:
        spec = draw(st.sampled_from(self.specs))
        alive = self._alive[spec.name]
        ops = (
            [Op.INSERT]
            if spec.is_stream or not alive
            else [Op.INSERT, Op.UPDATE, Op.DELETE, Op.UPSERT, Op.REMOVE]
        )
        op = draw(st.sampled_from(ops))
        if op is Op.INSERT:
            return self._insert(draw, spec)
        if op is Op.REMOVE:  # of rows that are there, were there, or are another table's
            gone = draw(st.integers(1, self._next_id))
            self._alive[spec.name] = [number for number in alive if number != gone]
            return Change(spec.name, op, {"id": gone})
        number = draw(st.sampled_from(alive))
        if op is Op.DELETE:
            alive.remove(number)
            return Change(spec.name, op, {"id": number})
        row = draw(rows(spec, number, self._joined_by))
        if op is Op.UPDATE:
            kept = draw(st.sets(st.sampled_from(["k", "j", "a", "b"])))
            row = {name: value for name, value in row.items() if name == "id" or name in kept}
        return Change(spec.name, op, row)


@st.composite
def _changes(draw: st.DrawFn, teller: _Teller) -> Change:
    return teller.draw_change(draw)


@st.composite
def _bursts(draw: st.DrawFn, teller: _Teller) -> list[Change]:
    return teller.draw_burst(draw)


@st.composite
def _moves(draw: st.DrawFn, teller: _Teller) -> Change:
    return teller.draw_move(draw)
