import { expect, test } from "vitest";
import { queryTypes } from "../generated/queries";
import { build, draftOf, fields, kept, kinds, testMembers, types } from "./draft";

test("every type of the server is in the form once", () => {
  const all = kinds.flatMap((k) => k.types);
  expect([...all].sort()).toEqual(queryTypes.map((q) => q.type).sort());
});
test("every kind of test, and every member it is said to have, is the server's", () => {
  const test = types.get("test")!;
  expect(Object.keys(testMembers).sort()).toEqual([...(test.members.find((m) => m.name === "test")!.values as string[])].sort());
  for (const members of Object.values(testMembers)) for (const m of members) expect(test.members.map((x) => x.name)).toContain(m);
});

// A field that a query loses on its way through the form would ask another question than the link says.
test("the examples of the server come through the form unchanged", () => {
  for (const q of queryTypes)
    for (const example of q.examples) {
      const { query, errors, missing } = build(q.type, draftOf(example));
      const rest = Object.fromEntries(Object.entries(example).filter(([k, v]) => v !== q.members.find((m) => m.name === k)?.default));
      expect({ errors, missing }, JSON.stringify(example)).toEqual({ errors: {}, missing: [] });
      expect(query, q.type).toEqual(rest);
    }
});
test("what the form can say by itself", () => {
  expect(build("mean", { of: "delay", range: ["180", "-60"] }).errors).toEqual({ "/range": "The low end must be below the high end." });
  expect(build("quantile", { of: "delay", p: "half", range: ["0", "1"] }).errors).toEqual({ "/p": "This is no number." });
  expect(build("mean", { of: " ", range: ["", ""] }).missing).toEqual(["/of", "/range"]);
  expect(build("passes", { of: { type: "mean", draft: { of: "x", range: ["1", "0"] } }, above: "1" }).errors).toEqual({ "/of/range": "The low end must be below the high end." });
  expect(build("mean", { of: "delay", range: ["−60", "180"] }).query.range).toEqual([-60, 180]);
});
test("a type that changed keeps what fits", () => {
  const draft = { of: "delay > 15", where: "a", range: ["0", "1"] };
  expect(build("fraction", draft).query).toEqual({ type: "fraction", of: "delay > 15", where: "a" });
  // A guess of a share is none of groups, and would be refused where nobody sees it.
  expect(kept({ ...draft, guess: "0.9" }, "fraction", "groups")).toEqual(draft);
  expect(kept({ of: "a" }, "fraction", "argmax")).toEqual({}); // one text there, many queries here
  expect(fields(types.get("mean")!, draft).first.map((m) => m.name)).toEqual(["of", "range", "where"]);
});
