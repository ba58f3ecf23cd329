"""Fitted estimators, asked about as they are."""

from __future__ import annotations

import copy
import gzip
import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import optuna
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from conftest import Running, table
from optuna_integration import OptunaSearchCV
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, RidgeClassifier, SGDClassifier
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    log_loss,
    r2_score,
    recall_score,
    roc_auc_score,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, GroupKFold, HalvingGridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import holdoutd
from holdoutd import _evaluate, models
from holdoutd._scores import metric_query
from holdoutd._steps import keep_model
from holdoutd._wire import COMPRESSED, Call, dumps
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
    with pytest.warns(holdoutd.HoldoutWarning, match="cv=ds.cv()"):  # ordinary folds: it says what they cost
        GridSearchCV(LogisticRegression(), {"C": [1]}, scoring=ds.scorer(), cv=2).fit(training[FEATURES], training.late)
    with warnings.catch_warnings():
        warnings.simplefilter("error", holdoutd.HoldoutWarning)
        again.fit(training[FEATURES], training.late)
        ds.scorer()(again.best_estimator_, training[FEATURES], training.late)


def test_a_search_ends_where_it_cannot_ask(server: holdoutd.Server) -> None:
    """Models that are not exported, and a spent budget, end a search with that error. Notices scores that are nan."""
    ds = server.upload(table(34), name="ends", holdout=0.5, questions=3, mechanism="gaussian", label="late")
    training = ds.training()
    x = training[FEATURES]
    with pytest.raises(holdoutd.SearchEnded, match="with the metric euclidean or manhattan") as ended:
        GridSearchCV(KNeighborsClassifier(metric="chebyshev"), {"n_neighbors": [3, 5]}, scoring=ds.scorer(), cv=ds.cv()).fit(
            x, training.late
        )
    assert isinstance(ended.value.__cause__, holdoutd.CannotExport) and ds.budget.questions.left == 3
    with pytest.raises(holdoutd.SearchEnded) as ended:
        grid = {"max_depth": [1, 2, 3, 4, 5, 6]}
        GridSearchCV(DecisionTreeClassifier(random_state=0), grid, scoring=ds.scorer(), cv=ds.cv()).fit(x, training.late)
    assert isinstance(ended.value.__cause__, holdoutd.BudgetExhausted) and ds.budget.questions.left == 0


def test_searches(server: holdoutd.Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every search asks once for each model, in other processes too, and finds the best. Notices a key that travels."""
    ds = server.upload(table(35), name="searches", holdout=0.5, questions=400, mechanism="gaussian", label="late")
    training = ds.training()
    x, y = training[FEATURES], training.late
    grid = {"C": [1e-4, 1e-3, 1e-2, 1]}

    def candidates() -> list[float]:
        return [float(ds.score(LogisticRegression(C=c).fit(x, y), "log_loss")) for c in grid["C"]]

    best = grid["C"][int(np.argmin(candidates()))]
    left = ds.budget.questions.left
    for metric in ("log_loss", "neg_log_loss"):
        search = GridSearchCV(LogisticRegression(), grid, scoring=ds.scorer(metric), cv=ds.cv()).fit(x, y)
        assert search.best_params_ == {"C": best} and search.best_score_ == -min(candidates())
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.GridSampler(grid))
    study.optimize(lambda trial: float(ds.score(LogisticRegression(C=trial.suggest_float("C", 1e-4, 1)).fit(x, y), "log_loss")))
    assert study.best_params == {"C": best}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distributions = {"C": optuna.distributions.CategoricalDistribution(grid["C"])}
        found = OptunaSearchCV(
            LogisticRegression(), distributions, scoring=ds.scorer("log_loss"), cv=ds.cv(), n_trials=12, random_state=0
        ).fit(x, y)
    assert found.best_params_["C"] in grid["C"]
    halving = HalvingGridSearchCV(
        LogisticRegression(),
        {"C": [1e-3, 1]},
        scoring=ds.scorer("log_loss"),
        cv=ds.cv(),
        resource="max_iter",
        min_resources=50,
        max_resources=100,
    ).fit(x, y)
    assert halving.best_params_["C"] in (1e-3, 1) and ds.budget.questions.left >= left - 4

    given = holdoutd.connect(server.url, key=key_of(server)).holdout("searches")
    with pytest.raises(TypeError, match="n_jobs=None"):
        pickle.dumps(given.scorer())
    key = tmp_path / "key"
    key.write_text(key_of(server))
    of_file = holdoutd.connect(server.url, key=f"@{key}").holdout("searches")
    monkeypatch.setenv("HOLDOUTD_KEY", key_of(server))
    of_environment = holdoutd.connect(server.url).holdout("searches")
    for other in (of_file, of_environment):
        sent = pickle.dumps(other.scorer("log_loss"))
        assert key_of(server).encode() not in sent and key_of(server).removeprefix("hk_").encode() not in sent
    search = GridSearchCV(LogisticRegression(), grid, scoring=of_file.scorer("log_loss"), cv=ds.cv(), n_jobs=2).fit(x, y)
    assert search.best_params_ == {"C": best}


def key_of(server: holdoutd.Server) -> str:
    """The key of the tests' connection."""
    return str(server._http.headers["Authorization"]).removeprefix("Bearer ")


def test_names_of_metrics(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    """A slip is named, another measure never; and a name that says negative is no measure."""
    _, model = fitted
    for name, said in {
        "acuracy": "did you mean 'accuracy'",
        "top_k_accuracy": "there are accuracy",
        "average_precision": "Ask for roc_auc, .* or for precision and recall at the threshold",
        "pr_auc": "pr_auc is not answered",
    }.items():
        with pytest.raises(ValueError, match=said):
            ds.score(model, name, label="late")
    with pytest.raises(ValueError, match="less is better"):
        ds.score(model, "neg_log_loss", label="late")


def test_balanced_accuracy(server: holdoutd.Server) -> None:
    """By scikit-learn's name it is a measure of score, compare, scorers, searches and reports, and is scikit-learn's number: of models
    that are sent, of predictions, of texts as classes and of 0 and 1. Notices a constant guess that is better than one half, which a
    rare class makes of accuracy, and predictions that are sent as probabilities."""
    frame = table(141, 6000)
    rare = frame.late & (np.arange(len(frame)) % 3 == 0)
    frame = frame.drop(columns="late").assign(churned=np.where(rare, "yes", "no"), left=rare.astype(int))
    for label, features in (("churned", "secret"), ("left", "secret"), ("churned", "public"), ("left", "public")):
        ds = server.upload(
            frame.drop(columns={"churned": "left", "left": "churned"}[label]).assign(which=f"{label} {features}"),
            name=f"balanced {label} {features}", label=label, features=features, holdout=0.5, questions=200, tokens=20,
            mechanism="guess_and_check", overlap="accepted",
        )  # fmt: skip
        training = ds.training()
        x, y = training[FEATURES], training[label]
        model = LogisticRegression(class_weight="balanced").fit(x, y)
        never = DummyClassifier(strategy="most_frequent").fit(x, y)
        said = ds.score(model, "balanced_accuracy")
        assert said.cost.questions == 1 and said.low < said.value < said.high
        truth = balanced_accuracy_score(frame[label], model.predict(frame[FEATURES]))
        assert said.low <= truth <= said.high and abs(said.value - truth) < 0.06, (said, truth)
        if features == "public":  # what is never predicted is half right
            constant = ds.score(never, "balanced_accuracy")
            assert constant.value == 0.5, constant
            assert ds.score(never, "accuracy").value > 0.7
        other = DecisionTreeClassifier(max_depth=2, random_state=0).fit(x, y)
        gain = ds.compare(model, other, "balanced_accuracy")
        better = balanced_accuracy_score(frame[label], other.predict(frame[FEATURES])) - truth
        assert gain.cost.questions == 1 and gain.low <= better <= gain.high, (gain, better)
        search = HoldoutSearchCV(
            DecisionTreeClassifier(random_state=0, class_weight="balanced"),
            {"max_depth": [1, 4]},
            holdout=ds,
            metric="balanced_accuracy",
            cv=3,
        ).fit(x, y)
        assert search.best_score_ == search.best_answer_.value
        again = cross_val_score(search.best_estimator_, x, y, scoring="balanced_accuracy", cv=3).mean()
        assert again == search.cv_results_["mean_test_score"][search.best_index_], (
            "candidates are ordered by the metric that is asked about"
        )
        assert ds.scorer("balanced_accuracy")(model) == said.value
        report = ds.report({"logistic": model}, metric="balanced_accuracy", close=True)
        assert report.answers[0].low <= truth <= report.answers[0].high and "balanced accuracy" in report.text


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
    assert search.best_score_ == search.best_answer_.value == max(a.value for _, _, a in search.answers_)
    results = pd.DataFrame(search.cv_results_)
    assert len(results) == 16 and results.params[search.best_index_] == search.best_params_
    assert results.holdout_score.max() == search.best_score_ and results.holdout_score.notna().sum() == len(search.answers_)
    assert results.mean_test_score[results.rank_test_score == 1].iloc[0] == results.mean_test_score.max()
    assert list(results.param_max_depth) == [p["max_depth"] for p in results.params]
    assert search.score(training[FEATURES], training.late) == search.best_estimator_.score(training[FEATURES], training.late)
    left = ds.budget.questions.left
    by_area = HoldoutSearchCV(DecisionTreeClassifier(random_state=0), grid, holdout=ds, metric="roc_auc", cv=GroupKFold(3), n_jobs=2)
    by_area.fit(training[FEATURES], training.late, groups=training.index % 7)
    areas = [
        float(
            np.mean(
                cross_val_score(
                    clone(search.estimator).set_params(**p),
                    training[FEATURES],
                    training.late,
                    scoring="roc_auc",
                    cv=GroupKFold(3),
                    groups=training.index % 7,
                )
            )
        )
        for p in by_area.cv_results_["params"]
    ]
    assert areas == list(by_area.cv_results_["mean_test_score"]), "candidates are ordered by the metric that is asked about"
    assert by_area.best_score_ == by_area.best_answer_.value and ds.budget.questions.left < left
    loss = HoldoutSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}, holdout=ds, metric="log_loss")
    loss.fit(training[FEATURES], training.late)
    assert loss.best_score_ == -loss.best_answer_.value


def test_models_have_names(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    """What a model is called is its question's note: its own text, or what one says."""
    training, _ = fitted
    tree = DecisionTreeClassifier(max_depth=2, random_state=9).fit(training[FEATURES], training.late)
    boosted = xgboost.XGBClassifier(n_estimators=3).fit(training[FEATURES], training.late)
    piped = make_pipeline(StandardScaler(), LogisticRegression(C=0.03)).fit(training[FEATURES], training.late)
    asked = {
        "DecisionTreeClassifier(max_depth=2, random_state=9)": ds.score(tree, label="late"),
        "XGBClassifier": ds.score(boosted, label="late"),
        "LogisticRegression(C=0.03)": ds.score(piped, label="late"),
        "mine": ds.score(tree, "log_loss", label="late", name="mine"),
        "LogisticRegression(C=0.03) against XGBClassifier": ds.compare(boosted, piped, label="late"),
        "the two": ds.compare(boosted, piped, "log_loss", label="late", name="the two"),
    }
    history = ds.history().columns()
    notes = dict(zip(history["id"], history["note"], strict=True))
    assert {notes[answer.id]: answer.id for answer in asked.values()} == {name: answer.id for name, answer in asked.items()}


def test_classes_that_are_texts_are_searched(server: holdoutd.Server) -> None:
    """A search orders candidates by its metric whatever the two classes are called. Notices measures of one class that are asked of 1."""
    frame = table(38).assign(answer=lambda d: np.where(d.late, "yes", "no")).drop(columns="late")
    ds = server.upload(frame, name="texts", holdout=0.5, questions=100, label="answer")
    training = ds.training()
    for metric, function in (("f1", f1_score), ("recall", recall_score), ("brier", brier_score_loss)):
        search = HoldoutSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}, holdout=ds, metric=metric, cv=3)
        search.fit(training[FEATURES], training.answer)
        model = search.best_estimator_
        said = model.predict_proba(training[FEATURES])[:, 1] if metric == "brier" else model.predict(training[FEATURES])
        value = function(training.answer, said, pos_label="yes")
        assert search.score(training[FEATURES], training.answer) == (-value if metric == "brier" else value)


def test_public_features_without_a_check_part(server: holdoutd.Server) -> None:
    """Where questions are compared with the training part, which has no predictions, a model is exported though features are public."""
    ds = server.upload(
        table(39), name="unchecked", check=0, holdout=0.5, questions=50, label="late", features="public", mechanism="guess_and_check"
    )
    training = ds.training()
    assert ds.can_score(LogisticRegression()) and ds.score(LogisticRegression().fit(training[FEATURES], training.late)).value is not None
    assert not ds.can_score(GaussianProcessClassifier())
    booster = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(training[FEATURES], training.late).booster_
    assert ds.can_score(booster), ds.can_score(booster)


def test_a_scorer_that_looks_at_no_rows(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    """permutation_importance would be 0 throughout, since a holdout is asked about its own rows: it is refused, at no cost."""
    training, model = fitted
    left = ds.budget.questions.left
    for jobs in (None, 2):
        with pytest.raises(TypeError, match="asked about its own rows"):
            permutation_importance(model, training[FEATURES], training.late, scoring=ds.scorer(label="late"), n_jobs=jobs)
    assert ds.budget.questions.left == left


def test_before_it_is_fitted(server: holdoutd.Server) -> None:
    """can_score says what score would say, looks at nothing, and names a way that is still open."""
    frame = table(36)
    for features in ("secret", "public"):
        ds = server.upload(
            frame.assign(which=features),
            name=f"{features} features",
            holdout=0.5,
            questions=50,
            label="late",
            features=features,
            overlap="accepted",
        )
        assert ds.can_score(RandomForestClassifier()) and ds.can_score(make_pipeline(StandardScaler(), LogisticRegression()))
        assert ds.can_score(LinearRegression()) and ds.can_score(DecisionTreeClassifier().fit(frame[FEATURES], frame.late))
        odd = ds.can_score(GaussianProcessClassifier())
        assert bool(odd) == bool(ds.can_score(lambda rows: rows.x)) == (features == "public"), odd
        assert ds.card.raw["draft"], "nothing was looked at"
        if features == "public":
            continue
        assert "features='public'" in odd.why and repr(odd).startswith("no: ") and "GaussianProcessClassifier" in odd.why
        mine = frame[:100]
        with pytest.raises(holdoutd.CannotExport, match="features='public'"):
            ds.score(GaussianProcessClassifier().fit(mine[FEATURES], mine.late))
        assert server.holdout(ds.id).card.raw["draft"], "the advice is still possible"
        ds.training()
        assert "are secret, and stay so" in ds.can_score(GaussianProcessClassifier(), mine[FEATURES], mine.late).why
        picky = HistGradientBoostingClassifier(monotonic_cst=[1, 0, 0])  # fits to three columns alone
        assert "made-up rows" in ds.can_score(picky).why and ds.can_score(picky, mine[FEATURES], mine.late)


def test_categories_come_back(server: holdoutd.Server) -> None:
    """What pandas had as categories without an order it has again, in the training part and in public features, with the categories of
    the rows that are given; what was text stays text, and what was in an order stays so. LightGBM and HistGradientBoosting are fitted and
    asked about as they are. Notices texts, an order that nobody gave, and categories that no given row has."""
    draw = np.random.default_rng(143)
    frame = table(143).assign(
        plan=lambda d: pd.Categorical(draw.choice(["pro", "basic", "team"], len(d)), ["team", "pro", "basic", "never"]),
        size=lambda d: pd.Categorical(draw.choice(["s", "m", "l"], len(d)), ["s", "m", "l"], ordered=True),
    )
    frame.loc[::9, "plan"] = None
    for features in ("secret", "public"):
        ds = server.upload(
            frame.assign(which=features), name=f"categories {features}", label="late", features=features,
            holdout=0.4, questions=50, tokens=10, overlap="accepted",
        )  # fmt: skip
        training = ds.training()
        again = server.holdout(ds.id).training(kind="pandas")
        for rows in (training, again, *([ds.features()] if features == "public" else [])):
            assert rows.plan.dtype == pd.CategoricalDtype(["basic", "pro", "team"], ordered=False), rows.plan.dtype
            if "row_id" not in rows:  # a download of features has texts for categories in an order
                assert rows["size"].dtype == pd.CategoricalDtype(["s", "m", "l"], ordered=True)
            assert rows.origin.dtype == frame.origin.dtype and rows.plan.isna().mean() > 0.08
        assert ds.card.categories == {"plan": ["basic", "pro", "team"]}
        assert server.holdout(ds.id).training(kind="polars")["plan"].dtype == pl.String
        x, y = training[["x", "z", "plan"]], training.late
        for model in (
            lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(x, y),
            HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype").fit(x, y),
        ):
            said = ds.score(model)
            truth = accuracy_score(frame.late, model.predict(frame[["x", "z", "plan"]]))
            assert said.low <= truth <= said.high, (said, truth)


def test_what_predictions_can_be(server: holdoutd.Server) -> None:
    """Where features are public any model is judged by what it predicts, if that is a label or a number for each row: can_score looks at it
    where there is something to look at, fits nothing, and says what it did not see. Notices a yes to anything that has predict."""
    frame = table(142)
    ds = server.upload(frame, name="what is predicted", holdout=0.5, questions=50, label="late", features="public")
    x = frame[:300][FEATURES]
    late = frame.late[:300]
    for unseen in (GaussianProcessClassifier(), LinearRegression(), lambda rows: rows.x, LogisticRegression().fit(x, late)):
        said = ds.can_score(unseen)
        assert said and repr(said).startswith("yes, if its predictions are labels, probabilities or numbers"), said
    for estimator, says in (
        (StandardScaler(), "does not predict"),
        (KMeans(2), "numbers of clusters"),
        (IsolationForest().fit(x), "1 and -1"),
        (make_pipeline(StandardScaler(), KMeans(2)), "numbers of clusters"),
        (LinearRegression().fit(x, np.column_stack([late, late])), "one number, or yes or no"),
        (lambda rows: np.where(rows.x > 0, "b", "a"), "the model predicts"),
        (lambda rows: rows.x[:5], "5 predictions for 300 rows"),
        (LogisticRegression().fit(x.rename(columns={"x": "made here"}), late), "'made here' is no column"),
    ):
        refused = ds.can_score(estimator, x)
        assert not refused and says in refused.why, (estimator, refused)
    for estimator in (LogisticRegression().fit(x, late), LinearRegression().fit(x, late), SVC().fit(x, late), lambda rows: rows.x > 0):
        assert repr(ds.can_score(estimator, x)) == "yes"
    assert ds.card.raw["draft"], "nothing was looked at"
    ds.training()
    assert repr(ds.can_score(LogisticRegression().fit(x, late))) == "yes", "rows that are here already are looked at"
    assert ds.score(lambda rows: rows.x > 0).value is not None


def test_whole_rows(server: holdoutd.Server) -> None:
    """Pipelines that pick columns are fitted on whole rows: with times, which no model reads, and with texts that theirs
    does not use. can_score tries them on such rows, and says yes where score does; where features are public it fits nothing."""
    draw = np.random.default_rng(40)
    frame = table(140).assign(when=pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(len(table(140))), unit="h"))
    frame["segment"] = pd.Series(draw.choice(["a", "b", None], len(frame)), dtype="str")
    frame["waited"] = pd.to_timedelta(draw.integers(1, 9, len(frame)), unit="s")
    text = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    coded = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    estimators = (
        make_pipeline(ColumnTransformer([("n", StandardScaler(), ["x", "z"]), ("t", text, ["segment"])]), LogisticRegression()),
        make_pipeline(ColumnTransformer([("n", "passthrough", ["x"]), ("t", text, ["segment"])]), DecisionTreeClassifier(max_depth=1)),
        make_pipeline(ColumnTransformer([("t", coded, ["segment"]), ("n", "passthrough", ["x"])]), RandomForestClassifier(3, max_depth=1)),
    )
    ds = server.upload(frame, name="whole rows", holdout=0.5, questions=50, label="late")
    mine = frame[:200]
    for estimator in estimators:
        whole = clone(estimator).fit(mine.drop(columns="late"), mine.late)
        assert ds.can_score(estimator) and ds.can_score(whole), (ds.can_score(estimator), ds.can_score(whole))
    assert ds.card.raw["draft"]
    training = ds.training()
    for estimator in estimators:
        model = clone(estimator).fit(training.drop(columns="late"), training.late)
        assert 0 <= ds.score(model).value <= 1
    apart = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)  # nulls, which the card tells of now, stay nulls
    unsaid = make_pipeline(ColumnTransformer([("t", apart, ["segment"]), ("n", "passthrough", ["x"])]), HistGradientBoostingClassifier())
    assert "encoded_missing_value" in ds.can_score(unsaid).why
    wrong = ds.can_score(make_pipeline(ColumnTransformer([("n", StandardScaler(), ["x", "nowhere"])]), LogisticRegression()))
    assert "nowhere" in wrong.why and "made-up rows" in wrong.why
    public = server.upload(
        frame.assign(which=1), name="whole public rows", questions=50, label="late", features="public", overlap="accepted"
    )
    assert public.can_score(make_pipeline(ColumnTransformer([("n", StandardScaler(), ["made here"])]), LogisticRegression()))


def test_features_that_are_no_columns(server: holdoutd.Server) -> None:
    """A model of what was computed of columns is asked about with the expressions, also beside one without; without them an error
    says what to write. A number of a model that reads the label is printed with that."""
    ds = server.upload(table(145), name="computed", holdout=0.5, questions=50, label="late")
    training = ds.training()
    plain = LogisticRegression().fit(training[["x", "z"]], training.late)
    made = training[["x"]].assign(both=training.x - training.z)
    computed = LogisticRegression().fit(made, training.late)
    features = {"both": "x - z"}
    assert ds.score(computed, features=features) > 0.7
    assert abs(ds.compare(plain, computed, features=features)) < 0.05
    coded = LogisticRegression().fit(pd.get_dummies(training[["x", "origin"]]), training.late)
    texts = {f"origin_{o}": ("origin", o) for o in training.origin.unique()}
    assert ds.score(coded, texts=texts) > 0.6
    left = ds.budget.questions.left
    for model, said in ((computed, "'both' is no column.*features={'both'"), (coded, "texts={.*: .'origin', ")):
        with pytest.raises(holdoutd.CannotExport, match=said):
            ds.score(model)
    with pytest.raises(holdoutd.CannotExport, match="did you mean amount"):
        ds.score(LinearRegression().fit(training[["amount"]].rename(columns={"amount": "amounts"}), training.late))
    assert ds.budget.questions.left == left
    assert "careful" not in str(ds.score(plain)) + ds.score(plain)._repr_html_()
    knows = ds.score(LogisticRegression().fit(training[["x", "late"]], training.late))
    assert "careful: the prediction reads late" in str(knows) and "careful: the prediction reads late" in knows._repr_html_()
    public = server.upload(table(146), name="computed public", holdout=0.5, questions=50, label="late", features="public")
    for given in ({}, {"features": features}):
        with pytest.raises(holdoutd.CannotExport, match="give a function"):
            public.score(computed, **given)
    assert public.score(lambda rows: computed.predict_proba(rows[["x"]].assign(both=rows.x - rows.z))[:, 1]) > 0.7


def test_public_features_are_predicted(binary: Path, tmp_path: Path) -> None:
    """Where features are public no model is exported: the answer is that of the library's own predictions, by what a question is about."""
    running = Running(binary, tmp_path / "data", "--allow-naive")
    server, frame = holdoutd.connect(running.url, key=running.key), table(37)
    for late in (frame.late, frame.late.astype(int)):
        settings = {"holdout": 0.5, "questions": 200, "label": "late", "features": "public", "mechanism": "naive", "overlap": "accepted"}
        of = server.upload(frame.assign(late=late), **settings)
        training, rows = of.training(), of.features()[: of.card.rows["holdout"]]  # then come those of the check part
        held = rows.merge(frame, how="left", on=[c for c in rows.columns if c != "row_id"])
        margin = LinearSVC().fit(training[FEATURES], training.late)
        tuned = FixedThresholdClassifier(LogisticRegression(), threshold=0.2).fit(training[FEATURES], training.late)
        forest = RandomForestClassifier(20, random_state=1).fit(training[FEATURES], training.late)
        for model in (margin, tuned, forest):
            assert of.score(model).value == pytest.approx(accuracy_score(held.late, model.predict(held[FEATURES])), abs=1e-6), model
        assert of.score(forest, "log_loss", clip=0.01).value == pytest.approx(
            log_loss(held.late, forest.predict_proba(held[FEATURES])[:, 1].clip(0.01, 0.99)), abs=1e-5
        )
        hinge = np.maximum(0, 1 - np.where(held.late, 1, -1) * margin.decision_function(held[FEATURES])).clip(0, 9).mean()
        assert of.score(margin, "hinge", range=[0, 9]).value == pytest.approx(hinge, abs=1e-5)
        assert of.score(lambda x, model=tuned: model.predict(x[FEATURES])).value == of.score(tuned).value
        assert of.compare(tuned, forest).value == pytest.approx(of.score(forest).value - of.score(tuned).value, abs=1e-6)
    running.kill()


def test_public_features_of_several_classes(binary: Path, tmp_path: Path) -> None:
    """A classifier of several classes, texts or numbers, is judged by its predictions, also one that cannot be exported. Notices classes
    in another order, and a probability that is taken for another class's."""
    running = Running(binary, tmp_path / "data", "--allow-naive")
    server, made = holdoutd.connect(running.url, key=running.key), table(45)
    grade = np.digitize(made.x + 0.3 * made.z + np.random.default_rng(46).normal(size=len(made)) / 2, [-0.6, 0.7])  # about 3 of 4 are right
    for kind, label in (("texts", np.array(["b", "c", "a"])[grade]), ("numbers", np.array([2.0, 0.0, 7.0])[grade])):
        frame = made.assign(grade=label)
        of = server.upload(
            frame, name=kind, holdout=0.5, questions=200, label="grade", features="public", mechanism="naive", overlap="accepted"
        )
        training, rows = of.training(), of.features()[: of.card.rows["holdout"]]
        held = rows.merge(frame, how="left", on=[c for c in rows.columns if c != "row_id"])
        neighbours = KNeighborsClassifier(15, metric="chebyshev").fit(training[FEATURES], training.grade)
        margins = LinearSVC().fit(training[FEATURES], training.grade)
        assert of.can_score(neighbours) and of.can_score(GaussianProcessClassifier())
        for model in (neighbours, margins):
            want = accuracy_score(held.grade, model.predict(held[FEATURES]))
            assert 0.6 < want < 0.9 and of.score(model).value == pytest.approx(want, abs=1e-6), model
        said = neighbours.predict_proba(held[FEATURES]).clip(0.01, 0.99)
        given = said[np.arange(len(held)), np.searchsorted(neighbours.classes_, held.grade)]
        assert of.score(neighbours, "log_loss", clip=0.01).value == pytest.approx(-np.log(given).mean(), abs=1e-5)
        assert of.compare(margins, neighbours).value == pytest.approx(of.score(neighbours).value - of.score(margins).value, abs=1e-6)
        confusion = of.ask(holdoutd.q.confusion("grade", model=neighbours))
        assert sum(i["value"] for i in confusion.raw["items"]) == pytest.approx(1, abs=1e-6)
    running.kill()


def test_steps_that_compute_of_conditions(server: holdoutd.Server) -> None:
    """A column of true and false is a condition for the server, and 1 and 0 for scikit-learn. Notices an expression that takes it for a
    number, which the server refuses, and a comparison on other numbers than these two."""
    ds = server.upload(
        table(35).assign(old=lambda d: d.x > 0.5), name="conditions", holdout=0.5, questions=50, label="late", overlap="accepted"
    )
    training, features, new = ds.training(), ["old", "support tickets"], fresh().assign(old=lambda d: d.x > 0.5)
    for step in (PolynomialFeatures(), OneHotEncoder(), OrdinalEncoder(), MinMaxScaler(clip=True)):
        model = make_pipeline(step, LogisticRegression(max_iter=500)).fit(training[features], training.late)
        assert accuracy_score(new.late, model.predict(new[features])) in ds.score(model), step


def test_what_cannot_be_exported(server: holdoutd.Server, ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    """It is refused with what can be done, and done where the features are public. Notices rows in another order."""
    training, _ = fitted
    neighbours = KNeighborsClassifier(metric="chebyshev").fit(training[FEATURES], training.late)
    with pytest.raises(holdoutd.CannotExport, match="are secret, and stay so"):
        ds.score(neighbours, label="late")
    with pytest.raises(holdoutd.CannotExport, match="plain function"):
        ds.score(lambda frame: frame.x > 0, label="late")
    with pytest.raises(holdoutd.CannotExport, match="columns="):
        ds.score(LogisticRegression().fit(training[FEATURES].to_numpy(), training.late), label="late")
    public = server.upload(
        table(33), name="public", holdout=0.5, questions=100, label="late", features="public", mechanism="gaussian", overlap="accepted"
    )
    mine = public.training()
    neighbours = KNeighborsClassifier(25, metric="chebyshev").fit(mine[FEATURES], mine.late)
    truth = accuracy_score(fresh().late, neighbours.predict(fresh()[FEATURES]))
    assert truth in public.score(neighbours)
    assert truth > 0.7 > 0.55 and (public.score(lambda frame: (frame.x > 0).astype(float)).high or 0) > 0.6
    with pytest.raises(ValueError, match="1 predictions for"):
        public.score(lambda frame: np.zeros(1))


def test_measures_of_probabilities(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    """A margin is no probability: who asks for a measure of probabilities is warned, and nobody else."""
    training, model = fitted
    margin = RidgeClassifier().fit(training[FEATURES], training.late)
    with pytest.warns(UserWarning, match="log_loss is of probabilities, and this RidgeClassifier has none"):
        ds.score(margin, "log_loss", label="late")
    with pytest.warns(UserWarning, match="CalibratedClassifierCV"):
        ds.compare(model, margin, "brier", label="late")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        ds.score(model, "log_loss", label="late")
        ds.score(margin, label="late")


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


def test_labels_are_the_classes(server: holdoutd.Server) -> None:
    """A label that is a column of the model's classes, texts or numbers, means the second of two, as in scikit-learn; a column of something
    else is told what the classes are. Notices the first class taken for the positive one."""
    made = table(44).assign(word=lambda t: np.where(t.late, "yes", "no"), code=lambda t: t.late * 2.0)
    ds = server.upload(made, name="labels", holdout=0.5, questions=100, mechanism="gaussian", label="word", check=0)
    training = ds.training()
    x = training[FEATURES]
    for label in ("word", "code"):
        model = LogisticRegression().fit(x, training[label])
        for said in (
            ds.explain(dict(holdoutd.q.recall(label, model=model))),
            ds.explain({"type": "recall", "model": model}) if label == "word" else None,
        ):
            if said is not None:
                want = recall_score(training[label], model.predict(x), pos_label=model.classes_[1])
                assert abs(said.raw["training"] - want) < 1e-9, label
        with pytest.raises(ValueError, match="the classes of this LogisticRegression are"):
            ds.explain(dict(holdoutd.q.recall("word" if label == "code" else "code", model=model)))


def test_boosters_know_their_columns(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any]) -> None:
    """A booster of XGBoost or LightGBM that was fitted with names is exported by them; one that was not asks for columns."""
    training, _ = fitted
    x = training[["x", "z"]]
    named = {
        "xgboost": xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(x, training.late), 3),
        "lightgbm": lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(x, training.late), 3),
    }
    for model in named.values():
        assert ds.explain({"type": "accuracy", "label": "late", "model": model}).raw["training"] > 0.6
    bare = lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(x.to_numpy(), training.late), 3)
    with pytest.raises(holdoutd.CannotExport, match="columns="):
        ds.score(bare, label="late")


STEPS: dict[str, Any] = {
    "components": make_pipeline(StandardScaler(), PCA(2), LogisticRegression()),
    "products": make_pipeline(PolynomialFeatures(2), DecisionTreeClassifier(max_depth=4, random_state=0)),
    "splines": make_pipeline(SplineTransformer(), LogisticRegression(max_iter=500)),
    "powers": make_pipeline(PowerTransformer(), LogisticRegression()),
    "quantiles": make_pipeline(QuantileTransformer(n_quantiles=40), LogisticRegression()),
    "bins": make_pipeline(KBinsDiscretizer(6, encode="onehot-dense", quantile_method="averaged_inverted_cdf"), LogisticRegression()),
    "absolutes": make_pipeline(FunctionTransformer(np.abs), xgboost.XGBClassifier(n_estimators=5)),
    "densities": GaussianNB(),
    "quadratic forms": QuadraticDiscriminantAnalysis(),
    "a vote of these": VotingClassifier([("n", GaussianNB()), ("p", make_pipeline(PCA(2), LogisticRegression()))], voting="soft"),
}


@pytest.mark.parametrize("kind", STEPS)
def test_what_a_model_computes(server: holdoutd.Server, kind: str) -> None:
    """Features that a step makes are computed by the server as by the library: the training part's numbers are its own. Notices an
    expression that means something else to the server than to the exporter."""
    ds = server.upload(table(45), name="computed", holdout=0.5, questions=100, mechanism="gaussian", label="late", check=0)
    training = ds.training()
    model = clone(STEPS[kind]).fit(training[FEATURES], training.late)
    for metric, want in (
        ("accuracy", model.score(training[FEATURES], training.late)),
        ("brier", brier_score_loss(training.late, model.predict_proba(training[FEATURES])[:, 1])),
    ):
        got = ds.explain({**metric_query(metric, {}), "model": model}).raw["training"]
        assert abs(got - want) < 1e-6, (kind, metric)


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


def _leaf(model: Any) -> Any:
    """The first leaf, a little larger."""
    of = copy.deepcopy(model)
    for tree in of["trees"]["trees"]:
        for i, node in enumerate(tree):
            if not isinstance(node, list):
                tree[i] = node + 1e-4
                return of
    raise AssertionError


def _split(model: Any, by: Any) -> Any:
    """The first split, changed."""
    of = copy.deepcopy(model)
    of["trees"]["trees"][0][0] = by(of["trees"]["trees"][0][0])
    return of


def _member(name: str, value: Any) -> Any:
    """A member of the model, replaced by value, or by what value makes of it."""

    def changed(model: Any) -> Any:
        of = copy.deepcopy(model)
        ((_, body),) = ((k, v) for k, v in of.items() if k != "threshold")
        body[name] = value(body.get(name)) if callable(value) else value
        return of

    return changed


LOGISTIC, MARGIN, BOOSTER = LogisticRegression(), RidgeClassifier(), xgboost.XGBClassifier(n_estimators=5)
TREE, CLASSES = DecisionTreeClassifier(max_depth=4), lightgbm.LGBMClassifier(n_estimators=3, verbose=-1)
WRONG: dict[str, tuple[Any, Any]] = {
    "another link": (LOGISTIC, _member("link", "identity")),
    "another link of counts": (PoissonRegressor(), _member("link", "identity")),
    "a weight less": (LOGISTIC, _member("weights", lambda w: {c: v for c, v in w.items() if c != "z"})),
    "a little of the intercept": (LinearRegression(), _member("intercept", lambda b: b * (1 + 1e-5))),
    "the threshold of a probability": (MARGIN, lambda m: {**m, "threshold": 0.5}),
    "a tuned threshold": (FixedThresholdClassifier(LOGISTIC, threshold=0.2), lambda m: {k: v for k, v in m.items() if k != "threshold"}),
    "another base": (BOOSTER, _member("base", lambda b: b + 0.5)),
    "a tree less": (BOOSTER, _member("trees", lambda t: t[:-1])),
    "a leaf": (TREE, _leaf),
    "a threshold, by one number": (TREE, lambda m: _split(m, lambda s: [s[0], math.nextafter(s[1], -math.inf), *s[2:]])),
    "where nulls go": (CLASSES, lambda m: _split(m, lambda s: s[:2] if len(s) == 3 else [*s, "right"])),
    "zero as null": (BOOSTER, _member("null", {"z": [0.0, 0.0]})),
    "the order of classes": (CLASSES, _member("classes", lambda c: [c[1], c[0], *c[2:]])),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("given", [True, False], ids=["on rows", "on probes"])
def test_nothing_inexact_is_sent(fitted: tuple[pd.DataFrame, Any], kind: str, given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exporter that is wrong, in any of these ways, is noticed by the comparison with the library."""
    training, _ = fitted
    model, wrong = WRONG[kind]
    x = training[FEATURES].astype(float).round(1)
    counts = "counts" in kind or "intercept" in kind
    label = training.amount.clip(0.1) if counts else np.digitize(training.amount, [8, 12]) if model is CLASSES else training.late
    model = clone(model).fit(x, label)
    rows = x if given else None
    right = export(model, FEATURES, rows=rows)
    monkeypatch.setattr(models, "_exported", lambda *_: wrong(right))
    with pytest.raises(ValueError, match=r"is not the library's|outputs|does not go by|has the classes"):
        export(model, FEATURES, rows=rows)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(),
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        lightgbm.LGBMClassifier(),
        xgboost.XGBClassifier(),
    ],
)
def test_what_is_not_fitted_says_so(ds: holdoutd.Dataset, model: Any) -> None:
    """Notices an error of Python's own, and one about the names of columns."""
    with pytest.raises(ValueError, match="is not fitted: fit it first"):
        export(model, FEATURES)
    with pytest.raises(holdoutd.CannotExport, match="is not fitted: fit it first"):
        ds.score(model, label="late")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_library_that_refuses_nulls(fitted: tuple[pd.DataFrame, Any], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fitted on the rows without nulls it is compared on those; what it has no prediction for stands in nobody's way."""
    training, _ = fitted
    holed = training[FEATURES].astype(float)
    holed.loc[::3, "x"] = np.nan
    whole = holed.x.notna()
    model = LogisticRegression().fit(holed[whole], training.late[whole])
    rows = {"pandas": holed, "polars": pl.from_pandas(holed), "pyarrow": pa.Table.from_pandas(holed)}[kind]
    right = export(model, FEATURES, rows=rows)
    monkeypatch.setattr(models, "_exported", lambda *_: _member("link", "identity")(right))
    with pytest.raises(ValueError, match=r"is not the library's: on rows of the training part, "):
        export(model, FEATURES, rows=rows)


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
def test_small_and_large_numbers(fitted: tuple[pd.DataFrame, Any], unit: float, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr(models, "_linked", lambda *_: "identity")
    with pytest.raises(ValueError, match=r"200 of 200"):
        export(wrong, FEATURES, rows=far)


def test_what_verification_says(ds: holdoutd.Dataset, fitted: tuple[pd.DataFrame, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Which row, which two numbers, and how to go on; and whoever knows better may leave it out."""
    training, _ = fitted
    model = PoissonRegressor().fit(training[FEATURES], training.amount.clip(0.1))
    monkeypatch.setattr(models, "_linked", lambda *_: "identity")
    with pytest.raises(holdoutd.CannotExport, match=r"at x=.*, it predicts .* and the library .*200 of 200 .*stay so"):
        ds.score(model, "rmse", label="amount", max_error=100)
    assert "linear" in export(model, FEATURES, verify=False)


FORESTS: dict[str, Any] = {
    "two classes": lambda: RandomForestClassifier(10, random_state=0),
    "the best leaves first": lambda: RandomForestClassifier(10, max_leaf_nodes=40, random_state=0),
    "texts": lambda: make_pipeline(
        ColumnTransformer(
            [("n", SimpleImputer(add_indicator=True), ["x", "z"]), ("t", OneHotEncoder(handle_unknown="ignore"), ["origin"])]
        ),
        RandomForestClassifier(10, random_state=0),
    ),
    "scaled": lambda: make_pipeline(SimpleImputer(), StandardScaler(), RandomForestClassifier(10, random_state=0)),
    "boosted": lambda: GradientBoostingClassifier(n_estimators=10, random_state=0),
    "numbers": lambda: ExtraTreesRegressor(10, random_state=0),
    "classes": lambda: RandomForestClassifier(10, random_state=0),
}


@pytest.mark.parametrize("name", FORESTS)
def test_arrays_are_lists(server: holdoutd.Server, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server takes both for the same model. Notices a side that is swapped, a null that goes the other way, a threshold that is rounded
    otherwise."""
    rows = table(2, 1000)
    rows.loc[::7, "x"] = np.nan
    columns = ["x", "z", "origin"] if name == "texts" else FEATURES
    label = {"classes": rows["support tickets"], "numbers": rows.amount}.get(name, rows.late)
    if name in ("boosted", "two classes"):
        rows = rows.fillna(0.0)
    model = FORESTS[name]().fit(rows[columns], label)
    digests = []
    for listed, kind in ((10**9, list), (0, dict)):
        monkeypatch.setattr(models, "LISTED", listed)
        of = export(model, columns, rows=rows)
        assert isinstance(of["trees"]["trees"], kind)
        digests.append(server._run(keep_model(dumps({"trees": of["trees"]}).encode())))
    assert digests[0] == digests[1]


def test_a_long_model_is_sent_once(binary: Path, tmp_path: Path) -> None:
    """Several questions about a forest as people fit it send it once; again where the server has forgotten it."""
    running = Running(binary, tmp_path)
    try:
        ds = holdoutd.connect(running.url, key=running.key).upload(table(3), name="forest", holdout=0.5, questions=200, label="late")
        training = ds.training()
        model = RandomForestClassifier(random_state=0).fit(training[FEATURES], training.late)
        assert ds.score(model).value is not None
        assert ds.score(model, "brier_score").value is not None
        (named,) = ds._sent._digests.values()
        assert ds.score(model, "recall").query["model"] == {"sha256": named}
        running.kill()
        running.start()
        assert ds.compare(model, LogisticRegression().fit(training[FEATURES], training.late)).value is not None
        assert ds.score(model).replayed, "however it is sent, it is one question"
    finally:
        running.kill()


def test_bodies_are_compressed_for_other_machines() -> None:
    call = Call("POST", "/v1/models", text=b'{"linear":{"weights":{}}}' + b" " * COMPRESSED)
    near, far = call.options(lambda *_: None, "http://127.0.0.1:8080"), call.options(lambda *_: None, "https://holdout.example.org")
    assert near["content"] == call.text and "Content-Encoding" not in near["headers"]
    assert gzip.decompress(far["content"]) == call.text and far["headers"]["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in Call("POST", "/", text=b"{}").options(lambda *_: None, "https://holdout.example.org")["headers"]


@pytest.mark.parametrize(
    ("limit", "most", "mend"),
    [
        ("MAX_TREES", 9, "fit fewer: n_estimators"),
        ("MAX_NODES", 100, "set min_samples_leaf or max_leaf_nodes"),
        ("MAX_DEPTH", 5, "set max_depth"),
        ("MAX_STEPS", 50, "set max_depth, or fewer n_estimators"),
        ("MAX_WEIGHTS", 2, "encode fewer texts"),
        ("MAX_CLASSES", 3, "put rare classes together"),
        ("MAX_EXPRESSION", 20, "select columns before the step"),
        ("MAX_MODELS", 3, "fit fewer: n_estimators"),
        ("MAX_INPUTS", 2, "fit on fewer columns"),
        ("MAX_TEXTS", 1, "fit on fewer of them"),
        ("MAX_UNITS", 4, "set hidden_layer_sizes"),
        ("MAX_LAYERS", 1, "set hidden_layer_sizes"),
        ("MAX_VECTORS", 50, "fit it on fewer rows, or columns"),
        ("MAX_ROW_STEPS", 50, "fit it on fewer rows, or columns, or with fewer neighbours"),
        ("MAX_NEIGHBORS", 4, "set n_neighbors"),
        ("MAX_VOTERS", 3, "put rare classes together"),
    ],
)
def test_what_is_too_large_is_refused_here(limit: str, most: int, mend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the parameter that makes it smaller, before anything is sent."""
    rows = table(4, 500)
    label = rows["support tickets"] if limit == "MAX_CLASSES" else rows.late
    model: Any = RandomForestClassifier(10, random_state=0)
    if limit == "MAX_WEIGHTS":
        model = LogisticRegression()
    columns = FEATURES
    if limit == "MAX_TEXTS":
        columns, rows["other"] = ["origin", "other"], rows.origin
        model = make_pipeline(OneHotEncoder(), LogisticRegression())
    if limit == "MAX_MODELS":
        model = BaggingClassifier(LinearSVC(), 4, random_state=0)
    if limit in ("MAX_UNITS", "MAX_LAYERS"):
        model = MLPClassifier((5, 4), max_iter=20, random_state=0)
    if limit in ("MAX_VECTORS", "MAX_ROW_STEPS", "MAX_NEIGHBORS"):
        model = KNeighborsClassifier()
    if limit == "MAX_VOTERS":
        model, label = SVC(), rows["support tickets"]
    if limit == "MAX_EXPRESSION":
        model = make_pipeline(PCA(2), LogisticRegression())
    model.fit(rows[columns], label)
    export(model, columns)
    monkeypatch.setattr(models, limit, most)
    with pytest.raises(ValueError, match=f"the server takes {most}: {mend}"):
        export(model, columns)


@pytest.mark.parametrize("null", [None, np.nan], ids=["None", "NaN"])
@pytest.mark.parametrize("with_rows", [True, False], ids=["rows", "no rows"])
def test_kinds_of_null(null: Any, with_rows: bool) -> None:
    """Encoders of scikit-learn take None for a category, and NaN for a null that imputers fill. Notices one that is taken for the other."""
    r = np.random.default_rng(0)
    origin = r.choice(["u", "v", "w"], 600).astype(object)
    late = np.array([{"u": 0.2, "v": 0.5, "w": 0.7}[v] for v in origin])
    gone = r.random(600) < 0.2
    origin[gone], late[gone] = null, 0.95
    rows = pd.DataFrame({"origin": pd.Series(origin, dtype=object)})
    encoders = [
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
        OneHotEncoder(handle_unknown="ignore"),
        make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(handle_unknown="ignore")),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
    ]
    for encoder in encoders:
        for last in (RandomForestClassifier(10, random_state=0), LogisticRegression()):
            model = make_pipeline(encoder, last).fit(rows, late > r.random(600))
            exported = export(model, ["origin"], rows=rows if with_rows else None)
            got = _evaluate.predictions(exported, {"origin": [None, "u", "w", "unseen"]})
            told = model.predict_proba(pd.DataFrame({"origin": pd.Series([null, "u", "w", "unseen"], dtype=object)}))
            assert np.abs(got[:, 0] - told[:, 1]).max() < 1e-9, (encoder, last)


def test_ordered_categories_of_lightgbm() -> None:
    """It does not say which categories are whose; notices that they are mixed up."""
    r = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"o": pd.Categorical(r.choice(["lo", "hi"], 400), ["lo", "hi"], ordered=True), "u": pd.Categorical(r.choice(list("abc"), 400))}
    )
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(rows, r.random(400) < np.where(rows.u == "a", 0.9, 0.2))
    with pytest.raises(ValueError, match="make all of them unordered"):
        export(model, ["o", "u"], verify=False)
