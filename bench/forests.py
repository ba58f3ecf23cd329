"""Forests as people fit them: what exporting, sending and asking about one takes, beside the library's own predictions, in one run.

    python bench/forests.py [path of holdoutd]

The server has one processor (GOMAXPROCS=1), the libraries one thread. A question is about 100,000 held-out rows, the first about a model and with all that
it takes: the request, the pass over the rows, the ledger.
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python" / "src"), str(ROOT / "python" / "tests")]

import holdoutd
from conftest import Running
from holdoutd._steps import keep_model
from holdoutd._wire import dumps
from holdoutd.models import export

TRAINING, HELD_OUT, COLUMNS = 20_000, 100_000, 20
TIMES = 3  # the best of which counts

MODELS: dict[str, Any] = {
    "RandomForestClassifier()": RandomForestClassifier(random_state=1, n_jobs=1),
    "XGBClassifier(1000)": xgboost.XGBClassifier(n_estimators=1000, n_jobs=1, random_state=1),
    "LGBMClassifier(1000)": lightgbm.LGBMClassifier(n_estimators=1000, n_jobs=1, random_state=1, verbose=-1),
    "HistGradientBoostingClassifier(1000)": HistGradientBoostingClassifier(max_iter=1000, early_stopping=False, random_state=1),
    "GradientBoostingClassifier()": GradientBoostingClassifier(random_state=1),
}


def best(what: Callable[[], Any]) -> float:
    """The seconds of the fastest of some runs."""
    took = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        what()
        took.append(time.perf_counter() - begin)
    return min(took)


def resident(pid: int) -> float:
    """The megabytes that a process has in memory, at most since it began."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    os.environ.update(OMP_NUM_THREADS="1", GOMAXPROCS="1")
    x, y = make_classification(TRAINING + HELD_OUT, COLUMNS, n_informative=8, flip_y=0.05, random_state=1)
    columns = [f"x{i}" for i in range(COLUMNS)]
    table = pd.DataFrame(x, columns=columns).assign(y=y.astype(bool))
    training, rows = table[:TRAINING], table[TRAINING:]
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "holdoutd"
        if len(sys.argv) < 2:
            subprocess.run(["go", "build", "-tags", "nomsgpack", "-o", binary, "./cmd/holdoutd"], cwd=ROOT, check=True)
        print(f"{'model':38} {'nodes':>9} {'sent MB':>7} | {'export':>7} {'send':>7} {'library':>8} {'ratio':>6} | {'verify':>7} | {'question':>8} {'library':>8} {'ratio':>6} | server MB")
        for name, model in MODELS.items():
            model.fit(training[columns], training.y)
            running = Running(binary, Path(folder) / name.split("(")[0])
            try:
                measure(running, name, model, training, rows, columns)
            finally:
                running.kill()


def measure(running: Running, name: str, model: Any, training: pd.DataFrame, rows: pd.DataFrame, columns: list[str]) -> None:
    server = holdoutd.connect(running.url, key=running.key)
    ds = server.upload(training_part=training, holdout_part=rows, name=name, questions=1000, label="y")
    small = best(lambda: model.predict_proba(training[columns]))
    large = best(lambda: model.predict_proba(rows[columns]))
    before = resident(running.process.pid)
    exported = export(model, columns, verify=False)
    text = dumps({k: v for k, v in exported.items() if k != "threshold"}).encode()
    exporting = best(lambda: dumps(export(model, columns, verify=False)).encode())
    sending = best(lambda: server._run(keep_model(text)))
    verifying = best(lambda: export(model, columns, rows=training)) - best(lambda: export(model, columns, verify=False))
    named = {"sha256": server._run(keep_model(text))}
    asked = iter(range(10**6))
    question = best(lambda: ds.ask({"type": "accuracy", "label": "y", "model": named, "threshold": 0.5 + 1e-9 * next(asked)}))
    nodes = json.dumps(exported).count("[") if isinstance(exported["trees"]["trees"], list) else nodes_of(exported)
    print(
        f"{name:38} {nodes:9,} {len(text) / 1e6:7.2f} | {exporting:7.3f} {sending:7.3f} {small:8.3f} {(exporting + sending) / small:6.2f} | {verifying:7.3f} | "
        f"{question:8.3f} {large:8.3f} {question / large:6.2f} | {resident(running.process.pid) - before:.0f} of {len(pickle.dumps(model)) / 1e6:.0f} pickled",
        flush=True,
    )


def nodes_of(exported: Any) -> int:
    from holdoutd import _forest

    return _forest.count(exported["trees"]["trees"])


if __name__ == "__main__":
    main()
