"""A holdout of declared cells, as a notebook makes and asks it."""

import numpy as np
import pandas as pd
import pytest

import holdoutd

CELLS = {"member": [True, False], "age": [18, 40, 65]}


def people(rows: int) -> pd.DataFrame:
    r = np.random.default_rng(7)
    return pd.DataFrame({"member": r.random(rows) < 0.3, "age": r.integers(0, 90, rows), "income": r.normal(50, 9, rows)})


def test_cells(server: holdoutd.Server) -> None:
    """Cells are a dict; the same ones are the same holdout, others are refused. Questions beside the cells are told what to write."""
    frame = people(9000)
    ds = server.upload(frame, name="cells", mechanism="cells", cells=CELLS, overlap="accepted")
    width = ds.card.guarantee["half_width"]
    assert ds.card.guarantee["cells"] == 8
    assert width == pytest.approx(np.sqrt((8 * np.log(2) + np.log(20)) / (2 * ds.card.units["holdout"])))
    first = ds.ask({"type": "fraction", "of": "age >= 40 && member"})
    assert first.low <= np.mean((frame.age >= 40) & frame.member) <= first.high
    assert first.high - first.low <= 2 * width + 1e-8
    with pytest.raises(holdoutd.QueryInvalid, match=r"write !\(age >= 40\)"):
        ds.ask({"type": "fraction", "of": "age < 40"})
    again = server.upload(frame, name="cells", mechanism="cells", cells={**CELLS, "age": [18.0, 40.0, 65.0]}, overlap="accepted")
    assert again.id == ds.id
    with pytest.raises(holdoutd.HoldoutExists, match="cells="):
        server.upload(frame, name="cells", mechanism="cells", cells={"member": [True, False]}, overlap="accepted")
