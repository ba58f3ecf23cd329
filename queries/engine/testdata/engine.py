"""An engine for row functions, written from docs/format/rowfn.md and docs/MODELS.md alone. It reads cases as lines of JSON, each a
batch with rows and units, and writes the sums of each as a line. It is slow, and shares nothing with the server."""

import base64
import json
import math
import struct
import sys
from fractions import Fraction

ONE = 1 << 30


def number(bits):
    return struct.unpack(">d", bytes.fromhex(bits))[0]


def finite(x):
    return x if math.isfinite(x) else None


def divide(a, b):
    return None if b == 0 else finite(a / b)


def civil(days):
    """Year, month, day and day of the year, all but the year from 0, of a day since 1970 in the proleptic Gregorian calendar."""
    year = 1970 + min(days // 366, days // 365) - 1  # not after it, whatever the sign
    while True:
        first = first_of(year + 1)
        if first > days:
            break
        year += 1
    of_year = days - first_of(year)
    lengths = [31, 29 if leap(year) else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    month, day = 0, of_year
    while day >= lengths[month]:
        day -= lengths[month]
        month += 1
    return year, month, day, of_year


def leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def first_of(year):
    """The first day of a year, counted from 1970."""
    before = year - 1
    return 365 * (year - 1970) + (before // 4 - before // 100 + before // 400) - (1969 // 4 - 1969 // 100 + 1969 // 400)


def time_part(op, t):
    micros = int(t)  # cut towards 0
    days, rest = divmod(micros, 86400 * 10**6)
    if op in ("hours", "minutes", "seconds", "milliseconds"):
        unit, count = {"hours": (3600 * 10**6, 24), "minutes": (60 * 10**6, 60), "seconds": (10**6, 60), "milliseconds": (1000, 1000)}[op]
        return float(rest // unit % count)
    if op == "day_of_week":
        return float((days + 4) % 7)
    year, month, day, of_year = civil(days)
    return float({"full_year": year, "month": month, "day_of_month": day, "date": day + 1, "day_of_year": of_year}[op])


UNARY = {"neg": lambda x: -x, "abs": abs, "floor": lambda x: float(math.floor(x)), "ceil": lambda x: float(math.ceil(x)),
         "sqrt": lambda x: math.sqrt(x) if x >= 0 else None}
BINARY = {"add": lambda a, b: finite(a + b), "sub": lambda a, b: finite(a - b), "mul": lambda a, b: finite(a * b), "div": divide, "min": min, "max": max}
COMPARE = {"less": lambda a, b: a < b, "less_eq": lambda a, b: a <= b, "greater": lambda a, b: a > b, "greater_eq": lambda a, b: a >= b,
           "eq": lambda a, b: a == b, "ne": lambda a, b: a != b}
TEXT = {"has_prefix": bytes.startswith, "has_suffix": bytes.endswith, "contains": lambda s, part: part in s}
PARTS = {"full_year", "month", "day_of_month", "date", "day_of_week", "day_of_year", "hours", "minutes", "seconds", "milliseconds"}


def cell(kind, value):
    if value is None:
        return None
    if kind in ("number", "time"):
        return finite(number(value))
    return value.encode() if kind == "text" else value


def linear(model, output, args):
    """A score of a linear model: intercept, then the features in the order of the columns' names by fused multiply-add."""
    weights, impute = model["weights"], model.get("impute", {})
    total = model.get("intercept", 0.0)
    for column, x in zip(sorted(weights), args):
        if isinstance(weights[column], dict):
            weight, null = 1.0, 0.0
        else:
            weight, null = weights[column], impute.get(column, 0.0)
        x = null if x is None else x
        total = float(Fraction(weight) * Fraction(x) + Fraction(total))
    return total


def evaluate(batch, row, at):
    values = []
    for n in batch.get("nodes", []):
        op, args = n["op"], [values[i] for i in n.get("args", [])]
        types = [batch["nodes"][i]["type"] for i in n.get("args", [])]
        if op == "column":
            v = cell(n["type"], row[n["name"]])
            if n["type"] == "condition":
                v = Truth(v is True, v is None)
        elif op == "number":
            v = number(n["number"])
        elif op == "text":
            v = n["text"].encode()
        elif op in ("true", "false"):
            v = Truth(op == "true")
        elif op == "null":
            v = None
        elif op in UNARY:
            v = None if args[0] is None else UNARY[op](args[0])
        elif op in BINARY:
            v = None if None in args else BINARY[op](*args)
        elif op == "clamp":
            v = None if None in args else min(max(args[0], args[1]), args[2])
        elif op == "if":
            v = args[1] if args[0].holds else args[2]
        elif op in COMPARE:
            v = Truth(None not in args and COMPARE[op](*args))
        elif op == "in":
            v = Truth(args[0] is not None and any(a is not None and a == args[0] for a in args[1:]))
        elif op in TEXT:
            v = Truth(args[0] is not None and TEXT[op](args[0], args[1]))
        elif op == "is_null":
            v = Truth(args[0].null if types[0] == "condition" else args[0] is None)
        elif op == "not":
            v = Truth(not args[0].holds)
        elif op in ("and", "or"):
            v = Truth({"and": all, "or": any}[op](a.holds for a in args))
        elif op in PARTS:
            v = None if args[0] is None else time_part(op, args[0])
        elif op == "lookup":
            if args[0] is None:
                v = number(n["null"]) if "null" in n else None
            else:
                v = {e["text"].encode(): number(e["number"]) for e in n["texts"]}.get(args[0], 0.0)
        elif op == "score":
            try:
                v = finite(linear(batch["models"][n["model"]]["model"]["linear"], n["output"], args))
            except OverflowError:
                v = None
        elif op == "row":
            word = base64.b64decode(n["values"])[8 * at:8 * at + 8]
            v = None if word == bytes.fromhex("010000000000f87f") else struct.unpack("<d", word)[0]
        else:
            raise ValueError("operation " + op)
        values.append(v)
    return values


class Truth:
    """A condition; of a column also whether the cell is null."""

    def __init__(self, holds, null=False):
        self.holds, self.null = holds, null


def row_value(f, values):
    low, high = number(f["low"]), number(f["high"])
    if "value" not in f:
        v = 1.0
    else:
        v = values[f["value"]]
        if isinstance(v, Truth):
            v = 1.0 if v.holds else 0.0
    c = number(f["null"]) if v is None else min(max(v, low), high)
    return math.floor((c - low) * (2.0**30 / (high - low)) + 0.5)


def rounded(a, b):
    return (2 * a + b) // (2 * b)


def unit_value(f, rows, single, largest):
    taken = [row_value(f, values) for values in rows if "where" not in f or values[f["where"]].holds]
    if f["unit"] == "any":
        return ONE if taken else 0
    if single:
        return sum(taken)
    if f["unit"] == "mean":
        return rounded(sum(taken), len(taken)) if taken else 0
    return rounded(sum(taken), max(len(rows), largest))


def sums(case):
    batch = case["batch"]
    rows = [evaluate(batch, row, at) for at, row in enumerate(case["rows"])]
    if case["units"] is None:
        units = [[values] for values in rows]
    else:
        units = [rows[a:b] for a, b in zip(case["units"], case["units"][1:])]
    columns = [[unit_value(f, unit, case["units"] is None, case["largest"]) for unit in units] for f in batch["functions"]]
    return {"values": [str(sum(c)) for c in columns], "products": [str(sum(x * y for x, y in zip(columns[a], columns[b]))) for a, b in batch.get("products", [])]}


for line in sys.stdin:
    print(json.dumps(sums(json.loads(line))))
