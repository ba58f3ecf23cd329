import { expect, test } from "vitest";
import { linear, logPlace, logValue, roundUp, stop } from "./scale";

// A mark outside of its drawing is not seen; ticks that are not round are not read.
test("an axis shows all values, with round ticks", () => {
  const s = linear([0.692, 0.742, 0.945]);
  for (const v of [0.692, 0.742, 0.945]) expect(s.at(v)).toBeGreaterThanOrEqual(3), expect(s.at(v)).toBeLessThanOrEqual(97);
  expect(s.ticks.map((t) => t.toFixed(s.digits))).toEqual(["0.7", "0.8", "0.9"]);
});
test("zero is a tick exactly where it is inside", () => {
  expect(linear([-0.054, 0.064]).ticks).toContain(0);
  expect(linear([0.2, 0.4]).ticks).not.toContain(0);
});
test("one value, or none, still has an axis", () => {
  for (const values of [[5], [0], [], [NaN]]) {
    const s = linear(values);
    expect(s.from).toBeLessThan(s.to);
    expect(s.ticks.length).toBeGreaterThan(0);
    expect(s.ticks.length).toBeLessThan(12);
  }
});
test("many values need no stack", () => expect(linear(Array.from({ length: 300_000 }, (_, i) => i)).to).toBe(299_999));
test("round numbers", () => expect([0.3, 1, 3, 42, 101].map(roundUp)).toEqual([0.5, 1, 5, 50, 200]));
test("a slider's place and value belong together", () => {
  for (const v of [20, 1000, 30_000]) expect(Math.round(logValue(logPlace(v, 20, 100_000), 20, 100_000))).toBe(v);
  expect([30_123, 987, 12.4].map(stop)).toEqual([30_000, 990, 12]);
});
