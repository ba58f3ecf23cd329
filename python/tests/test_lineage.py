"""Rows that come again are recognised as pandas, pyarrow and Polars write them."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import holdoutd

ROWS = 3000


def people(seed: int) -> pd.DataFrame:
    """Independent rows of one law."""
    r = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "weight": r.normal(70, 10, ROWS),
            "income": np.round(np.exp(r.normal(10, 1, ROWS)), 2),
            "age": r.integers(18, 90, ROWS),
            "region": pd.Categorical(r.choice(["north", "south", "east"], ROWS)),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(r.integers(0, 10**8, ROWS), unit="s"),
            "smokes": r.random(ROWS) < 0.3,
            "code": [f"{x:06d}x" for x in r.integers(0, 10**6, ROWS)],
        }
    )


def narrowed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({"weight": "float32", "income": "float32", "age": "int8"})


def spelled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(seen=frame.seen.astype(str)).astype(dict.fromkeys(("weight", "income", "age", "smokes"), str))


def changed(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.copy()
    frame.loc[7, "weight"] += 1e-12
    return frame


FORMS: dict[str, Any] = {
    "a cell": lambda f: f,
    "float32": narrowed,
    "texts": spelled,
    "renamed and shuffled": lambda f: f.rename(columns=lambda c: "the_" + c).sample(frac=1, random_state=1)[::-1],
    "dates": lambda f: f.assign(seen=f.seen.astype("datetime64[ms]"), region=f.region.astype(str)),
    "a column less": lambda f: f.drop(columns="income"),
    "pyarrow dictionaries": lambda f: pa.table({c: pa.array(f[c]) for c in f}).set_column(6, "code", pa.array(f.code).dictionary_encode()),
    "pyarrow large and decimal": lambda f: pa.table(
        {c: pa.array(f[c]).cast(pa.large_string()) if c == "code" else pa.array(f[c]) for c in f}
        | {"income": pa.array(f.income).cast(pa.decimal128(18, 2))}
    ),
    "polars": lambda f: pl.from_pandas(f).with_columns(pl.col("age").cast(pl.UInt16), pl.col("region").cast(pl.Utf8)),
    "30 percent": lambda f: f.sample(frac=0.3, random_state=2),
    "merged": lambda f: pd.concat([people(9), f], ignore_index=True),
}


def test_tables_in_other_forms(server: holdoutd.Server) -> None:
    """Notices a type that is read as another value than its writer means, and a fresh table that is refused."""
    frame = people(8)
    settings: dict[str, Any] = {"unit": "row", "questions": 10, "holdout": 0.3}
    ds = server.upload(frame, name="people", **settings)
    ds.fraction("weight > 70")
    for name, form in FORMS.items():
        with pytest.raises(holdoutd.RowsKnown) as known:
            server.upload(form(changed(frame)), name=name, **settings)
        shares = {o["matter"]: o["share"] for o in known.value.overlaps if o["holdout"] == ds.id}
        again = shares.get("held-out-again", 0)
        assert again >= (0.1 if name in ("30 percent", "merged", "renamed and shuffled") else 0.6), (name, shares)
    fresh = server.upload(people(10), name="fresh", **settings)
    assert fresh.card.raw.get("overlaps") is None
