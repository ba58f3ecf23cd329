import { expect, test } from "vitest";
import type { Row } from "./answers";
import { choices, pythonReport, reported, sent } from "./report";

test("a report asks without what it compares with", () => {
  expect(reported({ type: "fraction", of: "x > 0", guess: 0.5, half_width: 0.1, measure: true, report: true, where: "y > 1" })).toEqual({ type: "fraction", of: "x > 0", where: "y > 1" });
});

test("two looks at one number are one choice, and the newest is first", () => {
  const row = (seq: number, canonical: object, note: string | null = null) => ({ seq, past: { canonical, note } }) as unknown as Row;
  const found = choices([row(1, { type: "fraction", of: "x > 0" }, "late"), row(2, { type: "mean", of: "x" }), row(3, { type: "fraction", of: "x > 0", measure: true })]);
  expect(found.map((c) => c.row.seq)).toEqual([3, 2]);
  expect(found.map((c) => c.name)).toEqual(["late", ""]);
});

test("names are notes, and Python has them all", () => {
  const queries = sent([{ query: { type: "fraction", of: "x > 0" }, name: " late " }, { query: { type: "fraction", of: "x > 1" }, name: "" }]);
  expect(queries).toEqual([{ type: "fraction", of: "x > 0", note: "late" }, { type: "fraction", of: "x > 1" }]);
  expect(pythonReport(queries, "Spring")).toBe('ds.report([\n    holdoutd.q.fraction("x > 0", note="late"),\n    holdoutd.q.fraction("x > 1"),\n], title="Spring", close=True)');
});
