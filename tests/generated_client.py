"""Plays a whole journey with a client that openapi-python-client made of the server's document.

Arguments: the folder that holds the package `generated`, the server's URL, the file of the admin key, the demo's flights, the document.
Every query type and each of its examples in the document goes through the client's own classes, so that a schema that the generator
drops, or reads as another one, is noticed.
"""

import importlib
import io
import json
import os
import re
import sys

FOLDER, URL, KEY, FLIGHTS, DOCUMENT = sys.argv[1:6]
sys.path.insert(0, FOLDER)

import pandas

from generated import AuthenticatedClient, Client, models
from generated.api.agents import mcp
from generated.api.holdouts import create_holdout, delete_holdout, export_ledger, get_features, get_holdout, get_retired, get_training, list_holdouts, retire_holdout
from generated.api.keys import create_grant, create_key, get_session, get_spending, list_grants, list_keys, revoke_grant, revoke_key, sign_in, sign_out
from generated.api.models import get_model, keep_model
from generated.api.operations import health, metrics, ready, version
from generated.api.plans import plan
from generated.api.queries import ask, ask_batch, explain, get_budget, list_answers, void_held
from generated.api.releases import list_releases, make_release
from generated.api.reports import close_with_report, get_report, get_report_page, plan_report
from generated.api.simulations import simulate_feature_selection
from generated.types import File

document = json.load(open(DOCUMENT))
called = set()


def call(operation, *args, status=200, **kwargs):
    """Calls an operation. Its parsed reply is of the documented class; an unexpected status says what the server said."""
    called.add(operation.__name__.rsplit(".", 1)[1])
    response = operation.sync_detailed(*args, **kwargs)
    assert response.status_code == status, (operation.__name__, response.status_code, response.content[:500])
    assert (status >= 400) == isinstance(response.parsed, models.Problem), response.parsed
    return response.parsed


def known(value):
    """No member of a reply is without a place in its class. Problems are excepted: their document leaves them open."""
    if isinstance(value, list):
        for item in value:
            known(item)
    elif hasattr(value, "__attrs_attrs__"):
        more = getattr(value, "additional_properties", {})
        # A class whose only member is the open one is a map, such as the parts of a half-width by name.
        assert not more or len(value.__attrs_attrs__) == 1, (type(value).__name__, more)
        for attribute in value.__attrs_attrs__:
            known(getattr(value, attribute.name))
    return value


def model_of(schema):
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", schema).lower()
    return getattr(importlib.import_module("generated.models." + module), schema)


flights = pandas.read_parquet(FLIGHTS).head(20000)
stranger = Client(base_url=URL, raise_on_unexpected_status=True)
admin = AuthenticatedClient(base_url=URL, token=open(KEY).read().strip(), raise_on_unexpected_status=True)

assert call(health, client=stranger).status == "ok" and call(ready, client=stranger).status == "ok"
assert call(version, client=stranger).name == "holdoutd"
assert "holdoutd_" in call(metrics, client=admin)

# Keys: an analyst's asks, an administrator's makes and revokes.
made = known(call(create_key, client=admin, body=models.NewKey(name="analyst", scope=models.NewKeyScope.ANALYST), status=201))
analyst = AuthenticatedClient(base_url=URL, token=made.secret, raise_on_unexpected_status=True)
keys = known(call(list_keys, client=admin)).keys
assert made.id in [key.id for key in keys] and made.by == keys[0].id
assert call(create_key, client=analyst, body=models.NewKey(name="more", scope=models.NewKeyScope.ADMIN), status=403).code == "forbidden"

# A browser's session, what an agent sends, and the data that the server makes up: each with the key in its header.
assert known(call(sign_in, client=analyst)).key.id == made.id and known(call(get_session, client=analyst)).key.name == "analyst"
assert call(sign_out, client=analyst, status=403).code == "forbidden"  # the cookie goes along, and this is no page of the server
analyst.get_httpx_client().cookies.clear()
call(sign_out, client=analyst, status=204)
pong = call(mcp, client=analyst, body=models.Message.from_dict({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
assert pong.to_dict() == {"jsonrpc": "2.0", "id": 1, "result": {}}, pong
played = known(call(simulate_feature_selection, client=analyst, seed=7))
assert played.to_dict() == call(simulate_feature_selection, client=analyst, seed=7).to_dict()

# A model that questions name.
kept = known(call(keep_model, client=analyst, body=models.KeepModelBody.from_dict({"linear": {"weights": {"distance": 0.001}}})))
assert known(call(get_model, kept.sha256, client=analyst)).bytes_ == kept.bytes_ > 0
assert call(get_model, "0" * 64, client=analyst, status=404).code == "not-found"

# What could be promised, and a holdout of it.
planned = known(call(plan, client=analyst, body=models.PlanRequest(n=6000, questions=4000)))
assert any(method.half_width for method in planned.methods), planned
body = io.BytesIO()
flights.to_parquet(body)
body.seek(0)
card = known(call(create_holdout, client=admin, body=File(payload=body), name="flights", label="delay", features="public", holdout=0.3,
                  mechanism="gaussian", questions=20000, half_width=0.9, check=0, status=201))  # a half-width that is asked for plans no tokens
assert [c.id for c in known(call(list_holdouts, client=analyst)).holdouts] == [card.id]
assert known(call(get_holdout, card.id, client=analyst)).to_dict() == card.to_dict()
training = pandas.read_parquet(call(get_training, card.id, client=analyst).payload)
body.seek(0)
again = call(create_holdout, client=admin, body=File(payload=body), name="flights", status=409)  # a part was handed out: it is no draft any more
assert again.code == "holdout-exists" and again["holdout"] == card.id, again
assert len(training) == card.units.training, (len(training), card.units)
features = pandas.read_parquet(call(get_features, card.id, client=analyst).payload)
assert len(features) == card.units.holdout and "delay" not in features, features.columns

# A question by its class: explained for nothing, asked once, replayed for nothing.
question = models.MeanQuery(type_="mean", of="delay", range_=[-60, 180], where="distance < 1000")
explained = known(call(explain, card.id, client=analyst, body=question))
first = known(call(ask, card.id, client=analyst, body=question, idempotency_key="one"))
assert explained.cost.questions == first.answer.cost.questions, (explained.cost, first.answer.cost)
assert first.answer.interval.low <= first.answer.value <= first.answer.interval.high and not first.replayed, first
second = known(call(ask, card.id, client=analyst, body=question))
assert second.replayed and second.answer.to_dict() == first.answer.to_dict()
left = known(call(get_budget, card.id, client=analyst))
assert left.questions.of - left.questions.left == first.answer.cost.questions and left.tokens is None, left

# Every type, by each of its examples: explained one by one, asked one by one or in a batch.
types = document["components"]["schemas"]["Query"]["discriminator"]["mapping"]
queries = []
for name, reference in sorted(types.items()):
    schema = reference.rsplit("/", 1)[1]
    examples = document["components"]["schemas"][schema]["examples"]
    assert examples, schema
    for example in examples:
        query = model_of(schema).from_dict(example)
        sent = query.to_dict()
        assert sent == example, (example, sent)
        queries.append((name, query))
# Numbers of pairs are asked where units are of one population; where features are public they are refused, and cost nothing.
for _, query in [q for q in queries if q[0] == "kendall"]:
    assert call(explain, card.id, client=analyst, body=query, status=422).code == "invalid"
queries = [q for q in queries if q[0] != "kendall"]
answers = {}
for name, query in queries:
    price = known(call(explain, card.id, client=analyst, body=query)).cost.questions
    if name not in answers:
        reply = known(call(ask, card.id, client=analyst, body=query))
        assert reply.replayed or reply.answer.cost.questions == price, (query, price, reply)
        answers[name] = reply.answer
batch = known(call(ask_batch, card.id, client=analyst, body=models.AskBatchBody(queries=[query for _, query in queries])))
assert len(batch.answers) == len(queries) and all(item.answer for item in batch.answers)
for (name, _), item in zip(queries, batch.answers):
    if item.replayed and answers[name].query == item.answer.query:
        assert item.answer.to_dict() == answers[name].to_dict(), name
assert [a.of for a in answers["histogram"].items] and answers["argmax"].selected and answers["test"].p_value is not None, answers

# The history in pages, the books, and what was spent.
history, after = [], 0
while True:
    page = known(call(list_answers, card.id, client=analyst, after=after, limit=20))
    history += [past.answer for past in page.answers]
    if not page.next_:
        break
    after = page.next_
assert {a.query for a in history} == {item.answer.query for item in batch.answers} | {first.answer.query}
spent = sum(a.cost.questions for a in history)
left = known(call(get_budget, card.id, client=analyst)).questions
assert left.of - left.left == spent, (left, spent)

# A slice of the budget for a key, which is shown less of the same answer, and who spent what.
given = known(call(create_key, client=admin, body=models.NewKey(name="partner", scope=models.NewKeyScope.GRANTED), status=201))
partner = AuthenticatedClient(base_url=URL, token=given.secret, raise_on_unexpected_status=True)
assert call(get_holdout, card.id, client=partner, status=404).code == "not-found"
slice_ = models.NewGrant(key=given.id, holdout=card.id, questions=2, shows=models.NewGrantShows.VALUE)
grant = known(call(create_grant, client=admin, body=slice_, status=201))
assert call(create_grant, client=admin, body=slice_, status=409).code == "conflict"
assert [g.id for g in known(call(list_grants, client=partner)).grants] == [grant.id] and grant.questions.left == 2, grant
narrowed = known(call(ask, card.id, client=partner, body=question))
assert narrowed.replayed and narrowed.answer.value == first.answer.value and narrowed.answer.interval is None, narrowed
assert narrowed.answer.shows == "value" and narrowed.answer.source == "hidden" and narrowed.budget.questions.of == 2, narrowed
spenders = known(call(get_spending, card.id, client=admin)).spenders
assert [(s.key.id, s.questions) for s in spenders] == [(made.id, spent)], spenders
call(revoke_grant, grant.id, client=admin, status=204)
assert call(ask, card.id, client=partner, body=question, status=403).code == "grant-ended"

books = [json.loads(line) for line in call(export_ledger, card.id, client=admin).splitlines()]
assert len(books) > len(history), len(books)

# Errors are parsed, with the place of what is wrong.
wrong = call(ask, card.id, client=analyst, body=models.FractionQuery(type_="fraction", of="dealy > 15"), status=422)
assert wrong.code == "invalid" and wrong.errors[0].pointer == "/of" and wrong.errors[0].suggestion == "delay", wrong
other = call(ask, card.id, client=analyst, body=models.FractionQuery(type_="fraction", of="delay > 16"), idempotency_key="one", status=422)
assert other.code == "idempotency-mismatch", other
body = io.BytesIO()
flights.assign(more=1.0).to_parquet(body)
body.seek(0)
copy = call(create_holdout, client=admin, body=File(payload=body), mechanism="gaussian", questions=3, status=409)
assert copy.code == "rows-known" and copy["holdout"] == card.id and copy["overlaps"], copy
body.seek(0)
small = known(call(create_holdout, client=admin, body=File(payload=body), mechanism="gaussian", questions=3, overlap="accepted", status=201))
assert "rows-known" in [w.code for w in small.warnings], small.warnings  # which holdouts they are of is said when a part is handed out
call(get_training, small.id, client=admin)
assert known(call(get_holdout, small.id, client=admin)).overlaps[0].holdout == card.id
dear = call(ask, small.id, client=analyst, body=models.FrequenciesQuery(type_="frequencies", of="origin", values=["SFO", "OAK", "LAX", "JFK", "ORD"]),
            max_questions=4, status=403)
assert dear.code == "budget-exhausted" and dear["requested"] > dear["remaining"] == 3, dear
call(delete_holdout, small.id, client=admin, status=204)

# A final report: planned, made once, read, and the end.
body = io.BytesIO()
flights.assign(more=2.0).to_parquet(body)
body.seek(0)
closing = known(call(create_holdout, client=admin, body=File(payload=body), name="closing", mechanism="guess_and_check", questions=30, overlap="accepted",
                     status=201))
late = models.FractionQuery(type_="fraction", of="delay > 15", note="late")
foreseen = known(call(plan_report, closing.id, client=analyst, body=models.PlanReportBody(queries=[late])))
assert foreseen.closes == 30 and foreseen.answers[0].half_width > 0, foreseen
assert call(get_report, closing.id, client=analyst, status=404).code == "not-found"
wanted = models.NewRelease(epsilon=1, release_epsilon=2, columns=[models.ColumnRequest(name="delay", low=-60, high=180, edges=[0, 15]),
                                                                  models.ColumnRequest(name="origin", texts=["SFO"])])
assert call(make_release, closing.id, client=analyst, body=wanted, status=403).code == "forbidden"
released = known(call(make_release, closing.id, client=admin, body=wanted))
assert released.columns[0].mean.low <= released.columns[0].mean.value and released.columns[1].cells[1].other and released.ledger.seq == 1, released
assert [r.to_dict() for r in known(call(list_releases, closing.id, client=admin)).releases] == [released.to_dict()]
assert call(make_release, closing.id, client=admin, body=models.NewRelease(epsilon=1.5), status=403)["remaining"] == 1
ending = models.CloseWithReportBody(queries=[late], close=True, title="the end")
assert call(close_with_report, closing.id, client=analyst, body=ending, status=403).code == "forbidden"
report = known(call(close_with_report, closing.id, client=admin, body=ending))
assert report.title == "the end" and report.answers[0].note == "late" and report.ledger.head in report.text, report
assert known(call(get_report, closing.id, client=analyst)).to_dict() == report.to_dict()
assert report.ledger.head in call(get_report_page, closing.id, client=analyst)
assert known(call(get_holdout, closing.id, client=analyst)).closed and known(call(get_budget, closing.id, client=analyst)).closed
assert call(ask, closing.id, client=analyst, body=models.FractionQuery(type_="fraction", of="delay > 16"), status=403).code == "budget-exhausted"
assert call(get_retired, closing.id, client=analyst, status=409).code == "conflict"
assert call(retire_holdout, closing.id, client=analyst, status=403).code == "forbidden"
assert call(retire_holdout, closing.id, client=admin, status=409).code == "rows-known"  # the first one holds them out, and answers still
assert call(delete_holdout, card.id, client=analyst, status=403).code == "forbidden"
assert call(get_holdout, "ho_none", client=analyst, status=404).code == "not-found"
assert call(void_held, card.id, client=analyst, status=403).code == "forbidden"
call(revoke_key, made.id, client=admin, status=204)
assert call(get_holdout, card.id, client=analyst, status=401).code == "unauthorized"

assert "held" not in known(call(void_held, card.id, client=admin)).to_dict()  # nothing is: there is no source
call(delete_holdout, card.id, client=admin, status=204)
assert known(call(retire_holdout, closing.id, client=admin)).retired
parts = known(call(get_holdout, closing.id, client=admin)).rows
released = pandas.read_parquet(call(get_retired, closing.id, client=admin).payload)
assert len(released) == parts.holdout + (parts.check or 0), parts
call(delete_holdout, closing.id, client=admin, status=204)
assert call(get_holdout, card.id, client=admin, status=404).code == "not-found"
assert known(call(list_holdouts, client=admin)).holdouts == []

operations = {o["operationId"].replace("-", "_") for path in document["paths"].values() for o in path.values()}
called.add("follow_answers")  # a stream that ends when the reader leaves: a generated client waits for its end
assert called == operations, called ^ operations
print(f"{len(operations)} operations, {len(types)} types by {len(queries)} examples OK", flush=True)
os._exit(0)  # threads of the libraries abort now and then while the interpreter is taken down
