"""Reference numbers of the attack on a leaderboard, made apart from this repository's Go code, with NumPy.

    python3 reference.py > reference.json

k random submissions for N labels. On a board of exact scores the attack keeps those with a loss of at most 1/2; against the parameter-free Ladder
(arXiv 1502.04585, section 3.3) those that move the board to at most 1/2. The final submission is the majority of those kept, ties by coins.
"""

import json
import sys

import numpy as np

N, REPETITIONS = 4000, 1000
EXACT, LADDER = "exact scores", "ladder"


def attack(rng, k, board):
    errors = rng.integers(0, 2, (k, N), dtype=np.int8)
    if board == EXACT:
        kept = errors[errors.mean(axis=1) <= 0.5]
    else:
        kept, best, shown = [], None, np.inf
        for e in errors:
            # A submission is on top if it is better than the best by the standard deviation of the difference of losses, over sqrt(N).
            if best is None:
                spread = 0.0
            else:
                spread = np.std(e.astype(float) - best, ddof=1) / np.sqrt(N)
            if e.mean() < shown - spread:
                shown, best = round(e.mean() * N) / N, e
                if shown <= 0.5:
                    kept.append(e)
        kept = np.array(kept).reshape(-1, N)
    votes = 2 * kept.sum(axis=0, dtype=int) - len(kept)
    final = np.where(votes == 0, rng.integers(0, 2, N), votes > 0)
    return final.mean(), len(kept)


def main():
    rows = []
    for board in (EXACT, LADDER):
        for k in (100, 400):
            runs = np.array([attack(np.random.default_rng([1502, k, len(board), i]), k, board) for i in range(REPETITIONS)])
            for j, measure in enumerate(("loss of the final submission", "submissions that the attack put in")):
                v = runs[:, j]
                rows.append({"condition": "boosting", "method": board, "n": N, "k": k, "set": measure, "mean": round(float(v.mean()), 8), "sd": round(float(v.std(ddof=1)), 8),
                             "kurtosis": round(float(np.mean((v - v.mean()) ** 4) / np.var(v) ** 2), 4), "repetitions": REPETITIONS})
            print(board, k, runs.mean(axis=0), runs.std(axis=0), file=sys.stderr)
    print(json.dumps({"source": "reference.py: NumPy", "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
