"""What the scripts beside this have in common: a holdoutd server, its holdouts and its answers.

Arguments of a script: the server's URL, the file of the admin key, the demo's flights, the page of examples, and --update to write
the page's numbers.
"""

import io
import os
import re
import sys

import requests

URL, KEY, FLIGHTS, EXAMPLES = sys.argv[1:5]
api = requests.Session()
api.headers["Authorization"] = "Bearer " + open(KEY).read().strip()
GRID = 2.0**-30
uploads = []


def create(table, **settings):
    """One table is one holdout. Another column name makes another table, which the server splits in the same way."""
    uploads.append(f"upload{len(uploads)}")
    body = io.BytesIO()
    table.assign(**{uploads[-1]: 0.0}).to_parquet(body)
    reply = api.post(URL + "/v1/holdouts", params={"overlap": "accepted", **settings}, data=body.getvalue())
    assert reply.ok, reply.text
    return reply.json()


def ask(holdout, path="", **query):
    params = {} if path else {"max_questions": 10**9}  # the price of each is meant
    reply = api.post(f"{URL}/v1/holdouts/{holdout['id']}/queries{path}", json=query, params=params)
    assert reply.ok, (str(query)[:300], reply.text)
    return reply.json() if path else reply.json()["answer"]


def near(got, want, tolerance, what):
    assert got is not None and abs(got - want) <= tolerance, (what, got, want, tolerance)


def items(answer):
    return {item["of"]: item["value"] for item in answer["items"]}


def done(text):
    """Ends the script. Nothing of the interpreter is taken down: threads of the libraries abort in it now and then, on a busy machine."""
    print(text, flush=True)
    os._exit(0)


def check_page(example):
    """Holds the page's examples, a question with what it gets, to what example makes of them; --update writes them."""
    page = open(EXAMPLES).read()
    answered = re.sub(r"```json\n(.*?)\n```\n\n```text\n.*?```", example, page, flags=re.S)
    if sys.argv[5:] == ["--update"]:
        open(EXAMPLES, "w").write(answered)
    elif page != answered:
        sys.exit(f"the examples say other numbers than the server; if that is meant, give this script --update:\n{answered}")
