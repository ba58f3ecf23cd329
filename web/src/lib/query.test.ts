import { expect, test } from "vitest";
import { queryTypes } from "../generated/queries";
import { describe, familyOf, plainText, python } from "./query";

test("a call of the Python client", () => {
  expect(python({ type: "fraction", of: "delay > 30 && date.getHours() >= 18" })).toBe('ds.fraction("delay > 30 && date.getHours() >= 18")');
  expect(python({ type: "fraction", of: "delay > 30", report: true })).toBe('ds.report([holdoutd.q.fraction("delay > 30")])');
  expect(python({ type: "mean", of: "delay", range: [-60, 180], where: 'origin == "SFO"' })).toBe('ds.mean("delay", range=(-60, 180), where="origin == \\"SFO\\"")');
  expect(python({ type: "test", test: "value", equals: 5, query: { type: "mean", of: "x", range: [0, 1] } })).toBe('ds.test("value", equals=5, query=holdoutd.q.mean("x", range=(0, 1)))');
  expect(python({ type: "accuracy", label: "y", model: { bytes: 5000, digest: "sha256:ab" } })).toBe('ds.accuracy(label="y", model=model)');
  expect(python({ type: "argmax", of: [{ type: "auc", label: "y", model: { linear: {} } }], least: true })).toBe('ds.argmax([holdoutd.q.auc(label="y", model={"linear": {}})], least=True)');
});

// A new query type of the server must have a name and a group, not a row that says "undefined".
test("every example of every type can be named, grouped and written in Python", () => {
  for (const q of queryTypes)
    for (const example of q.examples) {
      const words = [plainText(describe(example)), plainText(familyOf(example, { kind: "share" }).title), python(example)];
      for (const w of words) {
        expect(w, `${q.type}: ${w}`).not.toMatch(/undefined|\[object|NaN/);
        expect(w.length, q.type).toBeGreaterThan(0);
      }
    }
});

test("models without a note are told apart", () => {
  const named = (model: unknown) => plainText(describe({ type: "accuracy", label: "y", model }));
  expect(named({ trees: [] })).toBe("trees for y");
  expect(named({ linear: {}, threshold: 0.3 })).toBe("a linear model for y");
  expect(named({ bytes: 5000, digest: "sha256:0123456789" })).toBe("the model 0123456 for y");
});

test("answers that average units are no shares of rows", () => {
  const share = { type: "fraction", of: "x > 1" };
  const of = (per?: string) => familyOf(share, { kind: "share" }, per);
  expect(plainText(of().title)).toBe("Share of all rows");
  expect(plainText(of("row").title)).toBe("Share of all rows");
  expect(plainText(of("customer").title)).toBe("Share of rows, mean per customer");
  expect(of("customer").unit).toBe("mean share per customer");
  expect(new Set([of().key, of("row").key, of("customer").key]).size).toBe(3);
  expect(familyOf({ type: "mean", of: "x" }, { kind: "of", of: ["x"] }, "customer").unit).toBe("x, mean per customer");
});
