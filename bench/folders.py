"""A table larger than the memory of the server: a folder of Parquet files of its operator's, made a holdout by its path.

    bench/folders.py PROGRAM [--millions 100] [--columns 10] [--files 20] [--memory 2] [--directory DIR]

The table has three whole numbers, a text of four values, a truth value, and decimals. The server gets --memory GiB for itself and its decoding process, pages of files
included, by a control group of its own (version 1 or 2; it needs root); with 0 it gets what there is. Then a batch of 100 different fractions and a batch of 100 means are asked.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GROUP = 1_000_000  # rows of a row group


def write(folder, rows, columns, files):
    """Writes the folder, a row group at a time."""
    r, texts = np.random.default_rng(rows), np.array(["north", "south", "east", "west"])
    for i in range(files):
        left, writer = rows // files, None
        while left > 0:
            n = min(GROUP, left)
            left -= n
            table = {f"x{k}": np.round(r.standard_normal(n, dtype=np.float32).astype(float), 2) for k in range(columns - 5)}
            table |= {f"n{k}": r.integers(0, 1000 * (k + 1), n, dtype=np.int32) for k in range(3)}
            table |= {"region": pa.DictionaryArray.from_arrays(r.integers(0, 4, n, dtype=np.int8), texts), "late": r.random(n) < 0.2}
            table = pa.table(table)
            writer = writer or pq.ParquetWriter(folder / f"part-{i:03}.parquet", table.schema, compression="none")
            writer.write_table(table)
        writer.close()
        print(f"\rwritten {i + 1} of {files} files", end="", flush=True)
    print()


class Bounded:
    """A control group with a limit of memory, and what was the most."""

    def __init__(self, gib):
        first = Path("/sys/fs/cgroup/memory")
        self.old = first.is_dir()
        self.path = (first if self.old else Path("/sys/fs/cgroup")) / f"holdoutd-bench-{os.getpid()}"
        self.path.mkdir()
        (self.path / ("memory.limit_in_bytes" if self.old else "memory.max")).write_text(str(int(gib * (1 << 30))))

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def most(self):
        return int((self.path / ("memory.max_usage_in_bytes" if self.old else "memory.peak")).read_text())

    def own(self):
        """What the processes have for themselves, without pages of files."""
        text = (self.path / "memory.stat").read_text()
        return sum(int(n) for name, n in re.findall(r"^(\w+) (\d+)$", text, re.M) if name in (("rss",) if self.old else ("anon",)))

    def remove(self):
        self.path.rmdir()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("--millions", type=float, default=100)
    p.add_argument("--columns", type=int, default=10)
    p.add_argument("--files", type=int, default=20)
    p.add_argument("--memory", type=float, default=2)
    p.add_argument("--directory", default=None)
    a = p.parse_args()
    with tempfile.TemporaryDirectory(dir=a.directory) as work:
        lake = Path(work) / "lake" / "table"
        lake.mkdir(parents=True)
        write(lake, int(a.millions * 1e6), a.columns, a.files)
        print(f"{sum(f.stat().st_size for f in lake.iterdir()) / 1e9:.2f} GB of Parquet")
        bounded = Bounded(a.memory) if a.memory else None
        before = os.times()
        server = subprocess.Popen(
            [a.program, "serve", "--data", work + "/data", "--addr", "127.0.0.1:0", "--log", "json", "--source", f"lake=file://{lake.parent}"],
            stderr=subprocess.PIPE, text=True, preexec_fn=bounded.enter if bounded else None,
        )
        try:
            address = next(found[1] for line in server.stderr if (found := re.search(r'"addr":"([\d.:]+)"', line)))
            threading.Thread(target=server.stderr.read, daemon=True).start()
            key = (Path(work) / "data" / "admin.key").read_text().strip()
            own, over = [0], threading.Event()

            def watch():
                while bounded and not over.wait(0.05):
                    own[0] = max(own[0], bounded.own())

            threading.Thread(target=watch, daemon=True).start()

            def post(path, body=None):
                request = urllib.request.Request(f"http://{address}{path}", data=json.dumps(body).encode() if body else b"", method="POST")
                request.add_header("Authorization", f"Bearer {key}")
                if body:
                    request.add_header("Content-Type", "application/json")
                began = time.monotonic()
                with urllib.request.urlopen(request) as reply:
                    return json.load(reply), time.monotonic() - began

            card, seconds = post("/v1/holdouts?path=lake/table&unit=row&questions=1000&mechanism=gaussian")
            print(f"a holdout of {card['rows']['holdout']:,} of {sum(card['rows'].values()):,} rows: {seconds:.1f} s")
            for what, queries in (
                ("fractions", [{"type": "fraction", "of": f"x{i % 5} > {i / 50 - 1:.2f} && n{i % 3} < {400 + i}"} for i in range(100)]),
                ("means", [{"type": "mean", "of": f"n{i % 3}", "range": [0, 3000], "where": f"x{i % 5} > {i / 50 - 1:.2f}"} for i in range(100)]),
            ):
                _, seconds = post(f"/v1/holdouts/{card['id']}/queries/batch", {"queries": queries})
                print(f"100 {what}: {seconds:.2f} s")
            over.set()
        finally:
            server.terminate()
            server.wait()
            after = os.times()
            print(f"{after.children_user + after.children_system - before.children_user - before.children_system:.0f} s of processors")
            if bounded:
                print(f"memory: at most {bounded.most() / 2**20:,.0f} MiB with pages of files, {own[0] / 2**20:,.0f} MiB of its own")
                time.sleep(0.5)
                bounded.remove()


if __name__ == "__main__":
    main()
