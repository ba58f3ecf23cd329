"""Fitted estimators, asked about as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from conftest import table
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, RidgeClassifier, SGDClassifier
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import holdoutd
from holdoutd.models import export
from holdoutd.sklearn import HoldoutSearchCV

FEATURES = ["x", "z", "support tickets"]


@pytest.fixture(scope="module")
def fitted(ds: holdoutd.Dataset) -> tuple[pd.DataFrame, Any]:
    training = ds.training()
    return training, LogisticRegression().fit(training[FEATURES], training.late)


def fresh() -> pd.DataFrame:
    """Rows of the same law that nobody has seen, to judge by."""
    return table(999, 200_000)


def test_scores_are_those_of_the_library(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    """Every interval has the truth of fresh data in it. Notices a model, a label or a metric that is mistaken for another: the
    intervals are narrower than the distance to each of the others' values."""
    training, model = fitted
    new = fresh()
    probability = model.predict_proba(new[FEATURES])[:, 1]
    answers = {
        accuracy_score(new.late, probability >= 0.5): ds.score(model, label="late"),
        log_loss(new.late, probability): ds.score(model, "log_loss", label="late"),
        roc_auc_score(new.late, probability): ds.score(model, "roc_auc", label="late"),
        r2_score(new.amount, LinearRegression().fit(training[["x"]], training.amount).predict(new[["x"]])): ds.score(
            LinearRegression().fit(training[["x"]], training.amount), "r2", label="amount", range=(-10, 30)
        ),
    }
    for truth, answer in answers.items():
        assert truth in answer, (truth, answer)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lightgbm.LGBMClassifier(n_estimators=10, verbose=-1),
        lambda: xgboost.XGBClassifier(n_estimators=10),
        lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        lambda: RandomForestClassifier(10, max_depth=5, random_state=0),
    ],
    ids=["lightgbm", "xgboost", "pipeline", "forest"],
)
def test_libraries(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any], make: Any) -> None:
    """The server evaluates the model as the library does: what explain says of the training part is the library's own number."""
    training, _ = fitted
    model = make().fit(training[FEATURES], training.late)
    said = ds.explain(dict(holdoutd.q.accuracy("late", model=export(model, FEATURES)))).raw["training"]
    assert abs(said - model.score(training[FEATURES], training.late)) < 1e-9 or ds.card.raw["units"].get("check")
    assert ds.score(model, label="late").value is not None, "a name with a space is found"


def test_texts(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    training, _ = fitted
    prepare = ColumnTransformer([("n", StandardScaler(), ["x", "z"]), ("t", OneHotEncoder(handle_unknown="ignore"), ["origin"])])
    columns = ["x", "z", "origin"]
    model = make_pipeline(prepare, LogisticRegression()).fit(training[columns], training.late)
    assert ds.score(model, label="late").value is not None


def test_compare(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    training, good = fitted
    bad = LogisticRegression().fit(training[FEATURES], ~training.late)  # as wrong as a model can be
    assert ds.compare(bad, good, label="late").verdict == "yes"
    assert ds.compare(good, bad, "log_loss", label="late").verdict in ("no", "undecided")
    same = ds.compare(bad, good, "accuracy", label="late")
    assert same.replayed, "accuracy is what a compare of models is about"
    with pytest.raises(ValueError, match="did you mean 'accuracy'"):
        ds.compare(bad, good, "acuracy", label="late")


def test_a_search_asks_once_for_each_candidate(server: holdoutd.Server) -> None:
    """Notices a question for each fold, and one for each time that scikit-learn scores."""
    ds = server.upload(table(31), name="search", holdout=0.5, questions=200, label="late")
    training = ds.training()
    scorer = ds.scorer("accuracy", label="late")
    search = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1e-3, 1e-2, 1]}, scoring=scorer, cv=ds.cv())
    search.fit(training[FEATURES], training.late)
    assert len(scorer.answers) == 4 and ds.budget.questions.left == 196
    assert search.best_score_ == max(float(a) for a in scorer.answers)
    again = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1e-3, 1e-2, 1]}, scoring=ds.scorer("accuracy"), cv=ds.cv())
    again.fit(training[FEATURES], training.late)
    assert ds.budget.questions.left == 196, "the same models again are replays"


def test_a_search_that_asks_about_the_best_only(server: holdoutd.Server) -> None:
    ds = server.upload(table(32), name="search", holdout=0.5, questions=200, label="late")
    training = ds.training()
    grid = {"max_depth": [1, 2, 3, 4, 5, 6, 8, 12], "min_samples_leaf": [1, 50]}
    search = HoldoutSearchCV(DecisionTreeClassifier(random_state=0), grid, holdout=ds).fit(training[FEATURES], training.late)
    assert search.candidates_ == 16 > len(search.answers_) >= search.spent_["questions"] == 200 - ds.budget.questions.left > 0
    assert search.spent_["questions"] == len({a.id for _, _, a in search.answers_}), "equal trees are one question"
    scores = [s for _, s, _ in search.answers_]
    assert scores == sorted(set(scores)), "each is better in training than all before it"
    assert (search.predict(training[FEATURES]) == search.best_estimator_.predict(training[FEATURES])).all()
    assert f"{search.candidates_} candidates" in search.report()


def test_what_cannot_be_exported(server: holdoutd.Server, ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    """It is refused with what can be done, and done where the features are public. Notices rows in another order."""
    training, _ = fitted
    neighbours = KNeighborsClassifier().fit(training[FEATURES], training.late)
    with pytest.raises(holdoutd.CannotExport, match="features='public'"):
        ds.score(neighbours, label="late")
    with pytest.raises(holdoutd.CannotExport, match="plain function"):
        ds.score(lambda frame: frame.x > 0, label="late")
    with pytest.raises(holdoutd.CannotExport, match="columns="):
        ds.score(LogisticRegression().fit(training[FEATURES].to_numpy(), training.late), label="late")
    public = server.upload(table(33), name="public", holdout=0.5, questions=100, label="late", features="public", mechanism="gaussian")
    mine = public.training()
    neighbours = KNeighborsClassifier(25).fit(mine[FEATURES], mine.late)
    truth = accuracy_score(fresh().late, neighbours.predict(fresh()[FEATURES]))
    assert truth in public.score(neighbours)
    assert truth > 0.7 > 0.55 and (public.score(lambda frame: (frame.x > 0).astype(float)).high or 0) > 0.6
    with pytest.raises(ValueError, match="1 predictions for"):
        public.score(lambda frame: np.zeros(1))


def test_a_margin_is_decided_at_zero(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    """Accuracy of a classifier without probabilities is that of its own predict. Notices a threshold of one half."""
    training, _ = fitted
    for model in LinearSVC(), RidgeClassifier(), make_pipeline(StandardScaler(), SGDClassifier(random_state=0)):
        model.fit(training[FEATURES], training.late)
        said = ds.explain(dict(holdoutd.q.accuracy("late", model=model))).raw
        assert abs(said["training"] - model.score(training[FEATURES], training.late)) < 1e-9, model
        assert said["canonical"]["threshold"] == 0
    hinge = {"type": "loss", "loss": "hinge", "label": "late", "range": [0, 9], "model": model}
    assert "threshold" not in ds.explain(hinge).raw["canonical"]


def early(training: pd.DataFrame) -> Any:
    model = xgboost.XGBClassifier(n_estimators=300, learning_rate=0.9, early_stopping_rounds=3)
    half = len(training) // 2
    x, y = training[FEATURES], training.late
    return model.fit(x[:half], y[:half], eval_set=[(x[half:], y[half:])], verbose=False)


def test_stopped_early_and_loaded(fitted: tuple[pd.DataFrame, Any], tmp_path: Path) -> None:
    """Notices trees beyond the best iteration, which predict leaves out."""
    training, _ = fitted
    model = early(training)
    assert model.best_iteration + 1 < len(model.get_booster().get_dump())
    model.save_model(tmp_path / "model.json")
    loaded = xgboost.XGBClassifier()
    loaded.load_model(tmp_path / "model.json")
    assert export(loaded, FEATURES, rows=training) == export(model, FEATURES, rows=training)


INEXACT: dict[str, Any] = {
    "log link": lambda x, late, amount: PoissonRegressor().fit(x, amount.clip(0.1)),
    "probabilities of a discriminant": lambda x, late, amount: LinearDiscriminantAnalysis().fit(x, late),
    "modified huber": lambda x, late, amount: SGDClassifier(loss="modified_huber", random_state=0).fit(x, late),
    "PLS": lambda x, late, amount: PLSRegression(2).fit(x + 3, amount),
    "votes of margins": lambda x, late, amount: BaggingClassifier(LinearSVC(), n_estimators=3, random_state=0).fit(x, late),
    "missing": lambda x, late, amount: xgboost.XGBClassifier(n_estimators=5, missing=1).fit(x, late),
    "two targets": lambda x, late, amount: xgboost.XGBRegressor(n_estimators=3).fit(x, np.stack([amount, amount**2], axis=1)),
    "vector leaves": lambda x, late, amount: xgboost.XGBClassifier(
        n_estimators=3, multi_strategy="multi_output_tree", tree_method="hist"
    ).fit(x, np.digitize(amount, [8, 12])),
    "linear leaves": lambda x, late, amount: lightgbm.LGBMRegressor(n_estimators=5, linear_tree=True, verbose=-1).fit(x, amount),
    "root of the label": lambda x, late, amount: lightgbm.LGBMRegressor(n_estimators=5, reg_sqrt=True, verbose=-1).fit(x, amount),
    "own objective": lambda x, late, amount: lightgbm.LGBMRegressor(
        n_estimators=3, verbose=-1, objective=lambda y, p: (p - y, np.ones_like(y))
    ).fit(x, amount),
    "own threshold": lambda x, late, amount: FixedThresholdClassifier(LogisticRegression(), threshold=0.2).fit(x, late),
    "unfitted": lambda x, late, amount: RandomForestClassifier(),
}


@pytest.mark.parametrize("kind", INEXACT)
@pytest.mark.parametrize("given", [True, False], ids=["on rows", "on probes"])
def test_nothing_inexact_is_sent(fitted: tuple[pd.DataFrame, Any], kind: str, given: bool) -> None:
    """Models that are not what their numbers seem to say are refused by the comparison with the library, or by name."""
    training, _ = fitted
    model = INEXACT[kind](training[FEATURES].astype(float), training.late, training.amount)
    with pytest.raises(ValueError, match=r"is not the library's|not exported|cannot be read|outputs"):
        export(model, FEATURES, rows=training if given else None)


def test_a_one_hot_that_is_sparse(fitted: tuple[pd.DataFrame, Any]) -> None:
    """XGBoost takes the zeros of a sparse matrix for nulls: the export, which does not, is refused; without sparse it is exact."""
    training, _ = fitted
    columns = ["x", "z", "origin"]
    for sparse in (True, False):
        prepare = ColumnTransformer(
            [("t", OneHotEncoder(sparse_output=sparse), ["origin"])], remainder="passthrough", sparse_threshold=float(sparse)
        )
        model = make_pipeline(prepare, xgboost.XGBClassifier(n_estimators=10)).fit(training[columns], training.late)
        for rows in (training, None):
            if sparse:
                with pytest.raises(ValueError, match=r"is not the library's|could not be compared"):
                    export(model, columns, rows=rows)
            else:
                export(model, columns, rows=rows)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_library_that_refuses_nulls(fitted: tuple[pd.DataFrame, Any], kind: str) -> None:
    """Fitted on the rows without nulls it is compared on those; what it has no prediction for stands in nobody's way."""
    training, _ = fitted
    holed = training[FEATURES].astype(float)
    holed.loc[::3, "x"] = np.nan
    whole = holed.x.notna()
    model = LogisticRegression().fit(holed[whole], training.late[whole])
    rows = {"pandas": holed, "polars": pl.from_pandas(holed), "pyarrow": pa.Table.from_pandas(holed)}[kind]
    assert "linear" in export(model, FEATURES, rows=rows)
    wrong = PoissonRegressor().fit(holed[whole], training.amount[whole].clip(0.1))
    with pytest.raises(ValueError, match=r"is not the library's: on rows of the training part, "):
        export(wrong, FEATURES, rows=rows)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_texts_that_became_categories(fitted: tuple[pd.DataFrame, Any], library: str, kind: str) -> None:
    """Rows as they were downloaded, with texts, are compared as the categories that the model was fitted on."""
    training, _ = fitted
    frame = training[["x", "origin"]].assign(origin=training.origin.str.replace(r"[^A-Za-z]", "", regex=True))
    make = {
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=5, verbose=-1),
        "xgboost": xgboost.XGBClassifier(n_estimators=5, enable_categorical=True),
    }
    model = make[library].fit(frame.astype({"origin": "category"}), training.late)
    rows = {"pandas": frame, "polars": pl.from_pandas(frame), "pyarrow": pa.Table.from_pandas(frame)}[kind]
    for given in (rows, None):
        assert "trees" in export(model, ["x", "origin"], rows=given)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_small_and_large_numbers(fitted: tuple[pd.DataFrame, Any], unit: float) -> None:
    """In any unit of the label the exact are exported and the others refused, one row of enormous predictions notwithstanding. Notices a
    tolerance that is absolute, or that of the largest prediction."""
    training, _ = fitted
    x, amount = training[FEATURES].astype(float), training.amount.clip(0.1) * unit
    for exact in (
        LinearRegression(),
        DecisionTreeRegressor(max_depth=4),
        xgboost.XGBRegressor(n_estimators=5),
        lightgbm.LGBMRegressor(verbose=-1),
    ):
        export(exact.fit(x, amount), FEATURES, rows=training)
    far = training.copy()
    far.loc[far.index[0], "x"] = 300.0
    wrong = PoissonRegressor(alpha=1e-9).fit(x, amount / unit)
    with pytest.raises(ValueError, match=r"200 of 200"):
        export(wrong, FEATURES, rows=far)
    with pytest.raises(ValueError, match=r"is not the library's"):
        export(PLSRegression(2).fit(x + 3, amount), FEATURES, rows=training)


def test_what_verification_says(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    """Which row, which two numbers, and how to go on; and whoever knows better may leave it out."""
    training, _ = fitted
    model = PoissonRegressor().fit(training[FEATURES], training.amount.clip(0.1))
    with pytest.raises(holdoutd.CannotExport, match=r"at x=.*, it predicts .* and the library .*200 of 200 .*features='public'"):
        ds.score(model, "rmse", label="amount", max_error=100)
    assert "linear" in export(model, FEATURES, verify=False)
