"""The notebooks of examples/ run from top to bottom, twice: the second time costs nothing.

To keep their outputs anew: HOLDOUTD_NOTEBOOKS=update pytest tests/test_notebooks.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import nbformat
import pytest
from conftest import Running
from nbclient import NotebookClient

import holdoutd

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize("notebook", sorted(p.name for p in EXAMPLES.glob("*.ipynb")))
def test_notebook(notebook: str, binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notices a cell that fails, and a question that is asked in another way the second time: the ledger's head would move."""
    running = Running(binary, tmp_path / "data")
    monkeypatch.setenv("HOLDOUTD_URL", running.url)
    monkeypatch.setenv("HOLDOUTD_KEY", running.key)
    try:
        heads, first = [], None
        for _ in range(2):
            nb = nbformat.read(EXAMPLES / notebook, as_version=4)
            NotebookClient(nb, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
            first = first or nb
            (ds,) = holdoutd.connect().holdouts()
            ds.save_ledger(tmp_path / "ledger.jsonl")
            heads.append([json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()])
        assert heads[0] == heads[1]
        kept = nbformat.read(EXAMPLES / notebook, as_version=4)
        if os.environ.get("HOLDOUTD_NOTEBOOKS") == "update":
            for cell in first.cells:
                cell.metadata.pop("execution", None)
            first.metadata.pop("widgets", None)
            nbformat.write(first, EXAMPLES / notebook)
        else:
            assert any(c.get("outputs") for c in kept.cells), "it is kept with its outputs"
    finally:
        running.kill()
