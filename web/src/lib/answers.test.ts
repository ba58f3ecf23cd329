import { expect, test } from "vitest";
import type { PastAnswer } from "../generated/api";
import { drawn, groups, headline, intervalOf, origin, rowOf, spoken, summary, told } from "./answers";

let seq = 0;
function past(canonical: Record<string, unknown>, value: number, low: number, high: number, known: number | null, more: Partial<PastAnswer> & { tokens?: number } = {}): PastAnswer {
  seq++;
  const { tokens = 0, ...rest } = more;
  return {
    answer: {
      version: 1, id: `a${seq}`, holdout: "h", query: `q${seq}`, value, interval: { low, high, confidence: 0.95, scope: "all", target: "the fraction", bound: "b" }, mechanism: "guess_and_check", source: "training",
      cost: { questions: 1, tokens }, ledger: { seq, head: "" },
    },
    canonical, note: null, asked_by: { id: "k", name: "ann" }, time: "2026-11-22T02:44:00Z", measure: { kind: "share" }, outcome: tokens ? "differs" : "close", reference: known === null ? null : { part: "training", value: known }, ...rest,
  };
}
const tree = (depth: number, value: number, known: number) => past({ type: "accuracy", label: "delay > 15", model: { digest: `${depth}` } }, value, value - 0.025, value + 0.025, known, { note: `tree, depth ${depth}`, tokens: Math.abs(value - known) > 0.025 ? 1 : 0 });

test("a ring outside of its interval differs, by at least its distance from the near end", () => {
  const row = rowOf(tree(20, 0.717, 0.945));
  expect(row.differs).toBe(true);
  expect(row.mark.by).toBeCloseTo(0.203, 10);
  expect(spoken(row)).toBe("tree, depth 20: 0.717, interval 0.692 to 0.742; training value 0.945, too high by at least 0.203; 1 token");
  expect(origin(row)).toContain("The value is from the holdout. Training said 0.945, which is too high by at least 0.203.");
});
// "By at least" is a promise: rounded up it would say more than is known.
test("by at least is rounded down", () => expect(spoken(rowOf(past({ type: "fraction", of: "a" }, 0.5, 0.45, 0.55, 0.60199, { note: "x" }))).replace(/.*least /, "")).toBe("0.051"));
test("a ring inside agrees, and a value that was rounded is no difference", () => {
  expect(rowOf(past({ type: "fraction", of: "a" }, 0.2, 0.18, 0.22, 0.2)).differs).toBe(false);
  expect(rowOf(past({ type: "fraction", of: "a" }, 0, 0, 0.01, -1e-12)).differs).toBe(false);
});
test("nothing to compare with is no agreement", () => {
  const rows = [rowOf(past({ type: "fraction", of: "a" }, 0.2, 0.18, 0.22, null))];
  expect(headline(rows)).toBe("1 answer.");
});

test("the headline and its sentence", () => {
  const rows = [tree(12, 0.783, 0.828), tree(16, 0.756, 0.881), tree(20, 0.717, 0.945), tree(8, 0.807, 0.81)].map(rowOf);
  expect(headline(rows)).toBe("4 answers. 3 differ from training.");
  expect(summary(rows)).toBe("Three models looked better in training than they are, by at least 0.02, 0.10 and 0.20. The other training value agrees with the holdout.");
  expect(headline(rows.slice(3))).toBe("1 answer. It agrees with training.");
});

test("answers of one quantity and unit share an axis, and a difference comes first", () => {
  const rows = [
    tree(20, 0.717, 0.945), tree(8, 0.807, 0.81),
    past({ type: "fraction", of: "delay > 15" }, 0.2, 0.18, 0.22, 0.2),
    past({ type: "fraction", of: "delay > 15", where: "origin == 'SFO'" }, 0.2, 0.1, 0.3, 0.2),
    past({ type: "mean", of: "delay", range: [-60, 180] }, 6, 5, 7, 6, { measure: { kind: "of", of: ["delay"] } }),
    past({ type: "median", of: "delay", range: [-60, 180] }, -1, -2, 0, -1, { measure: { kind: "of", of: ["delay"] } }),
    past({ type: "mean", of: "distance", range: [0, 3000] }, 700, 650, 750, 700, { measure: { kind: "of", of: ["distance"] } }),
    past({ type: "passes", above: 0.1, of: { type: "fraction", of: "delay > 15" } }, 0.2, 0.18, 0.22, 0.2),
  ].map(rowOf);
  const made = groups(rows);
  expect(made.map((g) => g.rows.length)).toEqual([2, 2, 1, 2, 1]);
  expect(made[0]!.differs).toBe(true);
  expect(made[1]!.rows.map((r) => r.family.key)).toEqual(["share", "share"]); // a bar over a share stands with shares
  expect(groups(rows, "value")[0]!.rows.map((r) => r.mark.value)).toEqual([0.807, 0.717]);
});
test("figures under each other have the digits of the widest, and at least one of their own", () => {
  const [wide, narrow] = [past({ type: "fraction", of: "a" }, 0.5, 0.48, 0.52, 0.5), past({ type: "fraction", of: "b" }, 0.0431, 0.0391, 0.0471, 0.0431)].map(rowOf);
  groups([wide!, narrow!]);
  expect([wide!.mark.digits, narrow!.mark.digits]).toEqual([3, 3]);
});

test("a key whose grant shows less is told no interval, and nothing of training", () => {
  const value = past({ type: "fraction", of: "a" }, 0.2, 0, 0, null, { note: "late" });
  value.answer = { ...value.answer, interval: null, source: "hidden", shows: "value", cost: { questions: 1, tokens: 0 } };
  const row = rowOf(value);
  expect([row.mark.low, row.mark.high, intervalOf(row.mark), row.differs]).toEqual([null, null, "", false]);
  expect([told(row), spoken(row)]).toEqual(["0.200", "late: 0.200"]);
  expect([origin(row), summary([row])]).toEqual(["The grant of this key shows no intervals.", "The grant of this key shows no intervals."]);
  const bit = past({ type: "passes", above: 0.1 }, 0, 0, 0, null, { note: "good" });
  bit.answer = { ...bit.answer, value: null, interval: null, source: "hidden", shows: "bit", passed: false };
  expect([told(rowOf(bit)), spoken(rowOf(bit))]).toEqual(["not passed", "good: not passed"]);
  expect(headline([row, rowOf(bit)])).toBe("2 answers.");
  expect(drawn([row, rowOf(bit)])).toEqual({ interval: false, value: true, agrees: false, differs: false });
  expect(Object.values(drawn([rowOf(bit)]))).toEqual([false, false, false, false]);
  const whole = past({ type: "fraction", of: "b" }, 0.0431, 0.0391, 0.0471, 0.0431);
  expect(drawn([rowOf(whole)])).toEqual({ interval: true, value: true, agrees: true, differs: false });
});
