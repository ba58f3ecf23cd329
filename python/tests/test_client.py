"""The client against the real server."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import math
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import FLIGHTS, Running, table

import holdoutd
from holdoutd import _wire, tables

q = holdoutd.q


def test_an_answer_is_a_float(ds: holdoutd.Dataset) -> None:
    answer = ds.fraction("x > 0")
    assert isinstance(answer, float) and answer.low is not None and answer.high is not None
    assert answer.low <= answer <= answer.high and 0.5 in answer
    assert math.isclose(answer * 2, 2 * answer.value)  # type: ignore[operator]
    assert answer.cost.questions == 1 and answer.id.startswith("ans_") and answer.confidence == 0.95
    again = ds.fraction(" 0.0 < x ")
    assert again.replayed and again.raw == answer.raw and "no cost" in repr(again)
    assert f"{answer:.3f}" == f"{float(answer):.3f}" and "at 95% for all 2000 questions" in repr(answer)
    assert pickle.loads(pickle.dumps(answer)).raw == answer.raw


def test_answers_that_are_many(ds: holdoutd.Dataset) -> None:
    answer = ds.frequencies("origin")
    assert math.isnan(answer) and answer.value is None
    assert {"SFO", "OAK"} <= {i.of for i in answer.items} == set(answer.frame()["of"])
    assert all(i.low is not None and i.low <= i.value <= i.high for i in answer)  # type: ignore[operator]
    assert "SFO: " in repr(answer) and "<table>" in answer._repr_html_()


def test_every_type_and_member(ds: holdoutd.Dataset, running: Running) -> None:
    """Each example of the server's own document goes through the method of its type, member by member, and comes out the same.
    Notices a type or a member that the client has not, and one that it writes otherwise."""
    schemas = httpx.get(running.url + "/openapi.json").json()["components"]["schemas"]
    types = [ref["$ref"].split("/")[-1] for ref in schemas["Query"]["oneOf"]]
    assert len(types) == len(holdoutd.TYPES) >= 31
    for name in types:
        kind = schemas[name]["properties"]["type"]["const"]
        for example in schemas[name]["examples"]:
            assert getattr(q, kind)(**{m: v for m, v in example.items() if m != "type"}) == example
        accepted = set(schemas[name]["properties"]) - {"type"}
        assert set(inspect.signature(getattr(holdoutd.Questions, kind)).parameters) - {"self"} == accepted


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "path"])
def test_tables_come_back_as_they_came(server: holdoutd.Server, tmp_path: Path, kind: str) -> None:
    """Notices a kind that is read with another library, and rows that are lost on the way."""
    frame = table(100 + sum(map(ord, kind)) % 97, 400)
    given: Any = {"pandas": lambda: frame, "polars": lambda: pl.from_pandas(frame), "pyarrow": lambda: pa.Table.from_pandas(frame)}.get(
        kind, lambda: tmp_path / "t.parquet"
    )()
    if kind == "path":
        frame.to_parquet(given)
    ds = server.upload(given, name=kind, holdout=0.25, questions=10)
    training = ds.training()
    assert type(training).__module__.split(".")[0] == ("pandas" if kind == "path" else kind)
    assert len(training) == ds.card.rows["training"] < 400
    ds.save_training(tmp_path / "training.parquet")
    assert len(pd.read_parquet(tmp_path / "training.parquet")) == len(training)


def test_the_same_upload_is_the_same_holdout(server: holdoutd.Server) -> None:
    frame = table(20, 400)
    ds = server.upload(frame, name="again", holdout=0.25, questions=10)
    ds.fraction("x > 0")
    again = server.upload(frame, name="again", holdout=0.25, questions=10)
    assert again.id == ds.id and again.budget.questions.left == 9
    with pytest.raises(holdoutd.HoldoutExists, match="questions=11") as refused:
        server.upload(frame, name="again", holdout=0.25, questions=11)
    assert refused.value.holdout == ds.id
    assert server.holdout("again").id == server.holdout(ds.id).id == ds.id
    with pytest.raises(LookupError, match="no holdout 'agian'"):
        server.holdout("agian")


def test_customers_come_again(server: holdoutd.Server) -> None:
    frame = table(23, 3000)
    frame["customer_id"] = [i * 7919 % 3000 // 3 for i in range(3000)]
    for make in (server.upload, server.card):
        with pytest.raises(holdoutd.UnitUndecided, match="unit=customer_id") as undecided:
            make(frame, questions=10)
        customer, row = undecided.value.choices
        assert customer["unit"] == "customer_id" and row["unit"] == "row" and row["units"] == 3000
        assert customer["rows"] == pytest.approx(3, rel=0.3) and customer["half_width"] > row["half_width"]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*on both sides", holdoutd.HoldoutWarning)
        ds = server.upload(frame, unit="customer_id", questions=10)
    assert ds.card.units["holdout"] == 300
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", holdoutd.HoldoutWarning)
        with pytest.raises(holdoutd.RowsKnown, match="held out by " + ds.id) as known:
            server.upload(frame[:2400], unit="customer_id", questions=10)
        assert {(o["holdout"], o["matter"]) for o in known.value.overlaps} == {(ds.id, "held-out-again")} and known.value.overlaps[0][
            "share"
        ] > 0.8
        asked = server.upload(frame[:2400], unit="customer_id", questions=10, overlap="accepted")
        share = asked.fraction("x > 0")
        assert share.per == "customer_id" and " · per customer_id · " in str(share) and pickle.loads(pickle.dumps(share)).per == share.per
        assert asked.fraction("x > 0", weight="row").per == "row" and asked.count("x > 0").per == ""
        assert [a.per for a in asked.batch([holdoutd.q.fraction("x > 0"), holdoutd.q.count("x > 0")])] == ["customer_id", ""]
    assert [a.per for a in asked.history().answers()] == ["customer_id", "row", ""]
    with pytest.warns(holdoutd.HoldoutWarning, match="rows of one customer_id are on both sides") as said:
        rows = server.upload(frame, unit="row", questions=10, overlap="accepted")
    assert {w.filename for w in said if w.category is holdoutd.HoldoutWarning} == {__file__} and rows.card.units["holdout"] == 900
    with warnings.catch_warnings():
        warnings.simplefilter("error", holdoutd.HoldoutWarning)
        rows.fraction("x > 0")  # it was said
    with pytest.warns(holdoutd.HoldoutWarning):
        assert server.upload(frame, unit="row", questions=10, overlap="accepted").id == rows.id


def test_uploads_close_their_files(server: holdoutd.Server, tmp_path: Path) -> None:
    """What an upload opens is closed with it, so that a program for which a ResourceWarning is an error can upload."""
    path = tmp_path / "table.parquet"
    other = tmp_path / "other.parquet"
    table(141).to_parquet(path)
    table(144).to_parquet(other)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        server.upload(table(142), name="closed", questions=50)
        server.upload(path, name="closed path", questions=50)
        server.upload(training_part=table(143), holdout_part=other, name="closed parts", questions=50)
        gc.collect()
    assert not [w for w in said if issubclass(w.category, ResourceWarning) and "socket" not in str(w.message)]


def test_a_table_that_was_split_before(server: holdoutd.Server) -> None:
    frame = table(21, 400)
    ds = server.upload(training_part=frame[:300], holdout_part=frame[300:], questions=10)
    assert ds.card.rows["training"] == 300 and ds.card.rows["holdout"] == 100
    with pytest.raises(TypeError, match="upload"):
        server.upload()


def test_errors_say_where(ds: holdoutd.Dataset) -> None:
    with pytest.raises(holdoutd.QueryInvalid, match="did you mean x") as wrong:
        ds.fraction("xx > 0")
    assert wrong.value.pointer == "/of" and wrong.value.violations[0].column == 1
    assert str(wrong.value).count("did you mean") == 1  # nothing is said twice
    with pytest.raises(holdoutd.TooNarrow) as narrow:
        ds.mean("x", range=(-5, 5), half_width=1e-7)
    assert 1e-7 < narrow.value.least <= narrow.value.planned
    with pytest.raises(ValueError, match="not finite"):
        ds.mean("x", range=(0, math.inf))
    with pytest.raises(TypeError, match="no table"):
        ds.server.upload(3)
    with pytest.raises(FileNotFoundError, match="nosuch"):
        ds.server.upload("nosuch.parquet")


def test_an_exhausted_budget(server: holdoutd.Server) -> None:
    ds = server.upload(table(22, 400), questions=3, holdout=0.5)
    with pytest.raises(holdoutd.BudgetExhausted) as spent:
        ds.batch([q.fraction(f"x > {i}") for i in range(5)])
    assert (spent.value.requested, spent.value.left, spent.value.affordable) == (5, 3, 3)
    answers = ds.batch([q.fraction(f"x > {i}") for i in range(5)], partial=True)
    assert [isinstance(a, holdoutd.Answer) for a in answers] == [True] * 3 + [False] * 2
    assert "questions-exhausted" in repr(answers[4])
    assert ds.budget.questions.left == 0 and ds.fraction("x > 0").replayed


def test_keys(running: Running, server: holdoutd.Server, ds: holdoutd.Dataset) -> None:
    made = server.new_key("bob")
    bob = holdoutd.connect(running.url, key=made["secret"])
    assert bob.holdout(ds.id).fraction("x > 0").replayed
    with pytest.raises(holdoutd.NotAllowed):
        bob.new_key("eve")
    server.revoke_key(made["id"])
    with pytest.raises(holdoutd.NotAllowed):
        bob.holdout(ds.id)
    assert any(k["id"] == made["id"] and k["revoked"] and k["by"] == server.keys()[0]["id"] for k in server.keys())  # noqa: SIM118


def test_one_idempotency_key_for_each_call(monkeypatch: pytest.MonkeyPatch, running: Running) -> None:
    """A reply that is lost is asked for again with the same key; another call has another. Notices a new key in each attempt."""
    keys: list[str] = []
    send = httpx.Client.send
    lost = [True, False, False]

    def losing(self: httpx.Client, request: httpx.Request, **kw: Any) -> httpx.Response:
        reply = send(self, request, **kw)
        if request.url.path.endswith("/queries"):
            keys.append(request.headers["Idempotency-Key"])
            if lost and lost.pop(0):
                reply.close()
                raise httpx.ReadError("the connection broke")
        return reply

    monkeypatch.setattr(httpx.Client, "send", losing)
    server = holdoutd.Server(running.url, running.key)
    ds = server.upload(table(23, 400), questions=5)
    before = ds.budget.questions.left
    ds.fraction("x > 0.5")
    assert ds.budget.questions.left == before - 1 and keys[0] == keys[1]
    ds.fraction("x > 0.6")
    assert keys[2] != keys[1]


def test_a_batch_in_part_is_asked_once(monkeypatch: pytest.MonkeyPatch, running: Running) -> None:
    """A batch in part whose replies are lost closes one round, and spends max_questions once. Notices a rest that is asked again."""
    send = httpx.Client.send
    lost = 0

    def losing(self: httpx.Client, request: httpx.Request, **kw: Any) -> httpx.Response:
        nonlocal lost
        reply = send(self, request, **kw)
        if request.url.path.endswith("/batch") and lost > 0:
            lost -= 1
            reply.close()
            raise httpx.ReadError("the connection broke")
        return reply

    monkeypatch.setattr(httpx.Client, "send", losing)
    server = holdoutd.Server(running.url, running.key)
    rounds = server.upload(table(27, 400), questions=40, rounds=4)
    many = [q.fraction(f"x > {i / 30}") for i in range(25)]
    lost = 3
    answers = rounds.batch(many, partial=True)
    assert lost == 0 and sum(isinstance(a, holdoutd.Answer) for a in answers) == 10
    assert rounds.budget.questions.left == 30
    dear = server.upload(table(28, 400), questions=40).up_to(5)
    lost = 3
    answers = dear.batch(many, partial=True)
    assert lost == 0 and sum(isinstance(a, holdoutd.Answer) for a in answers) == 5
    assert dear.budget.questions.left == 35


def test_nothing_is_sent_again_that_cannot_help(monkeypatch: pytest.MonkeyPatch, running: Running) -> None:
    """A revoked key, a damaged holdout, a query that is wrong: one attempt. A busy server: several."""
    for status, code, attempts in (
        (401, "unauthorized", 1),
        (503, "holdout-damaged", 1),
        (422, "invalid", 1),
        (503, "busy", 3),
        (429, "rate-limited", 3),
    ):
        seen = 0

        def refusing(self: httpx.Client, request: httpx.Request, **kw: Any) -> httpx.Response:
            nonlocal seen
            seen += 1
            return httpx.Response(status, json={"code": code, "detail": "no"}, request=request)  # noqa: B023

        monkeypatch.setattr(httpx.Client, "send", refusing)
        monkeypatch.setattr("time.sleep", lambda s: None)
        with pytest.raises(holdoutd.ServerError) as e:
            holdoutd.Server(running.url, "k", retries=2).holdouts()
        assert (seen, e.value.code) == (attempts, code)


def test_no_server() -> None:
    with pytest.raises(holdoutd.ConnectionFailed, match="running"):
        holdoutd.connect("http://127.0.0.1:1", key="hk_x", retries=0)


def test_where_to_connect(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, then the environment, then the files that the server wrote. Notices an order that is another."""
    for name in ("HOLDOUTD_URL", "HOLDOUTD_KEY", "HOLDOUTD_CONNECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(holdoutd.NotConfigured, match="holdoutd serve"):
        holdoutd.connect()
    assert holdoutd.connect(running.data).url == running.url  # the server's own connect.json
    (tmp_path / "holdoutd-data").symlink_to(running.data)
    assert holdoutd.connect().url == running.url
    monkeypatch.setenv("HOLDOUTD_URL", "http://127.0.0.1:1")
    with pytest.raises(holdoutd.NotConfigured, match="HOLDOUTD_KEY"):
        holdoutd.connect()
    monkeypatch.setenv("HOLDOUTD_KEY", f"@{running.data / 'admin.key'}")
    with pytest.raises(holdoutd.ConnectionFailed):
        holdoutd.connect(retries=0)
    assert holdoutd.connect(running.url).url == running.url


def test_what_the_working_directory_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody named the connect.json of the working directory. Notices a key that it sends to another machine, or takes from elsewhere."""
    from holdoutd._connect import find

    for name in ("HOLDOUTD_URL", "HOLDOUTD_KEY", "HOLDOUTD_CONNECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    data, own = tmp_path / "holdoutd-data", "http://127.0.0.1:8080"
    data.mkdir()
    (tmp_path / "secret").write_text("hk_secret")
    (data / "admin.key").write_text("hk_data")
    (data / "link").symlink_to(tmp_path / "secret")

    def say(url: str, file: str) -> None:
        (data / "connect.json").write_text(json.dumps({"url": url, "key_file": file}))

    for url in (own, "https://localhost:1", "http://[::1]:1"):
        say(url, "admin.key")
        assert find(None, None) == (url, "hk_data")
        assert find(None, "hk_given") == (url, "hk_given")
    for host in ("203.0.113.7", "evil.example", "127.0.0.1@evil.example", "localhost.evil.example", "0.0.0.0"):
        url = f"http://{host}"
        say(url, "admin.key")
        for key in (None, "hk_given"):
            with pytest.raises(holdoutd.NotConfigured, match="not on this machine"):
                find(None, key)
    for file in (str(tmp_path / "secret"), "../secret", "link", "."):
        say(own, file)
        with pytest.raises(holdoutd.NotConfigured, match="not beside it"):
            find(None, None)
    say("http://evil.example", "link")
    monkeypatch.setenv("HOLDOUTD_CONNECT", str(data / "connect.json"))
    assert find(None, None) == ("http://evil.example", "hk_secret")  # who names the file trusts it


def test_a_restart_keeps_everything(binary: Path, tmp_path: Path) -> None:
    running = Running(binary, tmp_path / "data")
    try:
        ds = holdoutd.connect(running.url, key=running.key).upload(table(24, 400), questions=5)
        first = ds.fraction("x > 0")
        running.kill()
        running.start()
        again = ds.fraction("x > 0")
        assert again.replayed and again.raw == first.raw and ds.budget.questions.left == 4
        ds.save_ledger(tmp_path / "ledger.jsonl")
        assert (
            "ok" in subprocess.run([binary, "verify", tmp_path / "ledger.jsonl"], capture_output=True, text=True, check=True).stdout.lower()
        )
    finally:
        running.kill()


def test_the_asynchronous_twin(running: Running) -> None:
    """Many questions at once through the asynchronous client: the same answers as through the other. Notices a twin that does not
    say the same."""

    async def asked() -> tuple[list[holdoutd.Answer], str]:
        async with await holdoutd.aio.connect(running.url, key=running.key) as server:
            ds = await server.upload(table(1), name="shared", holdout=0.5, questions=2000, tokens=50)
            answers = await asyncio.gather(*(ds.fraction(f"x > {i / 10}") for i in range(10)))
            batch = await ds.batch([q.mean("amount", range=(0, 20))])
            assert len(await ds.history()) >= 11 and (await ds.budget()).questions.left < 2000
            assert len(await ds.training()) == ds.card.rows["training"]
            assert (await ds.explain(q.fraction("x > 0"))).answered
            assert (await ds.plan()).recommended
            with pytest.raises(holdoutd.QueryInvalid):
                await ds.fraction("xx > 0")
            return [*answers, *(a for a in batch if isinstance(a, holdoutd.Answer))], ds.id

    answers, id = asyncio.run(asked())
    ds = holdoutd.connect(running.url, key=running.key).holdout(id)
    same = [*(ds.fraction(f"x > {i / 10}") for i in range(10)), ds.mean("amount", range=(0, 20))]
    assert [a.raw for a in same] == [a.raw for a in answers]
    public = {n for n in dir(holdoutd.Dataset) if not n.startswith("_")} - {"plot", "cv", "scorer"}
    assert public <= set(dir(holdoutd.aio.AsyncDataset)), "the twin lacks some"
    for n in dir(holdoutd.Server):
        if not n.startswith("_"):
            assert (
                inspect.signature(getattr(holdoutd.Server, n)).parameters.keys()
                == inspect.signature(getattr(holdoutd.aio.AsyncServer, n)).parameters.keys()
            )


def test_explain_tells_prices_from_risks(ds: holdoutd.Dataset) -> None:
    said = repr(ds.explain(holdoutd.q.fraction("z > 0.125")))
    assert "1 question, and at most 1 token if" in said, said
    assert "25 questions" not in said.splitlines()[0] and "1 token" in said.splitlines()[1], "a measured answer costs its token: " + said


def test_a_figure_is_shown_once(ds: holdoutd.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    figure = ds.plot()
    with pytest.raises(NotImplementedError):  # elsewhere the value of a cell is all that is shown of it
        figure._ipython_display_()
    monkeypatch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    figure._ipython_display_()  # the cell's end shows it
    plt.close(figure)
    with pytest.raises(NotImplementedError):
        figure._ipython_display_()


def test_history_and_figures(ds: holdoutd.Dataset, tmp_path: Path) -> None:
    ds.fraction("z > 0", note="before the meeting")
    history = ds.history()
    frame = history.frame()
    assert len(frame) == len(history) and (frame["note"] == "before the meeting").any()
    assert frame["questions"].sum() == 2000 - ds.budget.questions.left
    assert isinstance(history.frame("polars"), pl.DataFrame)
    assert "before the meeting" in history._repr_html_()
    ds.groups("z > 0", by="x", edges=[0, 1])
    figure = ds.plot()
    named = [t.get_text() for ax in figure.axes for t in ax.get_yticklabels()]
    assert "before the meeting" in named and any(n.startswith("below 0") for n in named), named  # items are in it, too
    figure.savefig(tmp_path / "forest.png")
    ds.plan().plot().figure.savefig(tmp_path / "plan.png")
    assert (tmp_path / "forest.png").stat().st_size > 5000
    assert ds.plan(questions=10).raw["questions"] == 10 and "half-width" in ds.plan()._repr_html_()


def test_screen_and_ttest(ds: holdoutd.Dataset) -> None:
    assert {i.of for i in ds.screen("late")} == {"x", "z", "support tickets", "amount"}
    assert ds.ttest("amount", ["late", "!late"], range=(0, 20)).p_value is not None
    assert ds.ttest("late", ds.c.x > 0).verdict in ("yes", "undecided")


def test_tls(binary: Path, tmp_path: Path) -> None:
    """A server with a certificate of its own: refused by default, accepted with its file. Notices a client that does not verify."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert,
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    running = Running(binary, tmp_path / "data", "--tls-cert", str(cert), "--tls-key", str(key))
    try:
        with pytest.raises(holdoutd.ConnectionFailed, match=r"(?i)certificate"):
            holdoutd.connect(running.url, key=running.key, retries=0)
        assert holdoutd.connect(running.url, key=running.key, verify=str(cert)).version()
    finally:
        running.kill()


def test_large_uploads_show_progress(server: holdoutd.Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.upload(FLIGHTS, name="flights", questions=100, progress=True)
    assert "uploading flights 100%" in capsys.readouterr().err


def test_typed_and_clean() -> None:
    """The whole package under mypy --strict and ruff."""
    here = Path(__file__).resolve().parents[1]
    for command in (["mypy", "src"], ["ruff", "check", "src", "tests"], ["ruff", "format", "--check", "src", "tests"]):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=here, capture_output=True, text=True, env={**os.environ, "MYPY_CACHE_DIR": "/dev/null"}
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_dear_question_is_confirmed(server: holdoutd.Server) -> None:
    """Notices a confirmation that does not reach the server, and one that stays."""
    ds = server.upload(table(25, 400), questions=30, holdout=0.5, mechanism="gaussian")
    dear = q.argmax([q.fraction("x > 0"), q.fraction("z > 0")], questions=10)
    with pytest.raises(holdoutd.TooDear) as e:
        ds.ask(dear)
    assert e.value.requested == 10 and ds.budget.questions.left == 30
    assert ds.up_to(10).ask(dear).selected in ("0", "1") and ds.budget.questions.left == 20
    with pytest.raises(holdoutd.TooDear):
        ds.ask(q.argmax([q.fraction("x > 1"), q.fraction("z > 1")], questions=10))


def test_a_card_before_anything_is_final(server: holdoutd.Server) -> None:
    """Notices a dry run that creates."""
    frame = table(26, 400)
    before = len(server.holdouts())
    card = server.card(frame, questions=5, holdout=0.5)
    assert card.guarantee["questions"] == 5 and len(server.holdouts()) == before


def test_a_plan_of_what_is_to_be_asked(ds: holdoutd.Dataset) -> None:
    plan = ds.plan(workload="60 accuracy, 20 mean in 0..20 sd 3")
    frame = plan.workload()
    assert set(frame["count"]) == {60, 20} and (frame["questions"] >= 1).all() and "60 accuracy" in repr(plan)


def test_a_folder_of_part_files(tmp_path: Path) -> None:
    """Part files are one table, with the columns that their directories name; a folder with rows of older versions is refused."""
    import pyarrow.parquet as pq

    for region, day, x in (("a", "1", [1.0, 2.0]), ("b%2Fc", "2", [3.0]), ("__HIVE_DEFAULT_PARTITION__", "10", [4.0])):
        place = tmp_path / "t" / f"region={region}" / f"day={day}"
        place.mkdir(parents=True)
        note = pa.nulls(len(x)) if day == "2" else pa.array(["n"] * len(x))
        pq.write_table(pa.table({"x": x, "note": note}), place / "part-0.parquet")
    (tmp_path / "t" / "_SUCCESS").touch()
    (tmp_path / "t" / "_temporary").mkdir()
    pq.write_table(pa.table({"x": [9.0]}), tmp_path / "t" / "_temporary" / "part-1.parquet")
    got = pq.read_table(tables.body(tmp_path / "t").open()).to_pydict()
    rows = sorted(zip(*(got[c] for c in ("x", "note", "region", "day")), strict=True))
    assert rows == [(1.0, "n", "a", 1), (2.0, "n", "a", 1), (3.0, None, "b/c", 2), (4.0, "n", None, 10)]
    (tmp_path / "t" / "_delta_log").mkdir()
    with pytest.raises(ValueError, match="is a Delta table"):
        tables.body(tmp_path / "t")
    for place, line in (
        (".hoodie/hoodie.properties", 'format\\("hudi"\\)'),
        ("metadata/v10.metadata.json", r"scan_iceberg\('.*v10\.metadata\.json'\)"),
    ):
        log = tmp_path / place.split("/", maxsplit=1)[0] / place
        log.parent.mkdir(parents=True)
        log.touch()
        log.with_name("v9.metadata.json").touch()
        with pytest.raises(ValueError, match=line):
            tables.body(log.parents[1])
    (tmp_path / "own" / "k=a").mkdir(parents=True)
    pq.write_table(pa.table({"x": [1.0], "k": ["a"]}), tmp_path / "own" / "k=a" / "p.parquet")
    assert pq.read_table(tables.body(tmp_path / "own").open()).to_pydict() == {"x": [1.0], "k": ["a"]}
    (tmp_path / "none").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no file \*.parquet"):
        tables.body(tmp_path / "none")
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "none" / "a.parquet")
    pq.write_table(pa.table({"x": ["one"]}), tmp_path / "none" / "b.parquet")
    with pytest.raises(ValueError, match=r"part files of .* differ"):
        tables.body(tmp_path / "none")


def test_what_is_no_part_of_a_query_says_where_it_belongs():
    class Fitted:
        def predict(self, x): ...

    with pytest.raises(TypeError, match="a Fitted stands where the query has no model: give it by name, model="):
        _wire.dumps({"type": "calibration", "label": Fitted()})
    with pytest.raises(TypeError, match="a set is no part of a query"):
        _wire.dumps({"type": "frequencies", "of": "x", "values": {"a"}})
