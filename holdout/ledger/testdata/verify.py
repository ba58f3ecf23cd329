"""Checks an export: heads, sums, answers and releases. Written from docs/format/ledger.md, with the standard library only: verify.py EXPORT"""

import hashlib, json, struct, sys

def number(n): return struct.pack(">q", n)
def text(s): return number(len(s.encode())) + s.encode()
def sha256(b): return hashlib.sha256(b).digest()
def check(ok, what):
    if not ok: sys.exit(f"line {line}: {what}")

line = 1
lines = open(sys.argv[1], encoding="utf-8", newline="\n").read().split("\n")
header = json.loads(lines[0])
check(header["format"] == "holdoutd-ledger/2", "not an export of version 2")
limits, prev, seen, releases = header["limits"], bytes(32), set(), []
spent = {meter: 0 for meter in limits}
for line, raw in enumerate(lines[1:-1], start=2):
    e = json.loads(raw)
    body, place = e["body"], f',"ledger":{{"seq":{line - 2},"head":"{e["head"]}"}}}}'
    check(e["version"] == 2 and e["seq"] == line - 2 and body.endswith(place), "version, body or place")
    check(e["debit"].keys() == e["spent"].keys() == limits.keys(), "other meters than the limits'")
    core = body[:-len(place)] + "}"
    prev = sha256(b"holdoutd ledger entry 2\n" + prev + number(e["seq"])
                  + b"".join(text(e[k]) for k in ("kind", "time", "query", "canonical", "principal"))
                  + number(len(limits))
                  + b"".join(text(m) + number(e["debit"][m]) + number(e["spent"][m]) for m in sorted(limits)) + sha256(core.encode()))
    check(e["head"] == "sha256:" + prev.hex(), "head does not follow")
    if e["seq"] == 0:
        facts = {k: header[k] for k in ("holdout", "created", "digest", "limits")}
        facts["public"] = "sha256:" + sha256(header["public"].encode()).hex()
        check(e["kind"] == "genesis" and json.loads(core) == facts, "genesis and header disagree")
    for meter in limits:
        spent[meter] += e["debit"][meter]
        check(e["debit"][meter] >= 0 and spent[meter] == e["spent"][meter] <= limits[meter], f"{meter} do not add up")
    if e["kind"] == "answer":
        check(e["query"] not in seen, "answered twice")
        seen.add(e["query"])
    if e["kind"] == "release":
        said = json.loads(e["canonical"])
        releases.append((e["query"], round(said["epsilon"] * 1e6), round(said["release_epsilon"] * 1e6)))
        names, spends, most = zip(*releases)
        check(len(set(names)) == len(names) and len(set(most)) == 1 and sum(spends) <= most[0], "releases do not add up")
check(header["entries"] == len(lines) - 2 and header["head"] == "sha256:" + prev.hex() and header["spent"] == spent,
      "the header is about another chain")
print(f"{len(seen)} answers, {spent} of {limits} spent, head {header['head']}")
