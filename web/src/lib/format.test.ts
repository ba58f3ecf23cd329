import { describe, expect, test } from "vitest";
import cases from "../../../internal/printed/cases.json?raw";
import { around, count, decimals, fixed, high, list, low, plain, span, within } from "./format";

describe("numbers", () => {
  // A figure with more digits than the half-width supports looks surer than it is; one with fewer hides what was paid for.
  test("as many digits as two of the half-width need", () => {
    expect([0.025, 0.0217, 4.7, 0.18, 47, 0.0017].map(decimals)).toEqual([3, 3, 1, 2, 0, 4]);
    expect(around(0.02171)).toBe("±0.022");
    expect(around(6.3)).toBe("±6.3");
    expect(around(100.9)).toBe("±101");
  });
  // An interval that is shown narrower than it is would be a promise that nobody made.
  test("ends of an interval are rounded outward", () => {
    expect(span(0.69211, 0.74181)).toBe("0.692 to 0.742");
    expect(span(0.6929, 0.7411, 3)).toBe("0.692 to 0.742");
    expect(span(-0.2199, 0.1401)).toBe("−0.22 to 0.15");
    expect(low(0.3, 1)).toBe("0.3"); // what a float cannot say exactly is not moved
    expect(high(0.1 + 0.2, 1)).toBe("0.4"); // it is more than 0.3
    expect(within(0.02171)).toBe("±0.022");
    expect(within(0.0212)).toBe("±0.022");
  });
  // The table that the server, the command and Python are tested by, too.
  test("the cases of all languages", () => {
    const table = JSON.parse(cases) as Record<"decimals" | "significant", Record<string, string>[]>;
    const number = (text: string) => Number(text.replace("inf", "Infinity"));
    const plainly = (text: string) => text.replaceAll(",", "").replace("−", "-");
    const seen = table.decimals.filter((c) => !(Number.isFinite(number(c.x!)) && Math.abs(number(c.x!)) >= 1e12));
    expect(seen.length).toBeGreaterThan(40);
    for (const c of seen) {
      const digits = Number(c.decimals);
      expect([c.x, ...[low, fixed, high].map((f) => plainly(f(number(c.x!), digits)))]).toEqual([c.x, c.low, c.near, c.high]);
    }
    // Large figures have three digits.
    const large = table.significant.filter((c) => Number(c.significant) === 3 && Math.abs(number(c.x!)) >= 1e12);
    expect(large.length).toBeGreaterThan(3);
    for (const c of large) expect([c.x, ...[low, fixed, high].map((f) => Number(plainly(f(number(c.x!), 3))))]).toEqual([c.x, ...[c.low, c.near, c.high].map(Number)]);
  });
  test("a true minus sign, and none before zero", () => {
    expect(fixed(-1.05, 1)).toBe("−1.1");
    expect(fixed(-0.0001, 2)).toBe("0.00");
  });
  test("thousands", () => {
    expect([0, 999, 1687, 1e6, -1147].map(count)).toEqual(["0", "999", "1,687", "1,000,000", "−1,147"]);
    expect([1147, -69, 0.5, 1234.5, 1e-7].map(plain)).toEqual(["1,147", "−69", "0.5", "1,234.5", "1e−7"]);
  });
  test("lists", () => expect([list([]), list(["a"]), list(["a", "b", "c"])]).toEqual(["", "a", "a, b and c"]));
});
