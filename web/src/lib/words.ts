// Sentences that several pages share.
import type { Budget, Card, Warning } from "../generated/api";
import { many, plain } from "./format";

/** "958 questions" and "17 tokens", or "225 questions" and "3 rounds": what is left, as pairs of a figure and what it counts. */
export function left(b: Budget): { figures: string[]; between: string } {
  if (b.rounds) return { figures: [many(b.questions.left, "question"), many(b.rounds.left, "round")], between: " in " };
  return { figures: [many(b.questions.left, "question"), ...(b.tokens ? [many(b.tokens.left, "token")] : [])], between: " and " };
}

/** Why nothing more can be asked; empty while something can. */
export function spent(b: Budget): "" | "questions" | "tokens" {
  if (b.questions.left === 0) return "questions";
  return b.tokens && b.tokens.of > 0 && b.tokens.left === 0 ? "tokens" : "";
}

/** Mechanisms by their names for people. */
export const mechanismName = (m: string) => ({ guess_and_check: "guess and check", naive: "naive (protects nothing)" })[m] ?? m.replaceAll("_", " ");

/** One row, one day, one customer_id: what is independent. */
export function unitName(unit: string): string {
  if (unit === "row" || unit === "") return "one row";
  const day = /^day\((.*)\)$/.exec(unit);
  return day ? `one day of ${day[1]}` : `one ${unit}`;
}

/** A warning of the card as two plain sentences, or the server's own. */
export function warningWords(w: Warning): string {
  if (w.code === "dependent-rows" && w.unit && w.design_effect) {
    const day = /^day\((.*)\)$/.exec(w.unit);
    const times = plain(Number(Math.sqrt(w.design_effect).toPrecision(2)));
    return day
      ? `Rows of one day are alike. For days that are not in this table, these intervals are about ${times} times too narrow.`
      : `Rows with the same ${w.unit} are alike. For others than are in this table, these intervals are about ${times} times too narrow.`;
  }
  return w.detail[0]!.toUpperCase() + w.detail.slice(1) + (/[.!?]$/.test(w.detail) ? "" : ".");
}

/** "30,000 rows" or "181 units (40,000 rows)". */
export function size(card: Card, part: "holdout" | "training" | "check"): string {
  const units = card.units[part] ?? 0;
  const rows = card.rows?.[part];
  if (card.unit === "row" || card.unit === "") return many(units, "row");
  return rows === undefined ? many(units, "unit") : `${many(rows, "row")} of ${many(units, "unit")}`;
}

/** The range or the categories of a column, in few words. */
export function columnWords(c: Card["columns"][number]): string {
  return c.note ? `${rangeWords(c)}, ${c.note}` : rangeWords(c);
}

function rangeWords(c: Card["columns"][number]): string {
  const month = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric", timeZone: "UTC" });
  if (c.earliest && c.latest) {
    const [a, b] = [month.format(new Date(c.earliest)), month.format(new Date(c.latest))];
    if (a === b) return a;
    return a.slice(-4) === b.slice(-4) ? `${a.slice(0, -5)} to ${b}` : `${a} to ${b}`;
  }
  if (c.min !== undefined && c.max !== undefined) return `${plain(c.min)} to ${plain(c.max)}`;
  if (c.distinct !== undefined) return many(c.distinct, "category", "categories");
  return { bool: "true or false", number: "number", time: "time", text: "text" }[c.kind] ?? c.kind;
}

/** How many questions were used. */
export const used = (b: Budget) => b.questions.of - b.questions.left - (b.lost ?? 0);

