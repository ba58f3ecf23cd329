"""Whether an analyst's clock tells what is held out: replies to questions over HTTP, timed at the client.

Three comparisons, each of two groups of questions that differ in held-out rows alone, asked in turns in a random order:

    presence   a text that is held out, or one that is nowhere, guards an expensive expression
    truth      a comparison holds in no row, in half of them, or in all
    texts      the held-out texts are short and few, or longer and many, within one public shape (docs/GUARANTEES.md)

For each pair the Mann-Whitney and the Kolmogorov-Smirnov test say whether the two groups of times are told apart at the 1% level. Other work
on the machine hides differences: run it on a quiet one, and read the medians too. Loopback only.

    bench/clock.py PROGRAM [--requests 2000] [--rows 20000] [--answer-time soon]
"""

import argparse
import http.client
import io
import json
import random
import re
import statistics
import subprocess
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

HEAVY = " + ".join(f"log(x + {k}.5) * exp(x / {k}.0)" for k in range(2, 8))


class Server:
    def __init__(self, program, directory, answer_time):
        command = [program, "serve", "--any-filesystem", "--data", directory, "--addr", "127.0.0.1:0", "--log", "json"]
        if answer_time != "soon":  # so that older programs can be measured beside
            command += ["--answer-time", answer_time]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r'"addr":"127\.0\.0\.1:(\d+)"', line):
                break
        else:
            raise SystemExit("the server did not start")
        self.port = int(found[1])
        self.key = open(directory + "/admin.key").read().strip()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.log = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=subprocess.DEVNULL)  # so that its pipe is never full

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.wait(60)

    def post(self, path, body, kind="application/json"):
        self.connection.request("POST", path, body, {"Authorization": "Bearer " + self.key, "Content-Type": kind})
        reply = self.connection.getresponse()
        return reply.status, reply.read()

    def upload(self, name, training, holdout):
        boundary, parts = "clock-boundary", []
        for part, table in (("training", training), ("holdout", holdout)):
            file = io.BytesIO()
            pq.write_table(table, file)
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="{part}"; filename="{part}.parquet"\r\nContent-Type: application/vnd.apache.parquet\r\n\r\n'
            parts.append(head.encode() + file.getvalue() + b"\r\n")
        body = b"".join(parts) + f"--{boundary}--\r\n".encode()
        status, reply = self.post(f"/v1/holdouts?name={name}&split=given&mechanism=gaussian&questions=20000&overlap=accepted", body, "multipart/form-data; boundary=" + boundary)
        if status != 201:
            raise SystemExit(reply.decode())
        card = json.loads(reply)
        print(name, "dictionary", {c["name"]: c["dictionary"] for c in card["columns"] if c.get("dictionary")})
        return card["id"]

    def ask(self, holdout, query):
        body = json.dumps(query)
        begun = time.perf_counter_ns()
        status, reply = self.post(f"/v1/holdouts/{holdout}/queries", body)
        took = time.perf_counter_ns() - begun
        if status != 200 or json.loads(reply).get("replayed"):
            raise SystemExit(reply.decode())
        return took / 1e6


def table(rows, seed, texts, ids):
    r = np.random.default_rng(seed)
    return pa.table({"x": r.random(rows), "id": pa.array(ids), "t": pa.array([texts[k] for k in r.integers(0, len(texts), rows)])})


def compare(name, groups):
    """Prints each pair of groups of times in milliseconds, and whether they are told apart."""
    names, apart = sorted(groups), False
    for i, a in enumerate(names):
        for b in names[i + 1:]:
            p = stats.mannwhitneyu(groups[a], groups[b]).pvalue, stats.ks_2samp(groups[a], groups[b]).pvalue
            found = "told apart" if min(p) < 0.005 else "not told apart"  # two tests share the 1%
            apart = apart or min(p) < 0.005
            middle = [f"{k} {statistics.median(groups[k]):.3f} ms (least {min(groups[k]):.3f})" for k in (a, b)]
            print(f"{name}: {', '.join(middle)}; Mann-Whitney p={p[0]:.3g}, Kolmogorov-Smirnov p={p[1]:.3g}: {found}", flush=True)
    return apart


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--requests", type=int, default=2000, help="of each group")
    parser.add_argument("--rows", type=int, default=20000, help="held out")
    parser.add_argument("--answer-time", default="soon")
    o = parser.parse_args()
    n, rows = o.requests, o.rows
    with tempfile.TemporaryDirectory() as directory:
        server = Server(o.program, directory + "/data", o.answer_time)
        try:
            few, many = [f"{k:04d}" for k in range(1100)], [f"{k:04d}" + "m" * 9 for k in range(1500)]
            short = server.upload("short", table(rows, 1, ["a training text"], [f"t{k}" for k in range(rows)]), table(rows, 2, few + ["p" * 40000], [f"h{k}" for k in range(rows)]))
            long = server.upload("long", table(rows, 3, ["a training text"], [f"t{k}" for k in range(rows)]), table(rows, 2, many + ["p" * 40000], [f"h{k}" for k in range(rows)]))
            sequence = iter(range(10**9))

            def nonce():
                return f"x > {-1 - next(sequence) * 1e-7:.7f}"  # always true; makes each question a new one

            def run(name, questions):
                groups, order = {k: [] for k in questions}, [k for k in questions for _ in range(n)]
                random.Random(1).shuffle(order)
                for k in order:
                    groups[k].append(server.ask(*questions[k]()))
                return compare(name, groups)

            picks = random.Random(2)

            def guarded(ids):
                return lambda: (short, {"type": "mean", "of": f"id == '{ids}{picks.randrange(rows)}' && {nonce()} ? {HEAVY} : 0.0", "range": [0, 100]})

            def truth(threshold):
                return lambda: (short, {"type": "mean", "of": f"x > {threshold} && {nonce()} ? {HEAVY} : 0.0", "range": [0, 100]})

            def part(holdout):
                return lambda: (holdout, {"type": "fraction", "of": f"(t.contains('{picks.randrange(1000):04d}') || t.endsWith('mm')) && {nonce()}"})

            apart = [run("presence", {"there": guarded("h"), "nowhere": guarded("n")}),
                     run("truth", {"0%": truth(2.0), "50%": truth(0.5), "100%": truth(-1.0)}),
                     run("texts", {"short": part(short), "long": part(long)})]
            print("told apart" if any(apart) else "nothing is told apart")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
