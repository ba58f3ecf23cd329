"""Numbers for people: what is printed of an interval holds what was proved.

The low end is rounded down and the high end up, never to nearest. Values are rounded to nearest on the same grid, so that one
within its interval is printed within it. A double is taken for the shortest decimal that reads as it: an end that is short already
stays as it is. internal/printed/cases.json is the table that the server, the command and the page are tested by, too.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

# Enough for every double with every number of decimals.
_CONTEXT = Context(prec=800)


def decimals(half_width: float | None) -> int:
    """Decimals that show a number to about a hundredth of its half-width, but no more."""
    if half_width is None or not half_width > 0 or not math.isfinite(half_width):
        return 4
    return max(0, min(12, 1 - math.floor(math.log10(half_width))))


def low(x: float, digits: int) -> str:
    """x rounded down to so many decimals."""
    return _fixed(x, digits, ROUND_FLOOR)


def near(x: float, digits: int) -> str:
    """x rounded to the nearest number of so many decimals, of two the one farther from 0. A zero has no sign."""
    return _fixed(x, digits, ROUND_HALF_UP)


def high(x: float, digits: int) -> str:
    """x rounded up to so many decimals."""
    return _fixed(x, digits, ROUND_CEILING)


def low_of(x: float, digits: int) -> float:
    """x rounded down to so many significant digits."""
    return _significant(x, digits, ROUND_FLOOR)


def near_of(x: float, digits: int) -> float:
    """x rounded to nearest to so many significant digits."""
    return _significant(x, digits, ROUND_HALF_UP)


def high_of(x: float, digits: int) -> float:
    """x rounded up to so many significant digits."""
    return _significant(x, digits, ROUND_CEILING)


def _fixed(x: float, digits: int, rounding: str) -> str:
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "∞" if x > 0 else "-∞"
    rounded = _round(x, digits, rounding)
    return f"{abs(rounded) if rounded.is_zero() else rounded:,f}"


def _significant(x: float, digits: int, rounding: str) -> float:
    if x == 0 or not math.isfinite(x):
        return x
    return float(_round(x, digits - 1 - Decimal(repr(float(x))).adjusted(), rounding))


def _round(x: float, digits: int, rounding: str) -> Decimal:
    return Decimal(repr(float(x))).quantize(Decimal((0, (1,), -digits)), rounding=rounding, context=_CONTEXT)
