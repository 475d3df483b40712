"""Experiments of `penstock lab run` as items of papers: their results are the rows."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module

from penstock.lab.evidence.model import Item, Report, Row, Size

Options = Mapping[str, int | bool | list[int]]


@dataclass
class ExistingExperiment:
    """One experiment, run once per size, however many items its rows belong to."""

    name: str
    options: Mapping[Size, Options]
    seconds: Mapping[Size, float]
    _rows: dict[Size, list[Row]] = field(default_factory=dict)
    _items: int = 0

    def item(self, name: str, title: str, part: str = "") -> Item:
        """An item with all rows, or with those whose column `item` is `part`."""

        def experiment(size: Size, report: Report) -> list[Row]:
            rows = self._run(size, report)
            return [row for row in rows if not part or row.get("item") == part]

        self._items += 1
        return Item(
            name,
            title,
            experiment,
            seconds=self.seconds if self._items == 1 else {},  # the others reuse the rows
            commands={size: self.command(size) for size in Size},
            sizes={size: _shown(self.options[size]) for size in Size},
        )

    def command(self, size: Size) -> str:
        words = [f"penstock lab run {self.name}"]
        for option, value in self.options[size].items():
            flag = f"--{option.replace('_', '-')}"
            values = value if isinstance(value, list) else [value]
            words += [flag if one is True else f"{flag} {one}" for one in values]
        return " ".join(words)

    def _run(self, size: Size, report: Report) -> list[Row]:
        if size not in self._rows:
            report(self.command(size))
            module = self.name.replace("-", "_")
            function = getattr(import_module(f"penstock.lab.experiments.{module}"), module)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                function(**self.options[size], json=True)
            self._rows[size] = json.loads(printed.getvalue())["results"]
        return self._rows[size]


def not_built(name: str, title: str) -> Item:
    return Item(name, title)


def _shown(options: Options) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in options.items())
