"""The screen of 10,000 features over 10,000 rows beside NumPy's X.T @ y of the same size, in turns, on all cores.

A screen clamps each value, multiplies it by the label and sums exact integers; correlation takes two more means of each feature
for its z-scores. NumPy's product is the least that any program has to do.
"""

import re
import statistics
import subprocess
import sys
import time

import numpy as np

N = D = 10_000


def screen():
    """Seconds of the Go benchmark's statistics."""
    out = subprocess.run(["go", "test", "-run", "^$", "-bench", "Screen10k", "-benchtime", "3x", "./queries/engine"],
                         check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"^BenchmarkScreen10k/(\w+?)(?:-\d+)?\s+\d+\s+(\d+) ns/op", out, re.M))
    return int(found["product"]) / 1e9, int(found["correlation"]) / 1e9


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    r = np.random.default_rng(1)
    x, y = r.random((N, D)), np.sign(r.random(N) - 0.5)
    x.T @ y
    ours, numpys = [], []
    for _ in range(runs):
        ours.append(screen())
        start = time.perf_counter()
        x.T @ y
        numpys.append(time.perf_counter() - start)
    reference = statistics.median(numpys)
    print(f"{N:,} features, {N:,} rows, float64, all cores, medians of {runs} runs")
    print(f"{'NumPy ' + np.__version__ + ' X.T @ y':32}{reference:8.3f} s")
    for name, seconds in (("screen, product", [o[0] for o in ours]), ("screen, correlation", [o[1] for o in ours])):
        print(f"{name:32}{statistics.median(seconds):8.3f} s  {statistics.median(seconds) / reference:5.1f} times")


main()
