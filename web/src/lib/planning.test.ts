import { expect, test } from "vitest";
import type { MethodPlan, Plan } from "../generated/api";
import { lines, requestOf, spread, typed, unit } from "./planning";

const method = (name: string, half_width: number | null, more: Partial<MethodPlan> = {}): MethodPlan => ({ method: name, half_width, noise_sigma: 0, parts: {}, published: false, assumes: "nothing", ...more });
const plan = (questions: number, f: number): Plan => ({
  n: 1, questions, confidence: 0.95, recommended: "guess-and-check", notes: [],
  methods: [method("non-adaptive", 0.01, { published: true, rounds: 1 }), method("splitting", 0.2 * f, { published: true }), method("dfhprr", 0.4, { published: true }), method("rz", 0.3, { published: true }), method("guess-and-check", 0.03)],
});

test("which line is which", () => {
  const all = lines(new Map([[20, plan(20, 1)], [2000, plan(2000, 100)]]), plan(200, 2));
  expect(Object.fromEntries(all.map((l) => [l.method, l.kind]))).toEqual({ "non-adaptive": "floor", splitting: "named", dfhprr: "thin", rz: "named", "guess-and-check": "recommended" });
  expect(all.find((l) => l.method === "rz")!.name).toBe("best published bound");
  const end = all.find((l) => l.method === "splitting")!.points.at(-1)!;
  expect(end[1]).toBe(1); // a line ends at ±1, between the points that it is known at
  expect(end[0]).toBeGreaterThan(200);
  expect(end[0]).toBeLessThan(2000);
});
test("never more tokens than questions", () => {
  const s = { n: 1000, training: 1000, questions: 5, tokens: 20, confidence: 0.95 };
  expect(requestOf(s).tokens).toBe(5);
  expect(requestOf({ ...s, training: 0 })).not.toHaveProperty("tokens");
});
test("widths in a reader's own unit", () => {
  expect(unit("delay in [-60, 180]")).toEqual({ name: "delay", width: 240 });
  expect(unit("delay in −60 to 180")).toEqual({ name: "delay", width: 240 });
  expect(unit("delay")).toBeUndefined();
  expect(unit("delay in [5, 5]")).toBeUndefined();
});
test("labels do not stand on each other", () => expect(spread([100, 104, 90], 16)).toEqual([106, 122, 90]));
test("what is typed", () => expect([typed("30,000", 1, 1e6), typed("3e4", 1, 1e6), typed("x", 1, 9), typed("99", 1, 9)]).toEqual([30_000, 30_000, undefined, 9]));
