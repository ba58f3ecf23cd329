import { expect, test } from "vitest";
import type { Column } from "../generated/api";
import { complete, endOf, placeOf, sides, tokens, written } from "./expression";

const columns: Column[] = [
  { name: "date", kind: "time", source: "" }, { name: "delay", kind: "number", source: "", min: -69, max: 1147 }, { name: "carrier", kind: "text", source: "", distinct: 3, values: ["AA", "AS", "UA"] },
];
const names = new Set(columns.map((c) => c.name));

test("pieces are the text again", () => {
  for (const text of ["delay > 30 && date.getHours() >= 18", "carrier in ['AA', \"A\\\"S\"]", "col(\"air time\") / 6e1", "'open", "é ≥ 3"])
    expect(tokens(text, names).map((t) => t.text).join("")).toBe(text);
  expect(tokens("delay > 3.6e9", names).map((t) => t.kind)).toEqual(["column", "space", "operator", "space", "number"]);
});
test("columns, functions of their kind, categories", () => {
  expect(complete("de", 2, columns, false)?.proposals.map((p) => p.label)).toEqual(["delay"]);
  expect(complete("d", 1, columns, false)).toBeUndefined(); // one letter proposes nothing by itself
  expect(complete("d", 1, columns, true)?.proposals.map((p) => p.label)).toEqual(["date", "delay"]);
  expect(complete("date.getH", 9, columns, false)?.proposals.map((p) => p.insert)).toEqual(["getHours()"]);
  expect(complete("carrier == 'A", 13, columns, false)?.proposals.map((p) => p.insert)).toEqual(["AA'", "AS'"]);
  expect(complete("carrier == 'A'", 13, columns, false)?.proposals.map((p) => p.insert)).toEqual(["AA", "AS"]);
  expect(complete("delay == 'A", 11, columns, false)).toBeUndefined();
});
test("the place that the server names", () => {
  expect(placeOf("dleay > 30", 1, 1)).toBe(0);
  expect(placeOf("a\n😀b", 2, 2)).toBe(4); // characters, not halves of them
  expect(endOf("dleay > 30", 0)).toBe(5);
});
test("a name that is no identifier is written so that it can be read back", () => expect([written("a.b"), written("air time"), written("in")]).toEqual(["a.b", 'col("air time")', 'col("in")']));
test("two sides of an and", () => {
  expect(sides("delay > 30 && date.getHours() >= 18")).toEqual(["delay > 30", "date.getHours() >= 18"]);
  expect(sides("a && (b && c)")).toEqual(["a", "(b && c)"]);
  expect(sides("a || b && c")).toBeUndefined();
  expect(sides("x == 'a && b'")).toBeUndefined();
});
