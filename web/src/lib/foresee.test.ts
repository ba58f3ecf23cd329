import { describe, expect, it } from "vitest";
import type { Explanation } from "../generated/api";
import { reportAfter } from "./foresee";

const cost = { questions: 1, tokens: 0, rounds: 0 };
const way = (outcome: string, report_width?: number) => ({ outcome, cost, half_width: 0.01, widest_half_width: 0.01, report_width });
const explanation = (rest: object) => ({ outcomes: [], ...rest }) as unknown as Explanation;

describe("reportAfter", () => {
  it("says what each outcome leaves of a report", () => {
    const e = explanation({ report_width: 1.392, outcomes: [way("close", 1.3921), way("differs", 2.377), way("mixed")], measured: way("measured", 1.659) });
    expect(reportAfter(e, "training")).toBe("A final report of five numbers now: 1.39 times a textbook's width. After this 1.39 if training is close, 2.38 if it is not, 1.66 if measured.");
  });
  it("says it once of a measured answer", () => {
    expect(reportAfter(explanation({ report_width: 1.4, outcomes: [way("measured", 1.7)] }), "training")).toBe("A final report of five numbers now: 1.40 times a textbook's width. After this 1.70.");
  });
  it("says nothing where there is no report", () => {
    expect(reportAfter(explanation({ outcomes: [way("close")] }), "training")).toBe("");
  });
});
