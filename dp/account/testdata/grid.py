"""Writes dp_accounting.json: what Google's dp_accounting says of a grid of events, which TestDPAccounting compares with.

    python -m venv venv && venv/bin/pip install dp-accounting==0.6.0 && venv/bin/python dp/account/testdata/grid.py

An event is in the form of account.ReadEvent. An entry has the accountant, the event, a delta, and the epsilon.
"""

import importlib.metadata
import json
import math
import os
import warnings

import dp_accounting
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.pld import accountant as composition
from dp_accounting.rdp import rdp_privacy_accountant

warnings.filterwarnings("ignore")
# Orders of account.DefaultOrders. The series for Poisson samples at orders between whole numbers end early, or are left away with a warning, so of these samples whole orders are compared.
ORDERS = [i / 10 for i in range(11, 110)] + [float(i) for i in range(11, 65)] + [128.0, 256.0, 512.0, 1024.0]
WHOLE = [float(i) for i in range(2, 65)] + [128.0, 256.0, 512.0, 1024.0]
ADD, REPLACE = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, dp_accounting.NeighboringRelation.REPLACE_ONE


def gaussian(m):
    return {"kind": "gaussian", "multiplier": m}


def laplace(m):
    return {"kind": "laplace", "multiplier": m}


def pure(eps):
    return {"kind": "approximate", "epsilon": eps, "delta": 0}


def times(event, k):
    return {"kind": "times", "times": k, "event": event}


def poisson(rate, event):
    return {"kind": "poisson", "rate": rate, "event": event}


def fixed(taken, rows, event):
    return {"kind": "fixed size", "taken": taken, "rows": rows, "event": event}


def every(*events):
    return {"kind": "all", "events": list(events)}


def of(e):
    """The event as dp_accounting has it."""
    kind = e["kind"]
    if kind == "gaussian":
        return dp_event.GaussianDpEvent(float(e["multiplier"]))  # a whole number within a composition would be taken for no multiplier
    if kind == "laplace":
        return dp_event.LaplaceDpEvent(e["multiplier"])
    if kind == "approximate":  # randomized response: says another thing with probability 1/(1+e^eps)
        return dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(e["epsilon"])), 2)
    if kind == "concentrated":
        return dp_event.ZCDpEvent(e["rho"])
    if kind == "times" and e["event"]["kind"] == "approximate":  # the accountant of losses leaves the number of randomized responses away
        return dp_event.ComposedDpEvent([of(e["event"])] * e["times"])
    if kind == "times":
        return dp_event.SelfComposedDpEvent(of(e["event"]), e["times"])
    if kind == "poisson":
        return dp_event.PoissonSampledDpEvent(e["rate"], of(e["event"]))
    if kind == "fixed size":
        return dp_event.SampledWithoutReplacementDpEvent(e["rows"], e["taken"], of(e["event"]))
    return dp_event.ComposedDpEvent([of(x) for x in e["events"]])


entries = []


def entry(accountant, relation, event, delta):
    if accountant == "renyi":
        a = rdp_privacy_accountant.RdpAccountant(ORDERS, relation)
    elif accountant == "renyi whole":
        a = rdp_privacy_accountant.RdpAccountant(WHOLE, relation)
    else:
        a = pld_privacy_accountant.PLDAccountant(relation)
    a.compose(of(event))
    eps = float(a.get_epsilon(delta))
    entries.append({"accountant": accountant, "event": event, "delta": delta, "epsilon": eps})


DELTAS = [1e-3, 1e-6, 1e-10]
for delta in DELTAS:
    for m in [0.5, 1, 3, 20]:
        for k in [1, 10, 500]:
            entry("renyi", ADD, times(gaussian(m), k), delta)
            entry("renyi", ADD, times(laplace(m), k), delta)
    for rate in [0.001, 0.02, 0.3]:
        for m in [0.7, 1.1, 4]:
            for k in [1, 100, 5000]:
                entry("renyi whole", ADD, times(poisson(rate, gaussian(m)), k), delta)
    for taken in [10, 200, 3000]:
        for m in [1.1, 4]:
            for k in [1, 100, 5000]:
                entry("renyi", REPLACE, times(fixed(taken, 10000, gaussian(m)), k), delta)
    for eps in [0.1, 1, 3]:
        for k in [1, 50]:
            entry("renyi", REPLACE, times(pure(eps), k), delta)
    entry("renyi whole", ADD, every({"kind": "concentrated", "rho": 0.05}, laplace(5), times(poisson(0.1, gaussian(2)), 30)), delta)
    entry("renyi whole", ADD, poisson(0.05, every(gaussian(3), times(gaussian(4), 2))), delta)
for delta in [1e-3, 1e-5, 1e-8]:
    for m, k in [(0.5, 1), (1, 1), (1, 20), (5, 300)]:
        entry("losses", ADD, times(gaussian(m), k), delta)
    for m, k in [(0.5, 1), (2, 1), (2, 10), (20, 200)]:
        entry("losses", ADD, times(laplace(m), k), delta)
    for rate, m, k in [(0.01, 1.1, 1000), (0.2, 2, 100), (0.5, 1, 1), (0.001, 0.7, 2000)]:
        entry("losses", ADD, times(poisson(rate, gaussian(m)), k), delta)
    for eps, k in [(1, 10), (2, 5)]:  # on the grid of losses: between its points they are rounded up there, and split here
        entry("losses", REPLACE, times(pure(eps), k), delta)
    entry("losses", ADD, every(gaussian(2), laplace(3), times(poisson(0.1, gaussian(2)), 30)), delta)
for eps, delta_each, k, total in [(0.1, 0, 100, 1e-6), (0.01, 0, 1000, 1e-5), (1, 0, 10, 1e-3), (0.1, 1e-8, 50, 1e-5)]:
    e = composition.advanced_composition(composition.common.DifferentialPrivacyParameters(eps, delta_each), k, total)
    entries.append({"accountant": "optimal grid", "event": times({"kind": "approximate", "epsilon": eps, "delta": delta_each}, k), "delta": total, "epsilon": float(e)})

with open(os.path.join(os.path.dirname(__file__), "dp_accounting.json"), "w") as f:
    f.write('{"version": "dp-accounting %s", "entries": [\n' % importlib.metadata.version("dp-accounting"))
    f.write(",\n".join(" " + json.dumps(e) for e in entries))
    f.write("\n]}\n")
print(len(entries), "entries")
