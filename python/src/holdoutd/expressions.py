"""Row expressions with Python's operators, instead of text.

    (ds.c.delay > 15) & ~ds.c.origin.is_in(["SFO", "OAK"])

writes the CEL text of docs/EXPRESSIONS.md, so that the server sees the same query as if it had been typed. As in pandas and
polars, conditions are combined with &, | and ~, in parentheses. Nothing is computed here.
"""

from __future__ import annotations

import datetime as _dt
import json
import math
import re
from collections.abc import Iterable
from typing import Any, Union

Literal = Union[bool, int, float, str, _dt.date, _dt.datetime, None]
Operand = Union["Expression", Literal]

# How strongly an operation binds, as in CEL. An operand that binds less stands in parentheses.
_TERNARY, _OR, _AND, _COMPARISON, _SUM, _PRODUCT, _UNARY, _ATOM = range(8)

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
# Words that CEL keeps for itself, and the name that stands for columns whose name is no identifier.
_RESERVED = frozenset(
    """true false null in as break const continue else for function if import let loop package namespace return var void while
    col""".split()
)


class Expression:
    """A number, condition, text or time of a row. Its text is str(expression)."""

    __slots__ = ("_level", "_text")
    __hash__ = None  # type: ignore[assignment]  # == makes an expression

    def __init__(self, text: str, level: int = _TERNARY):
        self._text = text
        self._level = level

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{self._text}>"

    def __bool__(self) -> bool:
        raise TypeError(
            "an expression is neither true nor false: it is about every row. Combine conditions with &, | and ~, each in "
            "parentheses: (ds.c.delay > 15) & (ds.c.distance < 500)"
        )

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(self._text)}</code>"

    def _at(self, level: int) -> str:
        return self._text if self._level >= level else f"({self._text})"

    # Arithmetic.

    def __add__(self, other: Operand) -> Expression:
        return _binary(self, "+", other, _SUM)

    def __radd__(self, other: Operand) -> Expression:
        return _binary(other, "+", self, _SUM)

    def __sub__(self, other: Operand) -> Expression:
        return _binary(self, "-", other, _SUM)

    def __rsub__(self, other: Operand) -> Expression:
        return _binary(other, "-", self, _SUM)

    def __mul__(self, other: Operand) -> Expression:
        return _binary(self, "*", other, _PRODUCT)

    def __rmul__(self, other: Operand) -> Expression:
        return _binary(other, "*", self, _PRODUCT)

    def __truediv__(self, other: Operand) -> Expression:
        return _binary(self, "/", other, _PRODUCT)

    def __rtruediv__(self, other: Operand) -> Expression:
        return _binary(other, "/", self, _PRODUCT)

    def __neg__(self) -> Expression:
        return Expression("-" + self._at(_ATOM), _UNARY)

    def __abs__(self) -> Expression:
        return _call("abs", self)

    # Comparisons. None is null.

    def __lt__(self, other: Operand) -> Expression:
        return _binary(self, "<", other, _COMPARISON)

    def __le__(self, other: Operand) -> Expression:
        return _binary(self, "<=", other, _COMPARISON)

    def __gt__(self, other: Operand) -> Expression:
        return _binary(self, ">", other, _COMPARISON)

    def __ge__(self, other: Operand) -> Expression:
        return _binary(self, ">=", other, _COMPARISON)

    def __eq__(self, other: Operand) -> Expression:  # type: ignore[override]
        return _binary(self, "==", other, _COMPARISON)

    def __ne__(self, other: Operand) -> Expression:  # type: ignore[override]
        return _binary(self, "!=", other, _COMPARISON)

    def is_null(self) -> Expression:
        """Whether the value is null."""
        return self == None  # noqa: E711

    def is_not_null(self) -> Expression:
        """Whether there is a value."""
        return self != None  # noqa: E711

    def is_in(self, values: Iterable[Operand]) -> Expression:
        """Whether the value is one of the list. A null is in no list."""
        inside = ", ".join(_text(v, _TERNARY) for v in values)
        return Expression(f"{self._at(_SUM)} in [{inside}]", _COMPARISON)

    def between(self, low: Operand, high: Operand) -> Expression:
        """Whether low <= the value <= high."""
        return (self >= low) & (self <= high)

    # Logic.

    def __and__(self, other: Operand) -> Expression:
        return _binary(self, "&&", other, _AND)

    def __rand__(self, other: Operand) -> Expression:
        return _binary(other, "&&", self, _AND)

    def __or__(self, other: Operand) -> Expression:
        return _binary(self, "||", other, _OR)

    def __ror__(self, other: Operand) -> Expression:
        return _binary(other, "||", self, _OR)

    def __invert__(self) -> Expression:
        return Expression("!" + self._at(_ATOM), _UNARY)

    # Numbers.

    def sqrt(self) -> Expression:
        return _call("sqrt", self)

    def exp(self) -> Expression:
        return _call("exp", self)

    def log(self) -> Expression:
        """The natural logarithm; null where the value is not positive."""
        return _call("log", self)

    def floor(self) -> Expression:
        return _call("floor", self)

    def ceil(self) -> Expression:
        return _call("ceil", self)

    def clamp(self, low: Operand, high: Operand) -> Expression:
        """min(max(value, low), high)."""
        return _call("clamp", self, low, high)

    # Texts.

    def starts_with(self, prefix: str) -> Expression:
        return self._method("startsWith", _literal(prefix))

    def ends_with(self, suffix: str) -> Expression:
        return self._method("endsWith", _literal(suffix))

    def contains(self, part: str) -> Expression:
        return self._method("contains", _literal(part))

    # Times, in UTC.

    def year(self) -> Expression:
        return self._method("getFullYear")

    def month(self) -> Expression:
        """The month, from 1, as Python counts."""
        return self._method("getMonth") + 1

    def day(self) -> Expression:
        """The day of the month, from 1."""
        return self._method("getDate")

    def weekday(self) -> Expression:
        """The day of the week; Sunday is 0, as in CEL, unlike Python's Monday."""
        return self._method("getDayOfWeek")

    def day_of_year(self) -> Expression:
        """The day of the year, from 0, as in CEL."""
        return self._method("getDayOfYear")

    def hour(self) -> Expression:
        return self._method("getHours")

    def minute(self) -> Expression:
        return self._method("getMinutes")

    def second(self) -> Expression:
        return self._method("getSeconds")

    def _method(self, name: str, *args: str) -> Expression:
        return Expression(f"{self._at(_ATOM)}.{name}({', '.join(args)})", _ATOM)


def column(name: str) -> Expression:
    """The column of that name, whatever characters are in it."""
    if _IDENTIFIER.match(name) and not _RESERVED & set(name.split(".")):
        return Expression(name, _ATOM)
    return Expression(f"col({_literal(name)})", _ATOM)


def where(condition: Operand, then: Operand, otherwise: Operand) -> Expression:
    """then in rows for which the condition holds, else otherwise. None is null."""
    return Expression(f"{_text(condition, _OR)} ? {_text(then, _OR)} : {_text(otherwise, _TERNARY)}", _TERNARY)


def minimum(*values: Operand) -> Expression:
    """The least of 2 to 64 numbers of the row."""
    return _call("min", *values)


def maximum(*values: Operand) -> Expression:
    """The largest of 2 to 64 numbers of the row."""
    return _call("max", *values)


class Columns:
    """The columns of a table: `ds.c.delay`, or `ds.c["support tickets"]` where the name is no Python name."""

    def __init__(self, names: Iterable[str]):
        self._names = tuple(names)

    def __getitem__(self, name: str) -> Expression:
        if name not in self._names:
            raise KeyError(_missing(name, self._names))
        return column(name)

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("__") or name == "_names":
            raise AttributeError(name)
        if name not in self._names:
            raise AttributeError(_missing(name, self._names))
        return column(name)

    def __dir__(self) -> list[str]:
        return list(self._names)

    def __iter__(self) -> Any:
        return iter(self._names)

    def __repr__(self) -> str:
        return f"<columns {', '.join(self._names)}>"


def _missing(name: str, names: tuple[str, ...]) -> str:
    import difflib

    near = difflib.get_close_matches(name, names, 1)
    return f"there is no column {name!r}" + (f"; did you mean {near[0]!r}?" if near else f": there are {', '.join(names)}")


def _binary(left: Operand, op: str, right: Operand, level: int) -> Expression:
    # CEL reads a - b - c from the left; comparisons do not chain, so that both sides bind more strongly.
    left_level = level + 1 if level == _COMPARISON else level
    return Expression(f"{_text(left, left_level)} {op} {_text(right, level + 1)}", level)


def _call(name: str, *args: Operand) -> Expression:
    return Expression(f"{name}({', '.join(_text(a, _TERNARY) for a in args)})", _ATOM)


def _text(operand: Operand, level: int) -> str:
    return operand._at(level) if isinstance(operand, Expression) else _literal(operand)


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if hasattr(value, "item") and not isinstance(value, (str, bytes)) and type(value).__module__.split(".")[0] == "numpy":
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number of an expression; nulls are None")
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, _dt.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=_dt.timezone.utc)
        return f'timestamp("{value.astimezone(_dt.timezone.utc).isoformat().replace("+00:00", "Z")}")'
    if isinstance(value, _dt.date):
        return f'timestamp("{value.isoformat()}")'
    raise TypeError(f"{value!r} ({type(value).__name__}) cannot stand in an expression; numbers, texts, dates, booleans and None can")
