"""What the scripts beside this have in common: a holdoutd server, its holdouts and its answers.

Arguments of a script: the server's URL, the file of the admin key, the demo's flights, the page of examples, and --update to write
the page's numbers.
"""

import io
import re
import sys

import requests

URL, KEY, FLIGHTS, EXAMPLES = sys.argv[1:5]
api = requests.Session()
api.headers["Authorization"] = "Bearer " + open(KEY).read().strip()
GRID = 2.0**-30
uploads = []


def create(table, **settings):
    """Makes a holdout. A script makes several of the same rows, and the server runs with --reused-rows warn. Another column makes another table
    of them: the very same table cannot be created again. Columns are no part of the split, so the same rows are held out."""
    uploads.append(f"upload{len(uploads)}")
    body = io.BytesIO()
    table.assign(**{uploads[-1]: 0.0}).to_parquet(body)
    reply = api.post(URL + "/v1/holdouts", params=settings, data=body.getvalue())
    assert reply.ok, reply.text
    return reply.json()


def ask(holdout, path="", **query):
    params = {} if path else {"max_questions": 10**9}  # the price of each is meant
    reply = api.post(f"{URL}/v1/holdouts/{holdout['id']}/queries{path}", json=query, params=params)
    assert reply.ok, (str(query)[:300], reply.text)
    return reply.json() if path else reply.json()["answer"]


def near(got, want, tolerance, what):
    assert got is not None and abs(got - want) <= tolerance, (what, got, want, tolerance)


def show(number):
    """A number of an answer as it is printed. What is noisy may be undefined: the correlation of a variance that noise has made negative."""
    return "undefined" if number is None else f"{number:.4g}"


def show_interval(interval):
    return f"[{show(interval.get('low'))}, {show(interval.get('high'))}]"


def check_intervals(question, truth, answer):
    """Holds the intervals of an answer to the exact numbers of the same rows, each a fifth wider, so that noise alone fails this less than once
    in 10,000 runs. Returns how far each interval reaches from its number, none for a number that is undefined."""
    widths = []
    pairs = zip(truth["items"], answer["items"]) if "items" in answer else []
    if "low" in answer["interval"]:
        pairs = [(truth, {"value": answer["value"], **answer["interval"]}), *pairs]
    for exact, noisy in pairs:
        want, got, low, high = exact["value"], noisy["value"], noisy["low"], noisy["high"]
        slack = (high - low) / 5
        assert want is None or low - slack <= want <= high + slack, (question, want, answer)
        assert got is None or low <= got <= high, (question, answer)
        widths += [] if got is None else [max(high - got, got - low)]
    return widths


def show_widths(widths):
    return f"{len(widths)} items, ±{min(widths):.3g} to ±{max(widths):.3g}" if widths else "no item is defined"


def items(answer):
    return {item["of"]: item["value"] for item in answer["items"]}


def check_page(example):
    """Holds the page's examples, a question with what it gets, to what example makes of them; --update writes them."""
    page = open(EXAMPLES).read()
    answered = re.sub(r"```json\n(.*?)\n```\n\n```text\n.*?```", example, page, flags=re.S)
    if sys.argv[5:] == ["--update"]:
        open(EXAMPLES, "w").write(answered)
    elif page != answered:
        sys.exit(f"the examples say other numbers than the server; if that is meant, give this script --update:\n{answered}")
