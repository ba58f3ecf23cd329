// What the preview says of each way in which an answer can come out.
import type { Cost, Explanation, ForeseenOutcome } from "../generated/api";
import { around, many, within } from "./format";

/** Whose word an answer is compared with: "training", "check", "your guess". */
export const knownName = (e: Explanation, guessed: boolean) => (guessed ? "your guess" : e.value_from === "check" ? "the check value" : "training");

/** "If training is close" */
export function outcomeName(o: ForeseenOutcome, known: string, only: boolean): string {
  const right: Record<string, string> = {
    close: `If ${known} is close`,
    rough: "If it is roughly right",
    agrees: `If ${known} is close`,
    differs: "If it is not",
    kept: "If the promise is kept",
    broken: "If it is broken",
    mixed: "If some are and some are not",
    selected: "The best is at most so much better",
    best: "If it is the best so far",
    behind: "If it is not",
    measured: "The answer",
    unknown: "If there is nothing to compare",
  };
  return only ? "The answer" : (right[o.outcome] ?? o.outcome);
}

/** "±0.012", or "about ±0.0085, at most ±0.020" where the two are not the same. */
export function widths(o: ForeseenOutcome): string {
  const { half_width: planned, widest_half_width: widest } = o;
  if (planned == null) return widest == null ? "no interval" : `at most ${within(widest)}`;
  if (widest == null || widest <= planned * 1.02) return around(planned);
  return `about ${around(planned)}, at most ${within(widest)}`;
}

/** "12 questions and 1 token" */
export const price = (c: Cost) => [many(c.questions, "question"), ...(c.tokens > 0 ? [many(c.tokens, "token")] : [])].join(" and ");

/** The most tokens that any outcome costs. */
export const mostTokens = (e: Explanation) => e.outcomes.reduce((n, o) => Math.max(n, o.cost.tokens), 0);

/** The widest half-width that is known: what an axis must have room for. */
export function room(e: Explanation): number {
  return e.outcomes.reduce((n, o) => Math.max(n, o.widest_half_width ?? o.half_width ?? 0), 0);
}

/** Types whose value lies between 0 and 1. */
const shares = new Set(["fraction", "accuracy", "balanced_accuracy", "precision", "recall", "f1", "auc"]);

/** Where the axis of a preview begins and ends: around what training says, as far as any outcome may reach. */
export function reach(e: Explanation, type: string): [number, number] {
  const middle = e.training ?? 0;
  const h = room(e) || 1;
  const bounded = shares.has(type);
  return [bounded ? Math.max(0, middle - h) : middle - h, bounded ? Math.min(1, middle + h) : middle + h];
}

/** "A final report of five numbers now: 1.40 times a textbook's width. After this 1.40 if training is close, 2.38 if it is not, 1.66 if measured." Empty where there is no report. */
export function reportAfter(e: Explanation, known: string): string {
  const now = e.report_width;
  if (now == null) return "";
  const times = (x: number) => x.toFixed(x < 9.95 ? 2 : 1);
  const only = e.outcomes.length === 1;
  const ways = [...e.outcomes, ...(e.measured ? [e.measured] : [])].flatMap((o) => {
    if (o.report_width == null) return [];
    const where = only && o !== e.measured ? "" : o.outcome === "measured" ? " if measured" : ` ${outcomeName(o, known, false).replace("If", "if")}`;
    return [`${times(o.report_width)}${where}`];
  });
  return `A final report of five numbers now: ${times(now)} times a textbook's width.${ways.length > 0 ? ` After this ${ways.join(", ")}.` : ""}`;
}
