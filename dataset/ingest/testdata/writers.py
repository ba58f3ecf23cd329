"""Makes the files of the folder writers, each by the writer that its name begins with: python writers.py. Versions are in README.md."""
import datetime as dt
import os
from decimal import Decimal

import chdb
import duckdb
import fastparquet
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

D = os.path.join(os.path.dirname(os.path.abspath(__file__)), "writers", "")

# fastparquet: eight zeros behind the values of each data page of version 1, whatever the encoding
frame = pd.DataFrame({
    "i": [3, -1, 0, 0], "x": [0.5, -2.0, 0.0, 0.0], "none": [1.5, None, 0.0, 0.0], "s": ["b", "a", "b", ""],
    "nulls": ["y", None, "", None], "b": [True, False, True, False], "t": pd.to_datetime(["2026-01-01", None, "1970-01-01", "1970-01-01"]),
    "c": pd.Categorical(["lo", "hi", None, "lo"], categories=["lo", "mid", "hi"], ordered=True), "w": pd.array([7, None, 0, 0], dtype="Int64"),
})
for codec in (None, "GZIP"):
    fastparquet.write(D + f"fastparquet-{str(codec).lower()}.parquet", frame, compression=codec, object_encoding="utf8")
fastparquet.write(D + "fastparquet-bytes.parquet", pd.DataFrame({"i": [1, 2], "y": [b"yes", b"no"], "e": pd.Series([None, None], dtype=object)}),
                  object_encoding={"y": "bytes", "e": "bytes"})

# decimals that a 64-bit float does not hold
pq.write_table(pa.table({
    "price": pa.array([Decimal("12.50"), None, Decimal("0.1"), Decimal("-12345678901234567890.123456789012345678")], pa.decimal128(38, 18)),
    "id": pa.array([Decimal(2**63 + 1), None, Decimal(-7), Decimal(0)], pa.decimal128(38, 0)),
    "small": pa.array([Decimal(5), None, Decimal(-7), Decimal(2**53)], pa.decimal128(38, 0)),
    "wide": pa.array([Decimal("1e70"), None, Decimal("-0.25"), Decimal("0")], pa.decimal256(76, 4)),
    "cents": pa.array([Decimal("90071992547409.93"), None, Decimal("0.01"), Decimal("-0.01")], pa.decimal128(18, 2)),
}), D + "pyarrow-decimals.parquet")
duckdb.sql(f"copy (select * from (values (900719925474099.31::decimal(18,2), 9007199254740993::decimal(18,0)), (1.25, 1)) v(d, id)) to '{D}duckdb-decimals.parquet' (format parquet)")

# infinite times
times = ("timestamp", "timestamptz", "timestamp_ms", "timestamp_ns", "date")
rows = ", ".join("(" + ", ".join(f"{v}::{t}" for t in times) + ")" for v in ("'infinity'", "'2026-01-01'", "'-infinity'", "null"))
duckdb.sql(f"copy (select * from (values {rows}) v(t, tz, ms, ns, d)) to '{D}duckdb-infinity.parquet' (format parquet)")
pq.write_table(pa.table({"ns": pa.array([2**63 - 1, 0, 1, None], pa.timestamp("ns"))}), D + "pyarrow-last-ns.parquet")
pq.write_table(pa.table({"i": [1, 2], "far": pa.array([2**62, 0], pa.timestamp("ms"))}), D + "pyarrow-far.parquet")

# types of which no column is made
duckdb.sql(f"""copy (select 1 as i, interval 1 day as wait, (0.5)::double::variant as v, 'a'::blob as bl, [1] as l, {{'a': 1}} as st, map {{'k': 1}} as m)
 to '{D}duckdb-skipped.parquet' (format parquet)""")
duckdb.sql(f"copy (select 1 as i, 'POINT(1 2)'::geometry as place) to '{D}duckdb-geometry.parquet' (format parquet)")
pl.concat(2 * [pl.DataFrame({"i": [1, 2], "id": pl.Series([10**20, 1], dtype=pl.Int128), "u": pl.Series([10**20, 1], dtype=pl.UInt128), "bin": [b"a", b"b"],
              "l": [[1], [2]], "a": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2)), "s": [{"a": 1}, {"a": 2}], "n": pl.Series([None, None])})]).write_parquet(D + "polars-skipped.parquet")
chdb.query(f"""select number as i, toInt128(number) as id, toUInt256(number) as u, toIPv6('::1') as ip, toFixedString('ab', 5) as code
 from numbers(2) into outfile '{D}chdb-skipped.parquet' truncate format Parquet settings output_format_parquet_fixed_string_as_fixed_byte_array = 1""")
pd.concat(2 * [pd.DataFrame({"i": [1, 2], "none": pd.Series([None, None], dtype=object), "list": [[1], [2]], "dict": [{"a": 1}, {"a": 2}], "raw": [b"a", b"b"],
              "age": pd.IntervalIndex.from_breaks([0, 1, 2])})], ignore_index=True).to_parquet(D + "pandas-skipped.parquet")

# units and orders that only the writer's own notes know
pd.DataFrame({"i": [1, 2, 3], "month": pd.period_range("2026-01", periods=3, freq="M"), "day": pd.period_range("2026-01-01", periods=3, freq="D"),
              "level": pd.Categorical(["low", None, "high"], categories=["low", "mid", "high"], ordered=True),
              "plain": pd.Categorical(["b", "a", None], categories=["b", "a"]),
              "start": [dt.time(12), None, dt.time(0, 0, 1)], "wait": pd.to_timedelta([1, 2, None], unit="s")},
             index=[4, 5, 7]).to_parquet(D + "pandas-notes.parquet")
pl.DataFrame({"i": [1, 2, 3], "level": pl.Series(["low", None, "high"], dtype=pl.Enum(["low", "mid", "high"])),
              "cat": pl.Series(["b", None, "a"], dtype=pl.Categorical), "start": [dt.time(12), None, dt.time(0, 0, 1)]}).write_parquet(D + "polars-notes.parquet")

# a footer whose statistics are not those of its pages: each end, and the number of nulls, is another one
path = D + "../lying-statistics.parquet"
pq.write_table(pa.table({"high": pa.array([1000001, 1000007] * 30, pa.int32()), "low": pa.array([2000003, 2000009] * 30, pa.int64()),
                         "nulls": pa.array(([None] * 3 + [1]) * 15, pa.int32()), "right": pa.array([3000017, 3000029] * 30, pa.int32())}),
               path, store_schema=False, compression="none")
with open(path, "r+b") as f:
    data = f.read()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:]
    for old, new in ((1000007).to_bytes(4, "little"), (1000006).to_bytes(4, "little")), ((2000003).to_bytes(8, "little"), (2000005).to_bytes(8, "little")), (b"\x16\x5a", b"\x16\x58"):
        assert old in footer
        footer = footer.replace(old, new)
    f.seek(start)
    f.write(footer)

# parts of a table that was split before: identifiers beyond 2^53 in one, no value of a column in the other
def given(name, id, note):
    pd.DataFrame({"i": range(8), "id": id, "note": pd.Series(note, dtype=object)}).to_parquet(D + name + ".parquet")


given("given-wide", [2**53 + 1 + k for k in range(8)], ["seen", "new"] * 4)
given("given-empty", list(range(8)), [None] * 8)
given("given-double", [k / 2 for k in range(8)], ["seen", "new"] * 4)
