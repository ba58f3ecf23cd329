"""Tables on their way to the server and back: pandas and polars frames, pyarrow tables, Parquet files."""

from __future__ import annotations

import io
import os
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast
from urllib.parse import unquote

from ._wire import Body

Kind = Literal["pandas", "polars", "pyarrow"]
KINDS: tuple[Kind, ...] = ("pandas", "polars", "pyarrow")

# Up to here a frame's Parquet bytes stay in memory; a larger one goes through a temporary file.
IN_MEMORY = 64 << 20


def kind_of(table: Any) -> Kind | None:
    """Which library's table it is; None for a path or an open file."""
    module = type(table).__module__.split(".")[0]
    return next((k for k in KINDS if k == module), None)


def body(table: Any) -> Body:
    """The table as Parquet. Paths and files are sent as they are; a folder of part files as one table."""
    kind = kind_of(table)
    if kind is not None:
        file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # _kept closes it
        _write(table, kind, cast(BinaryIO, file))
        size = file.tell()
        return _kept(lambda: _rewound(cast(BinaryIO, file)), size)
    if isinstance(table, (bytes, bytearray)):
        return Body(lambda: io.BytesIO(table), len(table))
    if isinstance(table, (str, os.PathLike)):
        path = Path(table)
        if path.is_dir():
            return _folder(path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        return _kept(lambda: path.open("rb"), path.stat().st_size)
    if hasattr(table, "read") and hasattr(table, "seek"):
        return Body(lambda: _rewound(table))
    raise TypeError(
        f"{type(table).__name__} is no table: give a pandas or polars DataFrame, a pyarrow Table, or the path of a Parquet file"
    )


# What the directory of a missing partition value is called, by Hive and by all after it.
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def part_files(folder: Path) -> dict[Path, dict[str, str | None]]:
    """The part files of one table below a folder, in order, each with the partition values that its directories name (region=a)."""
    older = "whose folder has rows of older versions too; give the frame of one"
    if (folder / "_delta_log").is_dir():
        raise ValueError(f"{folder} is a Delta table, {older}: deltalake.DeltaTable({str(folder)!r}).to_pandas()")
    if (folder / ".hoodie").is_dir():
        raise ValueError(f'{folder} is a Hudi table, {older}, in Spark: spark.read.format("hudi").load({str(folder)!r}).toPandas()')
    versions = sorted((folder / "metadata").glob("*.metadata.json"), key=lambda file: (len(file.name), file.name))
    if versions:
        raise ValueError(f"{folder} is an Iceberg table, {older}: polars.scan_iceberg({str(versions[-1])!r}).collect()")
    files: dict[Path, dict[str, str | None]] = {}
    for file in sorted(folder.rglob("*.parquet")):
        directories = file.relative_to(folder).parts[:-1]
        if file.is_file() and not any(part.startswith(("_", ".")) for part in (*directories, file.name)):
            named = (d.split("=", 1) for d in directories if "=" in d)
            files[file] = {unquote(name): None if value == NO_PARTITION else unquote(value) for name, value in named}
    if not files:
        raise FileNotFoundError(f"there is no file *.parquet in {folder}")
    first = next(iter(files))
    for file, values in files.items():
        if list(values) != list(files[first]):
            raise ValueError(
                f"{first} and {file} are not of one table: their paths name the columns {list(files[first])} and {list(values)}"
            )
    return files


def _folder(folder: Path) -> Body:
    """The part files of a folder as one Parquet file, a part at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = part_files(folder)
    opened = {file: pq.read_schema(file) for file in files}
    first = next(iter(files))
    try:
        schema = pa.unify_schemas(list(opened.values()))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
        raise ValueError(f"the part files of {folder} differ: {e}; write them with one type for each column") from e
    keys: dict[str, Any] = {}
    for name in files[first]:
        if all(name in s.names for s in opened.values()):  # as Polars writes it
            continue
        if name in schema.names:
            raise ValueError(
                f"some of the files of {folder} have a column {name!r}, and all of their paths have it; write it into all, or none"
            )
        texts = [v[name] for v in files.values() if v[name] is not None]
        whole = all(str(int(t)) == t and abs(int(t)) < 1 << 63 for t in texts if t and t.lstrip("-").isdecimal()) and all(
            t and t.lstrip("-").isdecimal() for t in texts
        )
        keys[name] = pa.int64() if whole and texts else pa.string()
        schema = schema.append(pa.field(name, keys[name]))
    merged = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # _kept closes it
    with pq.ParquetWriter(cast(Any, merged), schema) as writer:
        for file, values in files.items():
            part = pq.ParquetFile(file)
            for group in range(part.num_row_groups):
                table = part.read_row_group(group)
                columns = []
                for field in schema:
                    if field.name in keys:
                        text = values[field.name]
                        value = None if text is None else int(text) if keys[field.name] == pa.int64() else text
                        columns.append(pa.array([value] * len(table), field.type))
                    elif field.name in table.column_names:
                        columns.append(table.column(field.name).cast(field.type))
                    else:
                        columns.append(pa.nulls(len(table), field.type))
                writer.write_table(pa.table(columns, schema=schema))
    size = merged.tell()
    return _kept(lambda: _rewound(cast(BinaryIO, merged)), size)


def _kept(open: Callable[[], BinaryIO], size: int) -> Body:
    """The bytes of files of ours, which are closed when the body is dropped."""
    opened: list[BinaryIO] = []

    def kept() -> BinaryIO:
        opened.append(open())
        return opened[-1]

    body = Body(kept, size)
    weakref.finalize(body, lambda: [file.close() for file in opened])
    return body


def _rewound(file: BinaryIO) -> BinaryIO:
    file.seek(0)
    return file


def _write(table: Any, kind: Kind, file: BinaryIO) -> None:
    if kind == "polars":
        if type(table).__name__ == "LazyFrame":
            table = table.collect()
        table.write_parquet(file)
        return
    import pyarrow.parquet as pq

    if kind == "pandas":
        import pyarrow as pa

        table = _plain_index(table)
        table = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(table, file)


def _plain_index(frame: Any) -> Any:
    """A frame whose named index levels are columns. An index without a name only counts rows."""
    if any(name is not None for name in frame.index.names):
        return frame.reset_index()
    return frame


def installed() -> Kind:
    """The library that tables are read with if nothing else was said."""
    import importlib.util

    for kind in KINDS:
        if importlib.util.find_spec(kind) is not None:
            return kind
    raise ModuleNotFoundError("to read tables install pandas with pyarrow (holdoutd[pandas]) or polars (holdoutd[polars])")


def some(frame: Any, rows: int) -> Any:
    """Some rows of a table, evenly spread."""
    step = max(1, -(-len(frame) // rows))
    at = list(range(0, len(frame), step))
    return frame.iloc[at] if hasattr(frame, "iloc") else frame.take(at) if hasattr(frame, "take") else frame[at]


def values(frame: Any, column: str) -> list[Any]:
    """A column of a table."""
    of = frame[column]
    return list(of.to_pylist() if hasattr(of, "to_pylist") else of)


def read(content: bytes, kind: Kind, categories: Mapping[str, Sequence[str]] | None = None) -> Any:
    """Parquet bytes as a table of that library. Of pandas the columns of categories are categories without an order: those that are named,
    and what else the rows have."""
    if kind == "polars":
        import polars

        return polars.read_parquet(io.BytesIO(content))
    if kind == "pandas":
        import pandas

        frame = pandas.read_parquet(io.BytesIO(content))
        for name in (categories or {}).keys() & set(frame.columns):
            texts = sorted({*(categories or {})[name], *frame[name].dropna().unique()})
            frame[name] = frame[name].astype(pandas.CategoricalDtype(texts))
        return frame
    if kind == "pyarrow":
        import pyarrow.parquet as pq

        return pq.read_table(io.BytesIO(content))
    raise ValueError(f"kind is {', '.join(KINDS)}, not {kind!r}")
