"""Runs the Go benchmarks, DuckDB, NumPy and Polars in turns, so that all of them see the same machine, and prints medians.

Every system answers `age > a && income * 0.5 < b` over a million rows, a hundredth of each column null: the share of rows of one such predicate, of 100 with
different constants, and of 100 that share nothing but the columns. Each is asked as its users would: NumPy by `condition.mean()`, one after the other, DuckDB by
one statement that counts, Polars by one lazy frame. Figures are processor time, of one thread each.
"""

import re
import statistics
import subprocess
import sys
import time

import os

os.environ.update(POLARS_MAX_THREADS="1", OPENBLAS_NUM_THREADS="1")

import duckdb
import numpy as np
import polars as pl

ROWS = 1_000_000
# What age is multiplied by and compared with, and the same of income, as in queries/engine/bench_test.go.
SINGLE = [(1, 40.0, 0.5, 30000.0)]
BATCH = [(1, 20 + i * 0.5, 0.5, 20000.0 + i * 300) for i in range(100)]
DISTINCT = [(1 / (1 + i), 20.0, 0.5 / (1 + i), 30000.0) for i in range(100)]
CASES = [("one query", SINGLE, "Predicate1M", 5), ("batch of 100", BATCH, "Batch100x1M", 2), ("100 different", DISTINCT, "Distinct100x1M", 2)]


def columns():
    """Ages, incomes and towns' shape as in queries/engine/bench_test.go; NaN is null."""
    r = np.random.default_rng(1)
    age = np.floor(18 + 72 * r.random(ROWS))
    income = 50000 * np.exp(0.5 * r.standard_normal(ROWS))
    null = r.integers(0, 100, ROWS)
    age[null == 0] = np.nan
    income[null == 1] = np.nan
    return age, income


def engine():
    """ns a row and query of the Go benchmarks, by case."""
    names = [name for _, _, name, _ in CASES]
    out = subprocess.run(["go", "test", "-run", "^$", "-cpu", "1", "-bench", "^Benchmark(" + "|".join(names) + ")$", "-benchtime", "300ms", "./queries/engine"],
                         check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"^Benchmark(\w+?)(?:-\d+)?\s.*?([\d.]+) cpu-ns/row", out, re.M))
    return [float(found[name]) for name in names]


def timed(run, queries, repeat):
    """Processor ns a row and query, the least of some calls; the first call is not counted."""
    run(queries)
    best = []
    for _ in range(repeat):
        start = time.process_time_ns()
        run(queries)
        best.append(time.process_time_ns() - start)
    return min(best) / ROWS / len(queries)


def duck(age, income):
    c = duckdb.connect(":memory:", config={"threads": 1})
    c.register("source", {"age": age, "income": income})
    c.execute("CREATE TABLE t AS SELECT CASE WHEN isnan(age) THEN NULL ELSE age END AS age, "
              "CASE WHEN isnan(income) THEN NULL ELSE income END AS income FROM source")

    def scaled(column, factor):
        return column if factor == 1 else f"{column} * {factor!r}::DOUBLE"

    def sql(queries):
        return "SELECT " + ", ".join(f"count(*) FILTER (WHERE {scaled('age', f)} > {a}::DOUBLE AND {scaled('income', g)} < {b}::DOUBLE) / count(*)" for f, a, g, b in queries) + " FROM t"

    return lambda queries: c.execute(sql(queries)).fetchone()


def numpy_means(age, income):
    def scaled(column, factor):
        return column if factor == 1 else column * factor

    return lambda queries: tuple(((scaled(age, f) > a) & (scaled(income, g) < b)).mean() for f, a, g, b in queries)


def polars_means(age, income):
    frame = pl.DataFrame({"age": age, "income": income}).fill_nan(None).lazy()

    def scaled(column, factor):
        return pl.col(column) if factor == 1 else pl.col(column) * factor

    def run(queries):
        sums = [((scaled("age", f) > a) & (scaled("income", g) < b)).sum().alias(str(i)) for i, (f, a, g, b) in enumerate(queries)]
        return tuple(x / ROWS for x in frame.select(sums).collect().row(0))

    return run


def main():
    runs = int(sys.argv[1])
    age, income = columns()
    peers = {"DuckDB " + duckdb.__version__: duck(age, income), "NumPy " + np.__version__: numpy_means(age, income), "Polars " + pl.__version__: polars_means(age, income)}
    for queries in (SINGLE, BATCH[:3], DISTINCT[:3]):
        answers = {name: run(queries) for name, run in peers.items()}
        first = next(iter(answers.values()))
        for name, answer in answers.items():
            if not np.allclose(answer, first, rtol=0, atol=1e-12):
                sys.exit(f"compare.py: {name} has {answer}, the first {first}")
    engine()  # compiles
    figures = {name: [[] for _ in CASES] for name in ("holdoutd", *peers)}
    for _ in range(runs):
        for i, x in enumerate(engine()):
            figures["holdoutd"][i].append(x)
        for name, run in peers.items():
            for i, (_, queries, _, repeat) in enumerate(CASES):
                figures[name][i].append(timed(run, queries, repeat))

    ours = [statistics.median(f) for f in figures["holdoutd"]]
    print(f"processor ns a row and query, one thread, {ROWS:,} rows, medians of {runs} runs (lowest to highest), and how many times ours")
    print(f"{'':16}" + "".join(f"{name:>34}" for name, *_ in CASES))
    for name, cases in figures.items():
        cells = [f"{statistics.median(f):.2f} ({min(f):.2f} to {max(f):.2f}) {statistics.median(f) / ours[i]:5.1f}" for i, f in enumerate(cases)]
        print(f"{name:16}" + "".join(f"{c:>34}" for c in cells))


main()
