// What the page of a final report makes of the questions that were asked.
import type { PastAnswer } from "../generated/api";
import { rowOf, type Row } from "./answers";
import type { FinalReport } from "../generated/api";
import { python, type Query } from "./query";

/** What a report does not take: it compares with nothing, and says what the holdout has. */
const compared = new Set(["guess", "guesses", "half_width", "measure", "promise", "report"]);

/** A question as a report asks it. */
export const reported = (q: Query): Query => Object.fromEntries(Object.entries(q).filter(([name]) => !compared.has(name)));

/** A question that can be reported. */
export interface Choice {
  row: Row;
  query: Query;
  /** what it was called, by whoever asked last and gave a name */
  name: string;
  /** of the query: two rows that differ in what a report leaves out are one choice */
  key: string;
}

/** The questions that can be reported, newest first. */
export function choices(rows: Row[]): Choice[] {
  const found = new Map<string, Choice>();
  for (const row of rows.toReversed()) {
    const query = reported((row.past.canonical ?? {}) as Query);
    const key = JSON.stringify(query);
    const name = row.past.note ?? "";
    const newer = found.get(key);
    if (!newer) found.set(key, { row, query, name, key });
    else newer.name ||= name;
  }
  return [...found.values()];
}

/** The queries as they are sent: a name is a query's note. */
export const sent = (chosen: { query: Query; name: string }[]): Query[] => chosen.map(({ query, name }) => (name.trim() ? { ...query, note: name.trim() } : query));

/** The report as a call of the Python client. */
export function pythonReport(queries: Query[], title: string): string {
  const calls = queries.map((q) => `    ${python(q).replace(/^ds\./, "holdoutd.q.")},\n`);
  return `ds.report([\n${calls.join("")}], ${title ? `title=${JSON.stringify(title)}, ` : ""}close=True)`;
}

/** The answers of a report as rows of a figure. */
export const rowsOf = (r: FinalReport): Row[] =>
  r.answers.map((a) => rowOf({ answer: a.answer, canonical: a.canonical, note: a.note, measure: a.measure, per: a.per, asked_by: r.closed_by, time: r.time, outcome: a.answer.outcome ?? null, reference: null } as PastAnswer));
