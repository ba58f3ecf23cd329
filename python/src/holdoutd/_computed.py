"""Evaluates row expressions (docs/EXPRESSIONS.md) by NumPy: those of numbers and conditions, which models compute of columns.

Null is NaN. A result that is no finite number is null, and a comparison with null does not hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]


class Rows(Protocol):
    """Columns, as numbers and as texts."""

    rows: int

    def number(self, column: str) -> Numbers: ...

    def by_text(self, column: str, values: dict[str, float], other: float, null: float) -> Numbers: ...


class _Text:
    """A column of texts, which is only compared."""

    def __init__(self, column: str, rows: Rows):
        self.column, self.rows = column, rows

    def among(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        return self.rows.by_text(self.column, dict.fromkeys(texts, 1.0), 0.0, 0.0) == 1

    def null(self) -> NDArray[np.bool_]:
        return self.rows.by_text(self.column, {}, 0.0, 1.0) == 1


Value: TypeAlias = Any  # numbers, conditions, a column of texts, a text, or None for null

_TOKEN = re.compile(r"""\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*|&&|\|\||[<>=!]=|.)""")
_LEVELS = [["||"], ["&&"], ["==", "!=", "<", "<=", ">", ">=", "in"], ["+", "-"], ["*", "/"]]


def evaluate(text: str, rows: Rows) -> Numbers:
    """A number for each row; of a condition 1 and 0."""
    parser = _Parser([t for t in _TOKEN.findall(text) if t.strip()], rows)
    with np.errstate(all="ignore"):
        value = parser.ternary()
    if parser.tokens:
        raise ValueError(f"{text!r} goes on after its end, with {parser.tokens[0]!r}")
    return _number(value, rows)


def _number(value: Value, rows: Rows) -> Numbers:
    if value is None:
        return np.full(rows.rows, np.nan)
    if isinstance(value, _Text):
        raise ValueError(f"the column {value.column!r} is one of texts, where a number is wanted")
    return np.broadcast_to(np.asarray(value, dtype=float), (rows.rows,))


def _finite(x: Numbers) -> Numbers:
    return x + (x - x)  # what is infinite is NaN


class _Parser:
    def __init__(self, tokens: list[str], rows: Rows):
        self.tokens, self.rows = tokens, rows

    def take(self, *those: str) -> str | None:
        """The next token, if it is one of those."""
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in those else None

    def want(self, token: str) -> None:
        if not self.take(token):
            raise ValueError(f"{token!r} is missing before {(self.tokens or ['the end'])[0]!r}")

    def number(self, value: Value) -> Numbers:
        return _number(value, self.rows)

    def ternary(self) -> Value:
        condition = self.binary(0)
        if not self.take("?"):
            return condition
        yes = self.ternary()
        self.want(":")
        return np.where(condition, self.number(yes), self.number(self.ternary()))

    def binary(self, level: int) -> Value:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while op := self.take(*_LEVELS[level]):
            left = self.among(left) if op == "in" else self.operation(op, left, self.binary(level + 1))
        return left

    def operation(self, op: str, a: Value, b: Value) -> Value:
        if op in ("==", "!=") and (a is None or b is None):
            of = a if b is None else b
            null = of.null() if isinstance(of, _Text) else np.isnan(self.number(of))
            return null if op == "==" else ~null
        if op in ("==", "!=") and (isinstance(a, _Text) or isinstance(b, _Text)):
            column, text = (a, b) if isinstance(a, _Text) else (b, a)
            same = column.among([text])
            return same if op == "==" else ~same & ~column.null()
        if op in ("&&", "||"):
            return a & b if op == "&&" else a | b
        x, y = self.number(a), self.number(b)
        if op in _ARITHMETIC:
            return _finite(_ARITHMETIC[op](x, y))
        return _COMPARISONS[op](x, y) & ~np.isnan(x) & ~np.isnan(y)

    def among(self, of: Value) -> NDArray[np.bool_]:
        self.want("[")
        members = [self.ternary()]
        while self.take(","):
            members.append(self.ternary())
        self.want("]")
        if isinstance(of, _Text):
            return of.among(members)
        return np.isin(self.number(of), [float(m) for m in members])

    def unary(self) -> Value:
        if self.take("-"):
            return -self.number(self.unary())
        if self.take("!"):
            return ~self.unary()
        return self.atom()

    def atom(self) -> Value:
        if not self.tokens:
            raise ValueError("the expression ends too early")
        if self.take("("):
            value = self.ternary()
            self.want(")")
            return value
        token = self.tokens.pop(0)
        if token[0] == '"':
            return json.loads(token)
        if token[0].isdigit() or token[0] == ".":
            return float(token)
        if token in ("true", "false"):
            return np.full(self.rows.rows, token == "true")
        if token == "null":
            return None
        if not self.take("("):
            return self.column(token)
        arguments = [self.ternary()]
        while self.take(","):
            arguments.append(self.ternary())
        self.want(")")
        return self.column(arguments[0]) if token == "col" else self.call(token, [self.number(a) for a in arguments])

    def column(self, name: str) -> Value:
        try:
            return self.rows.number(name)
        except ValueError:  # its cells are no numbers
            return _Text(name, self.rows)

    def call(self, name: str, of: list[Numbers]) -> Numbers:
        if name in ("min", "max", "clamp"):
            if name == "clamp":
                return np.minimum(np.maximum(of[0], of[1]), of[2])
            result = of[0]
            for x in of[1:]:
                result = np.minimum(result, x) if name == "min" else np.maximum(result, x)
            return result
        if name not in _FUNCTIONS:
            raise ValueError(f"there is no function {name}")
        return _finite(_FUNCTIONS[name](of[0]))


_ARITHMETIC: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
_COMPARISONS: dict[str, Callable[[Numbers, Numbers], Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_FUNCTIONS: dict[str, Callable[[Numbers], Numbers]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "floor": np.floor,
    "ceil": np.ceil,
}
