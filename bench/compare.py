"""Runs the Go benchmarks, DuckDB, NumPy and Polars in turns, so that all of them see the same machine, and prints medians.

Over a million rows, a hundredth of each column null, on one thread, every system answers
- one query: the share of rows with `age > a && income * 0.5 < b`;
- a batch: 100 of them with different thresholds;
- 100 different ones: `age * c > 20 && income * d < 30000`, which have nothing in common but the columns;
- a calendar's: the share of times in a February and on a Sunday.
DuckDB and Polars are given a batch in one statement, NumPy one after the other.
"""

import os
import re
import statistics
import subprocess
import sys
import time

os.environ["POLARS_MAX_THREADS"] = "1"

import duckdb
import numpy as np
import polars as pl

ROWS = 1_000_000
THRESHOLDS = [(1.0, 20 + i * 0.5, 0.5, 20000.0 + i * 300) for i in range(100)]
DIFFERENT = [(1 / (1 + i), 20.0, 0.5 / (1 + i), 30000.0) for i in range(100)]
TASKS = {"one query": [(1.0, 40.0, 0.5, 30000.0)], "batch of 100": THRESHOLDS, "100 different": DIFFERENT, "calendar": None}


def columns():
    """Ages, incomes and times of the shape of queries/engine/bench_test.go; NaN is null."""
    r = np.random.default_rng(1)
    age = np.floor(18 + 72 * r.random(ROWS))
    income = 50000 * np.exp(0.5 * r.standard_normal(ROWS))
    null = r.integers(0, 100, ROWS)
    age[null == 0] = np.nan
    income[null == 1] = np.nan
    at = (r.integers(0, 3650, ROWS) * 86400e6 * (1 + r.random(ROWS))).astype("datetime64[us]")
    return age, income, at


def engine():
    """ns a row and query of the Go benchmarks, by task."""
    names = {"Predicate1M": "one query", "Batch100x1M": "batch of 100", "Distinct100x1M": "100 different", "Calendar1M/month_and_weekday": "calendar"}
    out = subprocess.run(["go", "test", "-run", "^$", "-bench", "^Benchmark(Predicate1M|Batch100x1M|Distinct100x1M|Calendar1M)$", "-benchtime", "300ms",
                          "./queries/engine"], check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"^Benchmark([\w/]+?)(?:-\d+)?\s.*?([\d.]+) ns/row", out, re.M))
    return {task: float(found[name]) for name, task in names.items()}


def timed(run, queries, repeat):
    """ns a row and query; the first call is not counted."""
    run(queries)
    took = []
    for _ in range(repeat):
        start = time.perf_counter_ns()
        run(queries)
        took.append(time.perf_counter_ns() - start)
    return statistics.median(took) / ROWS / len(queries or [None])


def duck(age, income, at):
    c = duckdb.connect(":memory:", config={"threads": 1})
    c.register("source", {"age": age, "income": income, "moment": at})
    c.execute("CREATE TABLE t AS SELECT CASE WHEN isnan(age) THEN NULL ELSE age END AS age, "
              "CASE WHEN isnan(income) THEN NULL ELSE income END AS income, moment FROM source")

    def run(queries):
        if queries is None:
            return c.execute("SELECT avg(CASE WHEN month(moment) = 2 AND dayofweek(moment) = 0 THEN 1.0::DOUBLE ELSE 0.0::DOUBLE END) FROM t").fetchone()

        def number(column, k):
            return column if k == 1 else f"{column} * {k!r}::DOUBLE"
        parts = [f"avg(CASE WHEN {number('age', m)} > {a!r}::DOUBLE AND {number('income', n)} < {b!r}::DOUBLE THEN 1.0::DOUBLE ELSE 0.0::DOUBLE END)"
                 for m, a, n, b in queries]
        return c.execute("SELECT " + ", ".join(parts) + " FROM t").fetchone()

    return run


def numpys(age, income, at):
    def run(queries):
        if queries is None:
            days = at.astype("datetime64[D]")
            return (((at.astype("datetime64[M]").astype(np.int64) % 12 == 1) & ((days.astype(np.int64) + 4) % 7 == 0)).mean(),)
        return tuple((((age if m == 1 else age * m) > a) & (income * n < b)).mean() for m, a, n, b in queries)

    return run


def polar(age, income, at):
    frame = pl.DataFrame({"age": pl.Series(age, nan_to_null=True), "income": pl.Series(income, nan_to_null=True), "moment": at})
    rows = pl.len()

    def run(queries):
        if queries is None:
            when = pl.col("moment").dt
            return frame.select(((when.month() == 2) & (when.weekday() == 7)).sum() / rows).row(0)

        def number(column, k):
            return pl.col(column) if k == 1 else pl.col(column) * k
        return frame.select([(((number("age", m) > a) & (number("income", n) < b)).sum() / rows).alias(str(i))
                             for i, (m, a, n, b) in enumerate(queries)]).row(0)

    return run


def main():
    runs = int(sys.argv[1])
    data = columns()
    systems = {"DuckDB " + duckdb.__version__: duck(*data), "NumPy " + np.__version__: numpys(*data), "Polars " + pl.__version__: polar(*data)}
    for task, queries in TASKS.items():
        answers = [run(queries and queries[:3]) for run in systems.values()]
        if not np.allclose(answers, answers[0], rtol=0, atol=1e-12):
            sys.exit(f"compare.py: {task}: {dict(zip(systems, answers))}")
    engine()  # compiles
    figures = {task: {name: [] for name in ("holdoutd", *systems)} for task in TASKS}
    for _ in range(runs):
        for task, ns in engine().items():
            figures[task]["holdoutd"].append(ns)
        for name, run in systems.items():
            for task, queries in TASKS.items():
                figures[task][name].append(timed(run, queries, 1 if queries and len(queries) > 1 else 5))

    print(f"ns a row and query, one thread, {ROWS:,} rows: medians of {runs} runs (lowest to highest), and times ours")
    print(f"{'':14}" + "".join(f"{task:>30}" for task in TASKS))
    for name in ("holdoutd", *systems):
        cells = []
        for task in TASKS:
            spread = figures[task][name]
            median = statistics.median(spread)
            times = median / statistics.median(figures[task]["holdoutd"])
            cells.append(f"{median:.2f} ({min(spread):.2f} to {max(spread):.2f}) {times:5.1f}")
        print(f"{name:14}" + "".join(f"{cell:>30}" for cell in cells))


main()
