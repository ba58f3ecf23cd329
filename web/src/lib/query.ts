// What a query is called on the page, and how it is written in Python. It works on the canonical form, which the server gives with each answer.
import { count, plain } from "./format";

export type Query = { type?: string } & Record<string, unknown>;

/** Words and code, one after the other. */
export type Phrase = { text: string; code?: boolean }[];

const word = (text: string): Phrase => [{ text }];
const code = (text: unknown): Phrase => [{ text: typeof text === "string" ? text : JSON.stringify(text), code: true }];

const join = (...phrases: Phrase[]): Phrase => phrases.flat();

export const plainText = (phrase: Phrase) => phrase.map((p) => p.text).join("");

const asQuery = (x: unknown): Query => (x && typeof x === "object" && !Array.isArray(x) ? (x as Query) : {});

const isNumber = (x: unknown): x is number => typeof x === "number";

const names: Record<string, string> = {
  accuracy: "Accuracy", balanced_accuracy: "Balanced accuracy", precision: "Precision", recall: "Recall", f1: "F1", auc: "AUC", r2: "R²", rmse: "RMSE",
  log: "Log loss", brier: "Brier loss", hinge: "Hinge loss", squared: "Squared error", absolute: "Absolute error", pinball: "Pinball loss", zero_one: "Error rate",
};

/** What a score is called: "Accuracy", "Log loss". */
const scoreName = (q: Query) => names[q.type === "loss" ? String(q.loss) : String(q.type)] ?? String(q.type);

const scores = new Set(["accuracy", "balanced_accuracy", "precision", "recall", "f1", "auc", "loss", "rmse", "r2"]);

function subject(q: Query): Phrase {
  const label = q.label === undefined ? [] : join(word(" for "), code(q.label));
  if (q.prediction !== undefined) return join(code(q.prediction), label);
  if (q.predictions !== undefined) return join(word("predictions"), label);
  return join(word(modelName(q.model)), label);
}

const kinds: Record<string, string> = {
  linear: "a linear model", softmax: "a linear model of classes", trees: "trees", network: "a network", kernel: "a kernel machine", neighbors: "nearest neighbors", mixture: "a mixture of models",
};

/** What a model without a note is called: its kind, or the begin of its digest where the canonical form has no more. */
function modelName(model: unknown): string {
  const m = asQuery(model);
  const kind = Object.keys(kinds).find((k) => k in m);
  if (kind) return kinds[kind]!;
  const digest = m.sha256 ?? m.digest;
  return typeof digest === "string" ? `the model ${digest.replace("sha256:", "").slice(0, 7)}` : "a model";
}

const within = (q: Query): Phrase => (q.where === undefined ? [] : join(word(", where "), code(q.where)));

/** What the query asks for, for a row without a note. */
export function describe(q: Query): Phrase {
  const of = () => join(code(q.of), within(q));
  switch (q.type) {
    case "fraction":
      return of();
    case "count":
      return q.of === undefined ? code(q.where) : of();
    case "mean": case "sum": case "stddev": case "variance": case "median":
      return join(word({ mean: "mean of ", sum: "sum of ", stddev: "standard deviation of ", variance: "variance of ", median: "median of " }[q.type]), of());
    case "quantile":
      return join(word(`${plain(100 * Number(q.p))}% quantile of `), of());
    case "correlation": case "covariance": case "kendall":
      return join(code(q.x), word(" and "), code(q.y), within(q));
    case "groups":
      return join(code(q.of), word(" by "), code(q.by), within(q));
    case "histogram": case "frequencies":
      return of();
    case "difference": {
      const between = Array.isArray(q.between) ? q.between : [];
      return join(code(q.of), word(": "), code(between[0] ?? ""), word(" minus "), between[1] === undefined ? word("the rest") : code(between[1]), within(q));
    }
    case "test":
      if (q.test === "value") return join(describe(asQuery(q.query)), word(` is ${plain(Number(q.equals ?? 0))}?`));
      if (Array.isArray(q.between)) return join(code(q.of), word(": "), code(q.between[0]), word(" against "), q.between[1] === undefined ? word("the rest") : code(q.between[1]));
      if (q.x !== undefined) return join(code(q.x), word(" and "), code(q.y));
      if (q.of !== undefined) return join(of(), word(` is ${plain(Number(q.equals ?? (q.test === "proportion" ? 0.5 : 0)))}?`));
      return word(String(q.test));
    case "passes":
      return join(describe(asQuery(q.of)), word(isNumber(q.above) ? ` above ${plain(q.above)}?` : ` below ${plain(Number(q.below))}?`));
    case "compare":
      return join(describe(asQuery(q.b)), word(" against "), describe(asQuery(q.a)));
    case "argmax":
      return word(`the best of ${count(Array.isArray(q.of) ? q.of.length : 0)}`);
    case "screen":
      return join(word(Array.isArray(q.features) ? `${count(q.features.length)} features` : "features"), q.label === undefined ? [] : join(word(" against "), code(q.label)));
  }
  if (scores.has(String(q.type)) || q.type === "calibration" || q.type === "confusion" || q.type === "gradient") return subject(q);
  return code(q);
}

/** Answers that may stand on one axis: their key, title and unit. */
export interface Family {
  key: string;
  title: Phrase;
  unit: string;
}

const family = (key: string, title: Phrase, unit: string): Family => ({ key, title, unit });

/** What a measure is called beside a title. */
const unitOf = (measure: { kind: string; of?: string[] }): string =>
  ({ share: "share of rows", count: "rows", pure: "a number without a unit" })[measure.kind] ?? (measure.of ?? []).join(" × ");

const clamped = (q: Query) => (Array.isArray(q.range) ? `clamped to ${q.range.map((x) => plain(Number(x))).join(" to ")}` : "");

/** The family of a query: of the answers that one looks at beside each other. per is what has one vote each, where units have several rows. */
export function familyOf(q: Query, measure: { kind: string; of?: string[] }, per?: string): Family {
  const f = rowFamily(q, measure);
  if (!per || per === "row") return per ? { ...f, key: `${f.key} per row` } : f;
  const title = f.key === "share" ? word(`Share of rows, mean per ${per}`) : f.title;
  return family(`${f.key} per ${per}`, title, measure.kind === "share" ? `mean share per ${per}` : `${f.unit}, mean per ${per}`);
}

/** The family of a query of a holdout whose units are rows. */
function rowFamily(q: Query, measure: { kind: string; of?: string[] }): Family {
  const unit = unitOf(measure);
  switch (q.type) {
    case "fraction":
      return q.where === undefined ? family("share", word("Share of all rows"), "share of rows") : family("share within", word("Share within a group"), "share of the group’s rows");
    case "count":
      return family("count", word("Number of rows"), "rows of the holdout");
    case "mean": case "median": case "quantile":
      return family(`level ${String(q.of)} ${clamped(q)}`, code(q.of), clamped(q) || unit);
    case "sum": case "stddev": case "variance":
      return family(`${q.type} ${String(q.of)}`, join(word({ sum: "Sum of ", stddev: "Standard deviation of ", variance: "Variance of " }[q.type]), code(q.of)), unit);
    case "correlation":
      return family("correlation", word("Correlation"), "from −1 to 1");
    case "kendall":
      return family("kendall", word("Kendall’s tau"), "from −1 to 1");
    case "covariance":
      return family(`covariance ${unit}`, word("Covariance"), unit);
    case "difference":
      return measure.kind === "share"
        ? family("difference of shares", word("Difference between two groups"), "difference of shares")
        : family(`difference ${String(q.of)}`, join(word("Difference between two groups, "), code(q.of)), clamped(q) || unit);
    case "passes":
      return rowFamily(asQuery(q.of), measure);
    case "test":
      if (q.test === "value") return rowFamily(asQuery(q.query), measure);
      if (q.test === "two-proportions") return rowFamily({ type: "difference", of: q.of }, { kind: "share" });
      if (q.test === "two-sample") return rowFamily({ type: "difference", of: q.of, range: q.range }, measure);
      return family(`test ${String(q.test)} ${unit}`, word(`Test: ${String(q.test)}`), unit);
    case "compare": {
      const a = asQuery(q.a);
      if (!scores.has(String(a.type))) return family(`gain ${JSON.stringify(a.of ?? a.type)}`, word("Difference of two queries"), unit);
      const less = a.type === "loss" || a.type === "rmse";
      return family(`gain ${scoreName(a)} ${String(a.label)}`, join(word(`${less ? "Change" : "Gain"} in ${scoreName(a).replace(/^[A-Z](?=[a-z])/, (c) => c.toLowerCase())}`), a.label === undefined ? [] : join(word(" for "), code(a.label))), measure.kind === "share" ? "difference of shares" : `difference, ${unit}`);
    }
  }
  if (scores.has(String(q.type))) {
    const label = q.label === undefined ? [] : join(word(" for "), code(q.label));
    return family(`score ${scoreName(q)} ${String(q.label)} ${clamped(q)}`, join(word(`${scoreName(q)} of a model`), label), measure.kind === "pure" ? "from 0 to 1" : unit);
  }
  const many: Record<string, Phrase> = {
    groups: join(word("Groups by "), code(q.by ?? "")), histogram: join(word("Histogram of "), code(q.of ?? "")), frequencies: join(word("Frequencies of "), code(q.of ?? "")),
    calibration: word("Calibration"), confusion: word("Confusion matrix"), gradient: word("Gradient"), screen: word("Screening"), argmax: word("Best of many"),
  };
  const title = many[String(q.type)];
  return title ? family(`${q.type} ${plainText(title)}`, title, unit) : family(String(q.type), word(String(q.type)), unit);
}

// --- Python ---

/** Members that Python takes by place. */
const places = ["test", "a", "b", "x", "y", "of"];

function literal(x: unknown, name: string): string {
  if (x === null) return "None";
  if (typeof x === "boolean") return x ? "True" : "False";
  if (typeof x === "string") return JSON.stringify(x);
  if (typeof x === "number") return String(x);
  if (Array.isArray(x)) {
    const [left, right] = name.startsWith("range") ? ["(", ")"] : ["[", "]"];
    return left + x.map((v) => literal(v, "")).join(", ") + right;
  }
  const o = x as Record<string, unknown>;
  if (typeof o.digest === "string" && typeof o.bytes === "number") return name || "…"; // a large member, which the server keeps as its digest
  if (typeof o.type === "string") return pythonCall("holdoutd.q", o as Query);
  return `{${Object.entries(o).map(([k, v]) => `${JSON.stringify(k)}: ${literal(v, "")}`).join(", ")}}`;
}

function pythonCall(on: string, q: Query): string {
  const byPlace = q.type === "test" ? ["test"] : places.filter((p) => q[p] !== undefined);
  const named = Object.keys(q).filter((k) => k !== "type" && !byPlace.includes(k) && q[k] !== undefined);
  const parts = [...byPlace.map((p) => literal(q[p], p)), ...named.map((k) => `${k}=${literal(q[k], k)}`)];
  return `${on}.${q.type}(${parts.join(", ")})`;
}

/** The query as a call of the Python client: ds.fraction("delay > 15"). One of a final report is asked in it, and by nothing else. */
export function python({ report, ...q }: Query): string {
  return report ? `ds.report([${pythonCall("holdoutd.q", q)}])` : pythonCall("ds", q);
}
