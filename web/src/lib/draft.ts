// What stands in the fields of a form, and the query that it makes. A draft keeps texts as they were typed: a number that is half typed is no number yet.
import { queryTypes, type Member, type QueryType } from "../generated/queries";
import type { Query } from "./query";

/** By the name of the member: a text, two texts of a range, several texts, a truth value, or drafts of queries. Types share it, so that a changed type keeps what fits. */
export type Draft = { [member: string]: string | string[] | boolean | Nested | Nested[] | undefined };

/** A query within a query. */
export interface Nested {
  type: string;
  draft: Draft;
}

export const types = new Map<string, QueryType>(queryTypes.map((q) => [q.type, q]));

/** The types by what one wants to know. Those that no other kind names are under More, so that each type of the server can be asked. */
export const kinds: { name: string; types: string[] }[] = [
  { name: "Share", types: ["fraction", "count"] },
  { name: "Mean", types: ["mean", "sum", "stddev", "variance"] },
  { name: "Quantile", types: ["median", "quantile"] },
  { name: "Groups", types: ["groups", "histogram", "frequencies"] },
  { name: "Model score", types: ["accuracy", "balanced_accuracy", "auc", "loss", "precision", "recall", "f1", "rmse", "r2", "calibration", "confusion"] },
  { name: "Compare", types: ["compare", "difference", "argmax", "passes"] },
  { name: "Test", types: ["test"] },
];
kinds.push({ name: "More", types: queryTypes.map((q) => q.type).filter((t) => !kinds.some((k) => k.types.includes(t))) });

export const kindOf = (type: string) => kinds.find((k) => k.types.includes(type))!;

const typeNames: Record<string, string> = {
  fraction: "share", stddev: "standard deviation", balanced_accuracy: "balanced accuracy", auc: "AUC", f1: "F1", rmse: "RMSE", r2: "R²", kendall: "Kendall’s tau", argmax: "best of many", passes: "above a bar", gradient: "gradient",
  groups: "means or shares by group", frequencies: "frequencies of a text", compare: "two models or queries", difference: "two groups", confusion: "confusion matrix", screen: "screen many features",
};
export const typeName = (type: string) => typeNames[type] ?? type;

/** The members that each kind of test has, beside test itself. What a kind needs comes first. */
export const testMembers: Record<string, string[]> = {
  mean: ["of", "range", "equals", "where"],
  proportion: ["of", "equals", "where"],
  "two-sample": ["of", "range", "between", "equals", "where"],
  "two-proportions": ["of", "between", "equals", "where"],
  correlation: ["x", "y", "range_x", "range_y", "where"],
  slope: ["x", "y", "range_x", "range_y", "equals", "where"],
  "goodness-of-fit": ["cells", "expected"],
  independence: ["rows", "columns"],
  value: ["query", "equals"],
};

/** Members that a form shows at once, beside those that a query needs. The others are one click away. */
const common: Record<string, string[]> = {
  count: ["of", "where"], kendall: ["where"], groups: ["range", "values", "where"], passes: ["above", "below"], compare: ["by"], test: [],
  calibration: ["edges", "label", "model"], confusion: ["label", "model"], screen: ["label"], gradient: ["label", "features", "where"],
};
const ofModels = ["label", "model", "where"];

/** The members of a type that stand in the form, and those behind "More settings". Notes have a field of their own. */
export function fields(type: QueryType, draft: Draft): { first: Member[]; rest: Member[] } {
  const all = type.members.filter((m) => m.name !== "note");
  const named = type.type === "test" ? (testMembers[String(draft.test ?? "")] ?? []) : (common[type.type] ?? (type.members.some((m) => m.name === "model") ? ofModels : ["where"]));
  const first = [...all.filter((m) => m.required), ...named.map((name) => all.find((m) => m.name === name && !m.required)).filter((m) => m !== undefined)];
  if (draft.predictions || draft.prediction) for (const name of ["prediction", "predictions"]) first.push(...all.filter((m) => m.name === name && draft[name] && !first.includes(m)));
  const others = type.type === "test" ? ["alternative", "null", "guess", "half_width"] : all.map((m) => m.name);
  return { first, rest: all.filter((m) => !first.includes(m) && others.includes(m.name)) };
}

export interface Built {
  query: Query;
  /** What the form can say by itself, by pointer: the server would say the same. */
  errors: Record<string, string>;
  /** Whether something that the query needs is still empty: then nothing is sent yet. */
  missing: string[];
}

const filled = (x: unknown): boolean => (Array.isArray(x) ? x.some(filled) : typeof x === "string" ? x.trim() !== "" : x !== undefined && x !== false);

const splitList = (text: string) => text.split(/[,\n]/).map((s) => s.trim()).filter((s) => s !== "");

function number(text: string): number | undefined {
  const cleaned = text.trim().replaceAll("−", "-");
  return cleaned !== "" && Number.isFinite(Number(cleaned)) ? Number(cleaned) : undefined;
}

/** The query of a form. */
export function build(type: string, draft: Draft, at = ""): Built {
  const out: Built = { query: { type }, errors: {}, missing: [] };
  const known = types.get(type);
  if (!known) return out;
  const { first, rest } = fields(known, draft);
  const needed = type === "test" ? (testMembers[String(draft.test ?? "")] ?? []).filter((m) => m !== "where" && m !== "equals") : [];
  for (const m of [...first, ...rest, ...known.members.filter((x) => x.name === "note")]) {
    const pointer = `${at}/${m.name}`;
    const given = draft[m.name];
    if (!filled(given)) {
      if (m.required || needed.includes(m.name)) out.missing.push(pointer);
      continue;
    }
    const bad = (words: string) => (out.errors[pointer] = words);
    const set = (v: unknown) => (out.query[m.name] = v);
    switch (m.form) {
      case "expression": case "text":
        set(String(given).trim());
        break;
      case "choice": {
        const value = (m.values ?? []).find((v) => String(v) === given);
        if (value !== undefined && value !== m.default) set(value);
        break;
      }
      case "flag":
        if (given !== m.default) set(given);
        break;
      case "number": {
        const n = number(String(given));
        if (n === undefined) bad("This is no number.");
        else set(n);
        break;
      }
      case "range": {
        const both = (given as string[]).map(number);
        if ((given as string[]).some((t) => t.trim() === "")) out.missing.push(pointer);
        else if (both.some((n) => n === undefined)) bad("A range is two numbers.");
        else if (both[0]! >= both[1]!) bad("The low end must be below the high end.");
        else set(both);
        break;
      }
      case "numbers": {
        const all = splitList(String(given)).map(number);
        if (all.some((n) => n === undefined)) bad("Numbers, with commas between them.");
        else set(all);
        break;
      }
      case "texts":
        set(splitList(String(given)));
        break;
      case "value":
        set(number(String(given)) ?? String(given).trim());
        break;
      case "expressions":
        set((given as string[]).map((t) => t.trim()).filter((t) => t !== ""));
        break;
      case "json": {
        const text = String(given).trim();
        if (m.name === "values" && !/^[[{]/.test(text)) {
          const list = splitList(text);
          const numbers = list.map(number);
          set(numbers.every((n) => n !== undefined) ? numbers : list);
          break;
        }
        try {
          set(JSON.parse(text));
        } catch {
          if (m.name === "features") set(text);
          else bad("This is no JSON.");
        }
        break;
      }
      case "query": case "queries": {
        const all = (Array.isArray(given) ? given : [given]) as Nested[];
        const built = all.map((n, i) => build(n.type, n.draft, m.form === "query" ? pointer : `${pointer}/${i}`));
        for (const b of built) {
          Object.assign(out.errors, b.errors);
          out.missing.push(...b.missing);
        }
        set(m.form === "query" ? built[0]!.query : built.map((b) => b.query));
        break;
      }
    }
  }
  return out;
}

/** The fields of a query that is there, as a link or an earlier answer has it. */
export function draftOf(query: Query): Draft {
  const known = types.get(String(query.type));
  const draft: Draft = {};
  for (const m of known?.members ?? []) {
    const v = query[m.name];
    if (v === undefined || v === null) continue;
    switch (m.form) {
      case "range":
        if (Array.isArray(v)) draft[m.name] = v.map(String);
        break;
      case "numbers": case "texts":
        if (Array.isArray(v)) draft[m.name] = v.join(", ");
        break;
      case "expressions":
        if (Array.isArray(v)) draft[m.name] = v.map(String);
        break;
      case "flag":
        draft[m.name] = v === true;
        break;
      case "query":
        draft[m.name] = { type: String((v as Query).type), draft: draftOf(v as Query) };
        break;
      case "queries":
        if (Array.isArray(v)) draft[m.name] = (v as Query[]).map((q) => ({ type: String(q.type), draft: draftOf(q) }));
        break;
      case "json":
        draft[m.name] = m.name === "values" && Array.isArray(v) ? v.join(", ") : JSON.stringify(v);
        break;
      default:
        draft[m.name] = String(v);
    }
  }
  return draft;
}

/** What of a draft fits to another type: members that both have and that are filled in alike. What a guess is about is another thing then. */
export function kept(draft: Draft, from: string, to: string): Draft {
  const members = (type: string) => new Map(types.get(type)?.members.map((m) => [m.name, m.form]));
  const [a, b] = [members(from), members(to)];
  return Object.fromEntries(Object.entries(draft).filter(([name]) => !["guess", "half_width", "measure", "promise"].includes(name) && (!b.has(name) || a.get(name) === undefined || a.get(name) === b.get(name))));
}
