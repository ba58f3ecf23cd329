"""A real server for the tests. HOLDOUTD_BINARY names it; without it, it is built."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest

import holdoutd

ROOT = Path(__file__).resolve().parents[2]
FLIGHTS = ROOT / "experiments" / "data" / "flights-100k.parquet"


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Estimators without a random_state draw from NumPy's own generator."""
    np.random.seed(1)


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("HOLDOUTD_BINARY")
    if named:
        return Path(named)
    out = tmp_path_factory.mktemp("bin") / "holdoutd"
    subprocess.run(["go", "build", "-o", out, "./cmd/holdoutd"], cwd=ROOT, check=True)
    return out


class Running:
    """A server with its own data directory, which can be killed and started again on the same port."""

    def __init__(self, binary: Path, data: Path, *options: str):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{s.getsockname()[1]}"
        self.binary, self.data, self.options = binary, data, options
        self.scheme = "https" if "--tls-cert" in options else "http"
        self.url = f"{self.scheme}://{self.address}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self.binary, "serve", "--any-filesystem", "--data", self.data, "--addr", self.address, "--rate", "-1", *self.options],
            stderr=subprocess.DEVNULL,
        )
        for _ in range(3600):  # three minutes: only a server that hangs takes them
            try:
                httpx.get(self.url + "/healthz", verify=False)
                return
            except httpx.TransportError:
                if self.process.poll() is not None:
                    raise RuntimeError("the server ended") from None
                time.sleep(0.05)
        raise RuntimeError("the server did not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def key(self) -> str:
        return (self.data / "admin.key").read_text().strip()


@pytest.fixture(scope="session")
def running(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    server = Running(binary, tmp_path_factory.mktemp("data"))
    yield server
    server.process.terminate()
    server.process.wait()


@pytest.fixture(scope="session")
def server(running: Running) -> holdoutd.Server:
    return holdoutd.connect(running.url, key=running.key)


def table(seed: int, rows: int = 4000) -> pd.DataFrame:
    """A table of its own for each seed, so that each test has its own holdout."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=rows), rng.normal(size=rows)
    return pd.DataFrame(
        {
            "x": x,
            "z": z,
            "support tickets": rng.integers(0, 5, rows),
            "late": rng.random(rows) < 1 / (1 + np.exp(-1.5 * x + z)),
            "origin": rng.choice(["SFO", "OAK", 'it\'s "far"\\'], rows),
            "amount": 10 + 3 * x + rng.normal(size=rows),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300 * 86400, rows), unit="s"),
        }
    )


@pytest.fixture(scope="session")
def ds(server: holdoutd.Server) -> holdoutd.Dataset:
    """A holdout that tests share which ask little."""
    return server.upload(table(1), name="shared", holdout=0.5, questions=2000, tokens=50)
