"""Makes the Parquet fixtures of this folder: python make.py PATH_TO_FLIGHTS_3M. See README.md."""
import datetime as dt
import decimal
import os
import sys
import uuid

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

D=os.path.join(os.path.dirname(os.path.abspath(__file__)),'')
f=pq.read_table(sys.argv[1]).to_pandas()
idx=np.sort(np.random.default_rng(20260101).choice(len(f),20000,replace=False))
s=f.iloc[idx].reset_index(drop=True)
pl.from_pandas(s).write_parquet(D+'flights-20k.parquet',compression='zstd')
# every type, by pyarrow
t=pa.table({
 'i8':pa.array([-128,None,127],pa.int8()),'i16':pa.array([-32768,None,32767],pa.int16()),'i32':pa.array([-2**31,None,2**31-1],pa.int32()),
 'i64':pa.array([-2**53,None,2**53],pa.int64()),'wide':pa.array([-2**63,None,2**63-1],pa.int64()),
 'u8':pa.array([0,None,255],pa.uint8()),'u16':pa.array([0,None,65535],pa.uint16()),'u32':pa.array([0,None,2**32-1],pa.uint32()),
 'u64':pa.array([0,None,2**53],pa.uint64()),'uwide':pa.array([0,None,2**64-1],pa.uint64()),
 'f16':pa.array([np.float16(-1.5),None,np.float16(65504)],pa.float16()),'f32':pa.array([-0.1,None,3.4e38],pa.float32()),'f64':pa.array([-0.0,None,float('inf')],pa.float64()),
 'b':pa.array([True,None,False]),'s':pa.array(['é',None,''],pa.string()),'ls':pa.array(['x',None,'y'],pa.large_string()),
 'cat':pa.array(['b',None,'a']).dictionary_encode(),
 'd':pa.array([dt.date(1969,12,31),None,dt.date(2024,2,29)]),
 'ms':pa.array([-1,None,1700000000123],pa.timestamp('ms')),'us':pa.array([-1,None,1700000000123456],pa.timestamp('us')),'ns':pa.array([-1,None,1700000000123456789],pa.timestamp('ns')),
 'utc':pa.array([-1,None,1700000000123456],pa.timestamp('us','Europe/Berlin')),
 't32':pa.array([1500,None,86399999],pa.time32('ms')),'t64':pa.array([1500000,None,86399999999],pa.time64('us')),
 'dec':pa.array([decimal.Decimal('-1.25'),None,decimal.Decimal('1234567.89')],pa.decimal128(9,2)),
 'dec38':pa.array([decimal.Decimal('-90071992547.40992'),None,decimal.Decimal('0.00001')],pa.decimal128(38,5)),
 'bin':pa.array([b'\x00\xff',None,b'a'],pa.binary()),'list':pa.array([[1],None,[2,3]],pa.list_(pa.int64())),
 'struct':pa.array([{'a':1,'b':'x'},None,{'a':2,'b':'y'}]),'null':pa.nulls(3),
})
for v in ('1.0','2.0'):
  for c in ('none','snappy','gzip','brotli','zstd','lz4'):
    pq.write_table(t,D+f'types-pyarrow-{c}-v{v[0]}.parquet',compression=c,data_page_version=v,version='2.6',store_schema=False,use_dictionary=(v=='1.0'))
pq.write_table(t.select(['us','ns','s']),D+'int96.parquet',use_deprecated_int96_timestamps=True,store_schema=False)
e=pa.table({'a':pa.array(np.arange(500)*3-700),'x':pa.array(np.arange(500)/7.0),'s':pa.array([f'key{i//3:04d}' for i in range(500)])})
pq.write_table(e,D+'encodings.parquet',use_dictionary=False,column_encoding={'a':'DELTA_BINARY_PACKED','x':'BYTE_STREAM_SPLIT','s':'DELTA_BYTE_ARRAY'},data_page_version='2.0',store_schema=False,compression='none')
pl.DataFrame({'a':[1,None,3],'s':['x',None,'y'],'b':[True,None,False],'c':pl.Series(['p',None,'q'],dtype=pl.Categorical),'d':[dt.date(2020,1,1),None,dt.date(1950,6,1)],'t':[dt.datetime(2020,1,1,1,2,3,456789),None,dt.datetime(1960,1,1)],'l':[[1],None,[2]],'tm':[dt.time(1,2,3),None,dt.time(23,59,59)]}).write_parquet(D+'polars.parquet',compression='lz4')
duckdb.sql(f"""copy (select * from (values (1::tinyint,1::utinyint,1::hugeint,1.5::decimal(4,1),'{uuid.UUID(int=1)}'::uuid,timestamp '2020-01-01 00:00:00.5',timestamptz '2020-01-01 00:00:00+01',interval 1 day,'a'::blob,'m'::enum('l','m'),'{{}}'::json,time '01:02:03.5'),(null,null,null,null,null,null,null,null,null,null,null,null)) v(ti,ut,hu,de,uu,ts,tz,iv,bl,en,js,tm)) to '{D}duckdb.parquet' (format parquet, compression zstd)""")
duckdb.sql(f"copy (select 7::bigint as a from range(200000000)) to '{D}bomb.parquet' (format parquet, compression zstd, row_group_size 200000000)")
# checksums of pages, a duration, infinities
pq.write_table(pa.table({'n':pa.array([1,2,None,4,5,6,7,8]*4),'s':pa.array(['a','b',None,'a','c','a','b','a']*4),'b':pa.array([True,None,False,True]*8),
 'd':pa.array([1,None,3,4]*8,pa.duration('us')),'x':pa.array([1.5,float('inf'),None,float('-inf')]*8)}),
 D+'checksums.parquet',write_page_checksum=True,compression='snappy',use_dictionary=['s'],write_statistics=False)
# little files that need much memory: 240 MB of long texts in each of three columns, and one text of 250 MiB
long={f't{q}':[f'{q}'+'z'*60000+f'{i:08d}' for i in range(4000)] for q in range(3)}
pq.write_table(pa.table(long),D+'many-long-texts.parquet',compression='zstd',use_dictionary=False,column_encoding={c:'DELTA_BYTE_ARRAY' for c in long},store_schema=False,write_statistics=False)
pq.write_table(pa.table({'t':['z'*(250<<20)]*2}),D+'one-long-text.parquet',compression='zstd',use_dictionary=True,dictionary_pagesize_limit=1<<30,store_schema=False,write_statistics=False)
