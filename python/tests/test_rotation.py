"""A holdout is retired, its rows come back, and another one comes after it."""

import asyncio

import numpy as np
import pandas as pd
import pytest
from conftest import Running

import holdoutd

ROWS = 1200


def quarter(seed: int) -> pd.DataFrame:
    r = np.random.default_rng(seed)
    region = pd.Categorical(r.choice(["north", "south"], ROWS))
    return pd.DataFrame({"weight": r.normal(70, 10, ROWS), "income": r.normal(0, 1, ROWS), "region": region, "late": r.random(ROWS) < 0.3})


def test_rotation(server: holdoutd.Server) -> None:
    """Every row is in the training part or comes back once it is retired, with its kinds; questions end, answers stay."""
    table = quarter(8101)
    ds = server.upload(table, name="q1", label="late", mechanism="gaussian", questions=20, unit="row")
    first = ds.mean("weight", range=(0, 140))
    with pytest.raises(holdoutd.ServerError, match="not retired"):
        ds.retired()
    with pytest.raises(holdoutd.ServerError, match="retire it first"):
        server.upload(quarter(8102), name="q2", label="late", mechanism="gaussian", questions=20, unit="row", succeeds=ds.id)
    ds.retire()
    assert ds.card.retired
    more = ds.retired()
    assert more.region.dtype == "category" and more.late.dtype == bool
    back = pd.concat([ds.training(), more], ignore_index=True).sort_values("weight", ignore_index=True)
    want = table.sort_values("weight", ignore_index=True)
    assert back.weight.tolist() == want.weight.tolist() and back.region.tolist() == want.region.tolist()
    assert ds.mean("weight", range=(0, 140)).value == first.value
    with pytest.raises(holdoutd.BudgetExhausted, match="retired"):
        ds.mean("income", range=(-4, 4))
    fresh = server.upload(quarter(8102), name="q2", label="late", mechanism="gaussian", questions=20, unit="row", succeeds=ds.id)
    assert fresh.card.settings["succeeds"] == ds.id and server.holdout(ds.id).card.raw["succeeded_by"] == [fresh.id]


def test_rotation_async(running: Running) -> None:
    async def run() -> None:
        async with await holdoutd.aio.connect(running.url, key=running.key) as there:
            ds = await there.upload(quarter(8103), name="q1-async", label="late", mechanism="gaussian", questions=20, unit="row")
            await ds.retire()
            more = await ds.retired()
            assert ds.card.retired and len(more) == ds.card.rows["holdout"] + ds.card.rows["check"]

    asyncio.run(run())
