"""What uploads take: seconds by the clock and of processors, and the memory of all processes together.

    bench/uploads.py PROGRAM [OTHER PROGRAM ...] [--millions 1,3,10] [--directory DIR]

Programs take turns, each in a new data directory, and the best of three turns counts for each. The table has four columns of decimals, two of whole
numbers, an amount, a float of full precision, two texts of few values, and a customer, of whom each has five rows.

Memory is what the server and its children have resident, read from /proc every 5 ms and added up: the highest of these sums. "own" leaves out the pages of mapped files
(RssFile), which the kernel can drop or write out when others need the memory.
"""

import argparse
import http.client
import json
import os
import re
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TURNS = 3
GROUP = 250_000  # rows of a row group
UNITS = {"rows": "&unit=row", "customers": "&unit=customer"}


def write(path, rows):
    """Writes the table in row groups, so that this process stays small."""
    r, writer = np.random.default_rng(rows), None
    for start in range(0, rows, GROUP):
        n = min(GROUP, rows - start)
        columns = {f"x{i}": np.round(r.normal(size=n), 4) for i in range(4)}
        columns |= {f"n{i}": r.integers(0, 1000 * (i + 1), n) for i in range(2)}
        columns |= {"amount": np.round(np.exp(r.normal(3, 1, n)), 2), "y": r.normal(size=n)}
        for name, values in ("region", ["north", "south", "east", "west"]), ("product", [f"product {i}" for i in range(60)]):
            columns[name] = pa.array(np.array(values)[r.integers(0, len(values), n)]).dictionary_encode()
        table = pa.table(columns | {"customer": r.integers(0, rows // 5, n)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def resident(pid):
    """Bytes that a process has resident: all, and without those of mapped files."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    kib = {name: int(value) for name, value in re.findall(r"^(Rss\w+):\s+(\d+) kB$", text, re.M)}
    return sum(kib.values()) << 10, (sum(kib.values()) - kib.get("RssFile", 0)) << 10


def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += (task / "children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            pass  # a thread that has ended
    return found


def upload(program, file, unit, directory):
    """Uploads a file to a new server: seconds by the clock, seconds of processors, megabytes, and those without mapped files."""
    with tempfile.TemporaryDirectory(dir=directory) as data:
        before = os.times()
        process = subprocess.Popen([program, "serve", "--data", data + "/data", "--addr", "127.0.0.1:0", "--log", "json"], stderr=subprocess.PIPE, text=True)
        address = next(found[1] for line in process.stderr if (found := re.search(r'"addr":"([\d.:]+)"', line)))
        drain = threading.Thread(target=process.stderr.read)
        drain.start()
        peak, over = [0, 0], threading.Event()

        def watch():
            while not over.wait(0.005):
                now = [resident(pid) for pid in [process.pid, *children(process.pid)]]
                for i in range(2):
                    peak[i] = max(peak[i], sum(one[i] for one in now))

        watcher = threading.Thread(target=watch)
        watcher.start()
        connection = http.client.HTTPConnection(address, timeout=3600)
        headers = {"Authorization": "Bearer " + Path(data, "data/admin.key").read_text().strip(), "Content-Type": "application/vnd.apache.parquet", "Content-Length": str(file.stat().st_size)}
        begun = time.perf_counter()
        with file.open("rb") as body:
            connection.request("POST", "/v1/holdouts?name=uploaded" + unit, body, headers)
            reply = connection.getresponse()
            text = reply.read()
        took = time.perf_counter() - begun
        over.set()
        watcher.join()
        process.terminate()
        process.wait()
        drain.join()
        if reply.status != 201:
            raise SystemExit(text.decode())
        after = os.times()
        return took, after.children_user + after.children_system - before.children_user - before.children_system, peak[0] / 1e6, peak[1] / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--millions", default="1,3,10", help="of rows")
    parser.add_argument("--directory", help="of the file and of the servers' data; it should be on a disk")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=o.directory) as directory:
        for millions in map(int, o.millions.split(",")):
            file = Path(directory, "table.parquet")
            write(file, millions * 1_000_000)
            for unit, setting in UNITS.items():
                best = {}
                for _ in range(TURNS):
                    for program in o.programs:
                        got = upload(program, file, setting, directory)
                        best[program] = tuple(map(min, best.get(program, got), got))
                for program, (clock, processors, memory, own) in best.items():
                    first = best[o.programs[0]]
                    print(json.dumps({"rows": millions * 1_000_000, "unit": unit, "program": program, "seconds": round(clock, 2), "processors": round(processors, 2), "MB": round(memory), "own MB": round(own),
                                      "of the first": [round(a / b, 3) for a, b in zip((clock, processors, memory, own), first)]}), flush=True)


if __name__ == "__main__":
    main()
