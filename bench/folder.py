"""Makes a folder of Parquet files for bench/folder: python3 bench/folder.py DIR ROWS [COLUMNS], or one file of different rows: python3 bench/folder.py FILE.parquet ROWS [COLUMNS]

50 columns (20 booleans, 20 texts of 8 categories, 10 numbers), or as many as COLUMNS says, in files of a million rows (fewer of more columns). Ten files are different, the others are links to
them, so that 100 million rows take 230 MB of disk. Needs numpy and pyarrow.
"""

import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MILLION = 1_000_000
DISTINCT = 10


def table(rng, rows, columns):
    names, arrays = [], []
    for i in range(columns):
        kind = i % 5
        if kind < 2:
            arrays.append(pa.array(rng.random(rows) < 0.3))
        elif kind < 4:
            words = pa.array([f"category {k}" for k in range(8)])
            arrays.append(pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 8, rows, dtype=np.int8)), words))
        else:
            values = rng.integers(0, 1000, rows).astype(np.float64) / 8
            arrays.append(pa.array(values, mask=rng.random(rows) < 0.01))
        names.append(f"{'bool' if kind < 2 else 'text' if kind < 4 else 'number'}{i}")
    return pa.table(arrays, names=names)


def main():
    folder, rows = sys.argv[1], int(float(sys.argv[2]))
    columns = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    rng = np.random.default_rng(1)
    if folder.endswith(".parquet"):
        write(folder, rng, rows, columns)
        return
    os.makedirs(folder)
    per_file = MILLION * 50 // columns
    for i in range(-(-rows // per_file)):
        path = os.path.join(folder, f"part-{i:05d}.parquet")
        n = min(per_file, rows - i * per_file)
        if i >= DISTINCT and n == per_file:
            os.link(os.path.join(folder, f"part-{i % DISTINCT:05d}.parquet"), path)
            continue
        write(path, rng, n, columns)


def write(path, rng, rows, columns):
    with pq.ParquetWriter(path, table(rng, 1, columns).schema, compression="zstd") as out:
        step = min(max(250_000 * 50 // columns, 1000), MILLION)  # row groups of about 6 MB
        for at in range(0, rows, step):
            out.write_table(table(rng, min(step, rows - at), columns))


main()
