"""Tables on their way to the server and back: pandas and polars frames, pyarrow tables, Parquet files."""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

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
    """The table as Parquet. Paths and files are sent as they are."""
    kind = kind_of(table)
    if kind is not None:
        file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # closed when the body is dropped
        _write(table, kind, cast(BinaryIO, file))
        size = file.tell()
        return Body(lambda: _rewound(cast(BinaryIO, file)), size)
    if isinstance(table, (bytes, bytearray)):
        return Body(lambda: io.BytesIO(table), len(table))
    if isinstance(table, (str, os.PathLike)):
        path = Path(table)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        return Body(lambda: path.open("rb"), path.stat().st_size)
    if hasattr(table, "read") and hasattr(table, "seek"):
        return Body(lambda: _rewound(table))
    raise TypeError(
        f"{type(table).__name__} is no table: give a pandas or polars DataFrame, a pyarrow Table, or the path of a Parquet file"
    )


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


def read(content: bytes, kind: Kind) -> Any:
    """Parquet bytes as a table of that library."""
    if kind == "polars":
        import polars

        return polars.read_parquet(io.BytesIO(content))
    if kind == "pandas":
        import pandas

        return pandas.read_parquet(io.BytesIO(content))
    if kind == "pyarrow":
        import pyarrow.parquet as pq

        return pq.read_table(io.BytesIO(content))
    raise ValueError(f"kind is {', '.join(KINDS)}, not {kind!r}")
