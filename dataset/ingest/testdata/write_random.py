"""Writes random Parquet files by pyarrow in all encodings, and beside each its values as JSON: python write_random.py FOLDER FILES SEED.

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

folder, files, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
r = random.Random(seed)
epoch = dt.date(1970, 1, 1)


def integer(bits, signed):
    low, high = (-2**(bits - 1), 2**(bits - 1) - 1) if signed else (0, 2**bits - 1)
    low, high = max(low, -2**53), min(high, 2**53)
    return lambda: r.choice([low, high, r.randint(low, high), r.randint(max(low, -5), 5), r.randint(max(low, -5), 5)])


integers = ['PLAIN', 'DELTA_BINARY_PACKED', 'BYTE_STREAM_SPLIT']
floats = ['PLAIN', 'BYTE_STREAM_SPLIT']
fixed = ['PLAIN', 'BYTE_STREAM_SPLIT', 'DELTA_BYTE_ARRAY']
# Of each kind: pyarrow's type, a value, what it is read as, and the encodings beside the dictionary.
kinds = {f'{"i" if signed else "u"}{bits}': (getattr(pa, f'{"" if signed else "u"}int{bits}')(), integer(bits, signed), float, integers)
         for bits in (8, 16, 32, 64) for signed in (True, False)}
kinds |= {
    'f16': (pa.float16(), lambda: np.float16(r.gauss(0, 100)), float, floats),
    'f32': (pa.float32(), lambda: float(np.float32(r.gauss(0, 1))), float, floats),
    'f64': (pa.float64(), lambda: r.gauss(0, 1e10), float, floats),
    'b': (pa.bool_(), lambda: r.random() < 0.5, bool, ['PLAIN', 'RLE']),
    's': (pa.string(), lambda: ''.join(r.choice('abcdé') for _ in range(r.randint(0, 12))), str, ['PLAIN', 'DELTA_LENGTH_BYTE_ARRAY', 'DELTA_BYTE_ARRAY']),
    'd': (pa.date32(), lambda: epoch + dt.timedelta(r.randint(-30000, 60000)), lambda v: (v - epoch).days * 86400e6, ['PLAIN', 'DELTA_BINARY_PACKED']),
    'ts': (pa.timestamp('us'), lambda: r.randint(-10**15, 10**15), float, integers),
    'ns': (pa.timestamp('ns'), lambda: r.randint(-10**18, 10**18), lambda v: float(v // 1000), integers),
    'dec': (pa.decimal128(12, 2), lambda: decimal.Decimal(r.randint(-10**8, 10**8)) / 100, float, fixed),
    'uuid': (pa.uuid(), lambda: bytes(r.randrange(256) for _ in range(16)), lambda v: str(uuid.UUID(bytes=v)), fixed),
}


def column(kind, rows):
    of, value = kinds[kind][:2]
    pool = [value() for _ in range(r.choice([1, 2, 3, 40, 300]))] if r.random() < 0.6 else None
    null = r.choice([0, 0, 0.1, 0.5, 0.99, 1])
    values = [None if r.random() < null else r.choice(pool) if pool else value() for _ in range(rows)]
    if kind == 'uuid':
        return values, pa.ExtensionArray.from_storage(of, pa.array(values, pa.binary(16)))
    return values, pa.array(values, of)


for i in range(files):
    rows = r.choice([1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 300, 1000, 3000])
    arrays, fields, truth, encodings = [], [], {}, {}
    for n, kind in enumerate(r.sample(list(kinds), r.randint(2, 6))):
        name = f'{kind}-{n}'
        values, array = column(kind, rows)
        arrays.append(array)
        fields.append(pa.field(name, array.type, nullable=array.null_count > 0 or r.random() < 0.5))
        read = kinds[kind][2]
        truth[name] = [None if v is None else read(v) for v in values]
        encodings[name] = r.choice(kinds[kind][3])
    options = {'use_dictionary': False, 'column_encoding': encodings}
    if r.random() < 0.4:
        options = {'use_dictionary': True, 'dictionary_pagesize_limit': r.choice([50, 1 << 20])}
    path = os.path.join(folder, f'{i:03}')
    pq.write_table(
        pa.table(arrays, schema=pa.schema(fields)), path + '.parquet',
        compression=r.choice(['none', 'snappy', 'gzip', 'brotli', 'zstd', 'lz4']), data_page_version=r.choice(['1.0', '2.0']),
        data_page_size=r.choice([1, 100, 1000, 1 << 20]), row_group_size=max(1, rows // r.choice([1, 3])), write_batch_size=r.choice([16, 100, 1024]),
        write_page_checksum=r.random() < 0.3, store_schema=r.random() < 0.7, **options)
    with open(path + '.json', 'w') as out:
        json.dump(truth, out)
