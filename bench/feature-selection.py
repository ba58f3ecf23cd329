"""Runs one experiment three ways, each in a process of its own, and prints what each took.

    feature-selection.py PROGRAM DIRECTORY   runs all three; PROGRAM is a built holdoutd
    feature-selection.py --numpy BIASED      is the first of them: one repetition, both methods, as one would write it
"""

import json
import math
import os
import subprocess
import sys
import time

import numpy as np

N = D = 10_000
BIASED = 20  # columns that know the label, in the condition with signal
KS = [10, 20, 30, 45, 70, 100, 150, 200, 250, 300, 400, 500]
REPETITIONS = 100  # of the figure


def part(random, biased):
    """Labels and columns of one part."""
    x = random.standard_normal((N, D))
    y = np.sign(random.standard_normal(N))
    x[:, :biased] += 6 / math.sqrt(N) * y[:, None]
    return x, y


def repetition(biased):
    """One repetition: accuracies in the training part, as told, and in fresh data, by method and k."""
    random = np.random.default_rng(1)
    training, holdout, fresh = (part(random, biased) for _ in range(3))
    unit = 1 / math.sqrt(N)

    def thresholdout(a, b):
        noisy = b + random.normal(0, unit, np.shape(a))
        return np.where(np.abs(a - b) > 4 * unit + random.normal(0, unit, np.shape(a)), noisy, a)

    found = {}
    a, b = (x.T @ y / N for x, y in (training, holdout))
    for method, tell in (("standard", lambda a, b: b), ("thresholdout", thresholdout)):
        told = tell(a, b)
        selected = np.flatnonzero((np.sign(a) == np.sign(told)) & (np.abs(a) > unit) & (np.abs(told) > unit))
        order = selected[np.argsort(-np.abs(a[selected]))]
        rows = []
        for k in KS:
            columns = order[:k]
            right = [np.mean(np.sign(x[:, columns] @ np.sign(a[columns])) == y) for x, y in (training, holdout, fresh)]
            rows.append([right[0], float(tell(np.array(right[0]), np.array(right[1]))), right[2]])
        found[method] = rows
    return found


def run(*command):
    """Wall time in seconds and largest resident memory in MiB of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"feature-selection.py: {' '.join(command)} ended with status {status}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main(program, directory):
    numpy = [run(sys.executable, __file__, "--numpy", str(biased)) for biased in (0, BIASED)]
    plain = run(program, "experiment", "feature-selection", "--plain", "--repetitions", "1")
    sampled = run(program, "experiment", "feature-selection", "--repetitions", str(REPETITIONS), "--out", directory)
    checks = json.load(open(os.path.join(directory, "results.json")))["checks"]
    per = {
        "a plain NumPy script": (sum(t for t, _ in numpy), max(m for _, m in numpy), 1),
        "holdoutd --plain": (*plain, 1),
        "holdoutd": (*sampled, REPETITIONS),
    }
    print("n = d = 10,000, both conditions, both methods; one repetition is of all four\n")
    print(f"{'':24}{'measured':>22}{'a repetition':>14}{'100 repetitions':>17}{'memory':>12}{'ratio':>9}")
    best = per["holdoutd"][0] / REPETITIONS
    for name, (wall, memory, repetitions) in per.items():
        one = wall / repetitions
        print(f"{name:24}{f'{repetitions} in {wall:.2f} s':>22}{one:12.4f} s{100 * one:15.1f} s{memory:8.0f} MiB{one / best:9.0f}")
    print(f"\n{sum(c['agrees'] for c in checks)} of {len(checks)} comparisons of the last with the reference agree")


if __name__ == "__main__":
    if sys.argv[1] == "--numpy":
        print(json.dumps(repetition(int(sys.argv[2]))))
    else:
        main(*sys.argv[1:3])
