"""Writes random Parquet files in all encodings, and beside each its values as JSON: python write_random.py FOLDER FILES SEED WRITER.

WRITER is pyarrow, polars or duckdb; the latter two write with fewer types and leave the encodings to themselves.
Values are as the reader of holdoutd gives them: numbers, booleans, texts, null; times are microseconds since 1970. Texts stand as they are.
"""
import datetime as dt
import decimal
import json
import math
import os
import random
import sys
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

folder, files, seed, writer = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
r = random.Random(seed)
epoch = dt.date(1970, 1, 1)


def integer(bits, signed, exact=True):
    low, high = (-2**(bits - 1), 2**(bits - 1) - 1) if signed else (0, 2**bits - 1)
    if exact:
        low, high = max(low, -2**53), min(high, 2**53)
    return lambda: r.choice([low, high, r.randint(low, high), r.randint(max(low, -5), 5), r.randint(max(low, -5), 5)])


def text():
    return ''.join(r.choice('abcdé') for _ in range(r.choice([0, 1, 5, 12, 12, 300])))


def number(v):
    """What is no number is read as null."""
    return None if math.isnan(v) else float(v)


def exact(digits):
    return lambda: r.choice([r.randint(-10**min(digits, 15), 10**min(digits, 15)), r.randint(-9, 9)])


def decimals(of, digits, scale):
    """Within 2^53 units, which is what is read, and within the digits of the type."""
    draw = exact(digits)
    return of(digits, scale), lambda: decimal.Decimal(max(-10**digits + 1, min(10**digits - 1, draw()))).scaleb(-scale), float, fixed


def stamp(unit, per, zone=None):
    """A timestamp with that many units in a second, floored to microseconds."""
    span = 4 * 10**9 * per if per < 10**9 else 9 * 10**18
    return pa.timestamp(unit, zone), lambda: r.choice([r.randint(-span, span), r.randint(-3, 3)]), lambda v: float(v * 10**6 // per), integers


integers = ['PLAIN', 'DELTA_BINARY_PACKED', 'BYTE_STREAM_SPLIT']
floats = ['PLAIN', 'BYTE_STREAM_SPLIT']
fixed = ['PLAIN', 'BYTE_STREAM_SPLIT', 'DELTA_BYTE_ARRAY']
texts = ['PLAIN', 'DELTA_LENGTH_BYTE_ARRAY', 'DELTA_BYTE_ARRAY']
# Of each kind: pyarrow's type, a value, what it is read as, and the encodings beside the dictionary.
kinds = {f'{"i" if signed else "u"}{bits}': (getattr(pa, f'{"" if signed else "u"}int{bits}')(), integer(bits, signed), float, integers)
         for bits in (8, 16, 32, 64) for signed in (True, False)}
kinds |= {
    'f16': (pa.float16(), lambda: np.float16(r.choice([r.gauss(0, 100), 2**-24, 65504, -0.0])), number, floats),
    'f32': (pa.float32(), lambda: float(np.float32(r.gauss(0, 1))), number, floats),
    'f64': (pa.float64(), lambda: r.choice([r.gauss(0, 1e10), 5e-324, 1.7e308, -0.0, math.nan]), number, floats),
    'b': (pa.bool_(), lambda: r.random() < 0.5, bool, ['PLAIN', 'RLE']),
    's': (pa.string(), text, str, texts),
    'd': (pa.date32(), lambda: epoch + dt.timedelta(r.randint(-30000, 60000)), lambda v: (v - epoch).days * 86400e6, ['PLAIN', 'DELTA_BINARY_PACKED']),
    'ts': stamp('us', 10**6),
    'ms': stamp('ms', 10**3),
    'ns': stamp('ns', 10**9),
    'utc': stamp('us', 10**6, 'Europe/Berlin'),
    'dec': decimals(pa.decimal128, 12, 2),
    'uuid': (pa.uuid(), lambda: bytes(r.randrange(256) for _ in range(16)), lambda v: str(uuid.UUID(bytes=v)), fixed),
}
if writer == 'pyarrow':  # the others lack these, or mean something else by them
    kinds |= {
        # One value beyond 2^53 turns the column to texts, so the first value of the column is one, see column.
        'wide': (pa.int64(), integer(64, True, False), str, integers),
        'uwide': (pa.uint64(), integer(64, False, False), str, integers),
        'ls': (pa.large_string(), text, str, texts),
        'view': (pa.string_view(), text, str, texts),
        'json': (pa.json_(), lambda: json.dumps(r.randint(0, 50)), str, texts),
        'cat': (pa.dictionary(pa.int32(), pa.string()), text, str, texts),
        't32': (pa.time32('ms'), lambda: r.randrange(86400000), lambda v: v / 1e3, integers),
        't64': (pa.time64('us'), lambda: r.randrange(86400 * 10**6), lambda v: v / 1e6, integers),
        'tn': (pa.time64('ns'), lambda: r.randrange(86400 * 10**9), lambda v: v / 1e9, integers),
        'dur': (pa.duration('ms'), lambda: r.randint(-10**12, 10**12), float, integers),
        'd64': (pa.date64(), lambda: 86400000 * r.randint(-30000, 60000), lambda v: v * 1e3, ['PLAIN', 'DELTA_BINARY_PACKED']),
    }
    # Every number of bytes that a decimal may have.
    kinds |= {f'dec{digits}': decimals(pa.decimal128 if digits <= 38 else pa.decimal256, digits, r.randint(0, digits)) for digits in (*range(1, 39), 39, 57, 76)}
else:  # these write decimals as they like; of halves and nanoseconds they know less
    for name in ('f16', 'uuid', 'ns'):
        del kinds[name]


def column(kind, rows):
    of, value = kinds[kind][:2]
    pool = [value() for _ in range(r.choice([1, 2, 3, 40, 300]))] if r.random() < 0.6 else None
    null = r.choice([0, 0, 0.1, 0.5, 0.99, 1])
    values = [None if r.random() < null else r.choice(pool) if pool else value() for _ in range(rows)]
    if r.random() < 0.3:  # blocks of nulls end where pages do
        start = r.randrange(rows)
        values[start:start + 100] = [None] * len(values[start:start + 100])
    if kind in ('wide', 'uwide'):
        values[0] = 2**63 - 1
    if kind in ('uuid', 'json'):
        return values, pa.ExtensionArray.from_storage(of, pa.array(values, of.storage_type))
    return values, pa.array(values, of)


def write_pyarrow(table, path, rows, encodings):
    options = {'use_dictionary': False, 'column_encoding': encodings}
    if r.random() < 0.5:
        options = {'use_dictionary': True, 'dictionary_pagesize_limit': r.choice([50, 1000, 1 << 20])}
    if r.random() < 0.2 and not options['use_dictionary']:
        # Decimals as integers know the encodings of integers alone.
        options = {'use_dictionary': False, 'store_decimal_as_integer': True}
    with pq.ParquetWriter(
            path, table.schema, compression=r.choice(['none', 'snappy', 'gzip', 'brotli', 'zstd', 'lz4']), data_page_version=r.choice(['1.0', '2.0']),
            version='2.6' if 'ns' in str(table.schema) else r.choice(['1.0', '2.4', '2.6']),
            data_page_size=r.choice([1, 100, 1000, 1 << 20, 1 << 20]), write_batch_size=r.choice([16, 100, 1024]), write_statistics=r.random() < 0.7,
            write_page_index=r.random() < 0.3, write_page_checksum=r.random() < 0.3, store_schema=r.random() < 0.7, **options) as out:
        if r.random() < 0.3:
            out.write_table(table[:0])  # a row group without rows
        out.write_table(table, row_group_size=max(1, rows // r.choice([1, 3, 50])))
        if r.random() < 0.1:
            out.write_table(table[:0])


sized = [kind for kind in kinds if kind[:3] == 'dec' and kind[3:]]  # which are many
common = [kind for kind in kinds if kind not in sized]

for i in range(files):
    rows = r.choice([1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 300, 1000, 3000, 20000])
    arrays, fields, truth, encodings = [], [], {}, {}
    for n, kind in enumerate(r.sample(common + r.sample(sized, min(3, len(sized))), r.randint(2, 6))):
        name = f'{kind}-{n}'
        values, array = column(kind, rows)
        arrays.append(array)
        fields.append(pa.field(name, array.type, nullable=array.null_count > 0 or r.random() < 0.5))
        read = kinds[kind][2]
        truth[name] = [None if v is None else read(v) for v in values]
        encodings[name] = r.choice(kinds[kind][3])
    path = os.path.join(folder, f'{i:03}')
    table = pa.table(arrays, schema=pa.schema(fields))
    if writer == 'pyarrow':
        nested = r.random() < 0.2
        if nested:  # which is skipped, and the columns beside it are read
            lists = pa.array([None if r.random() < 0.1 else [{'a': k, 'b': 'x' * k} for k in range(r.randint(0, 3))] for _ in range(rows)])
            table = table.add_column(r.randrange(len(fields) + 1), 'nested', lists)
            encodings |= {'nested.list.element.a': 'PLAIN', 'nested.list.element.b': 'PLAIN'}
        write_pyarrow(table, path + '.parquet', rows, encodings)
    elif writer == 'polars':
        import polars as pl
        pl.from_arrow(table).write_parquet(
            path + '.parquet', compression=r.choice(['uncompressed', 'snappy', 'gzip', 'brotli', 'zstd', 'lz4']), statistics=r.random() < 0.5,
            row_group_size=max(1, rows // r.choice([1, 3])), data_page_size=r.choice([64, 1000, 1 << 20]))
    else:
        import duckdb
        with duckdb.connect() as db:
            db.execute("set timezone = 'UTC'")
            db.register('t', table)
            db.execute(f"copy t to '{path}.parquet' (format parquet, parquet_version {r.choice(['v1', 'v2'])}, row_group_size {max(1, rows // r.choice([1, 3]))},"
                       f" dictionary_size_limit {r.choice([1, 100, 100000])}, compression {r.choice(['uncompressed', 'snappy', 'gzip', 'zstd', 'brotli', 'lz4_raw'])})")
    with open(path + '.json', 'w') as out:
        json.dump(truth, out)
