"""What a small team might have asked the demo: real trees, fitted to the training part, and their training scores as guesses."""

import holdoutd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

server = holdoutd.connect()


def analyst(name: str) -> holdoutd.Dataset:
    return holdoutd.connect(server.url, key=server.new_key(name)["secret"]).holdout("flights (demo)")


mine, hers, nightly = analyst("analyst-1"), analyst("analyst-2"), analyst("nightly-run")
train = mine.training()
late = train.delay > 0
for of, note in [("delay < 0", "early arrivals"), ("distance > 1500", "long haul"), ("delay > 60", "very late"), ("date.getHours() >= 18", "evening departures")]:
    hers.fraction(of, note=note)
for where, note in [("date.getMonth() == 0", "late in January"), ("date.getMonth() == 5", "late in June"), ("distance > 1500", "late, long haul"), ("origin == 'ATL'", "late, from ATL")]:
    hers.fraction("delay > 15", where=where, note=note)
mine.mean("delay", range=(-60, 180), note="mean delay")
mine.median("delay", range=(-60, 180), note="median delay")

prepare = ColumnTransformer([("airports", OrdinalEncoder(), ["origin", "destination"]), ("miles", "passthrough", ["distance"])])
columns = ["distance", "origin", "destination"]
for depth, asker in [(2, mine), (4, mine), (8, mine), (12, mine), (18, nightly), (30, nightly)]:
    tree = make_pipeline(prepare, DecisionTreeClassifier(max_depth=depth, random_state=1)).fit(train[columns], late)
    asker.score(tree, "accuracy", label="delay > 0", guess=tree.score(train[columns], late), note=f"tree, depth {depth}")
