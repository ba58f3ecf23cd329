"""Runs the Go benchmarks, DuckDB and NumPy in turns, so that all of them see the same machine, and prints medians.

Every system answers `age > a && income * 0.5 < b ? 1.0 : 0.0` over a million rows, a hundredth of each column null:
the mean of one such predicate, then of 100 with different constants in one pass (NumPy: one after the other).
"""

import re
import statistics
import subprocess
import sys
import time

import duckdb
import numpy as np

ROWS = 1_000_000
BATCH = [(20 + i * 0.5, 20000 + i * 300) for i in range(100)]
SINGLE = [(40.0, 30000.0)]


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
    """ns a row and query of the Go benchmarks, by name."""
    out = subprocess.run(["go", "test", "-run", "^$", "-bench", "Predicate1M|Batch100x1M", "-benchtime", "300ms", "./queries/engine"],
                         check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"^Benchmark(\w+?)(?:-\d+)?\s.*?([\d.]+) ns/row", out, re.M))
    return float(found["Predicate1M"]), float(found["Batch100x1M"])


def timed(run, queries, repeat):
    """ns a row and query; the first call is not counted."""
    run()
    best = []
    for _ in range(repeat):
        start = time.perf_counter_ns()
        run()
        best.append(time.perf_counter_ns() - start)
    return statistics.median(best) / ROWS / queries


def duck(age, income):
    c = duckdb.connect(":memory:", config={"threads": 1})
    c.register("source", {"age": age, "income": income})
    c.execute("CREATE TABLE t AS SELECT CASE WHEN isnan(age) THEN NULL ELSE age END AS age, "
              "CASE WHEN isnan(income) THEN NULL ELSE income END AS income FROM source")

    def sql(queries):
        parts = [f"avg(CASE WHEN age > {a}::DOUBLE AND income * 0.5::DOUBLE < {b}::DOUBLE THEN 1.0::DOUBLE ELSE 0.0::DOUBLE END)" for a, b in queries]
        return "SELECT " + ", ".join(parts) + " FROM t"

    return lambda queries: c.execute(sql(queries)).fetchone()


def numpy_means(age, income):
    return lambda queries: tuple(np.where((age > a) & (income * 0.5 < b), 1.0, 0.0).mean() for a, b in queries)


def main():
    runs = int(sys.argv[1])
    age, income = columns()
    ducks, numpys = duck(age, income), numpy_means(age, income)
    for queries in (SINGLE, BATCH[:3]):
        a, b = ducks(queries), numpys(queries)
        if not np.allclose(a, b, rtol=0, atol=1e-12):
            sys.exit(f"compare.py: DuckDB has {a}, NumPy {b}")
    engine()  # compiles
    figures = {name: ([], []) for name in ("holdoutd", "DuckDB " + duckdb.__version__, "NumPy " + np.__version__)}
    systems = list(figures)
    for _ in range(runs):
        rounds = [engine(),
                  (timed(lambda: ducks(SINGLE), 1, 5), timed(lambda: ducks(BATCH), 100, 1)),
                  (timed(lambda: numpys(SINGLE), 1, 5), timed(lambda: numpys(BATCH), 100, 1))]
        for name, (single, batch) in zip(systems, rounds):
            figures[name][0].append(single)
            figures[name][1].append(batch)

    medians = {name: [statistics.median(f) for f in figures[name]] for name in systems}
    ours = medians[systems[0]]
    print(f"ns a row and query, one thread, {ROWS:,} rows, medians of {runs} runs (lowest to highest)")
    print(f"{'':16}{'one query':>26}{'times':>8}{'batch of 100':>28}{'times':>8}")
    for name in systems:
        cells = []
        for i in range(2):
            spread = figures[name][i]
            cells.append(f"{medians[name][i]:.2f} ({min(spread):.2f} to {max(spread):.2f})")
            cells.append(f"{medians[name][i] / ours[i]:.1f}")
        print(f"{name:16}{cells[0]:>26}{cells[1]:>8}{cells[2]:>28}{cells[3]:>8}")


main()
