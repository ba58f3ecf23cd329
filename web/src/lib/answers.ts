// The history as rows of a forest plot: what an answer says beside what training said.
import type { PastAnswer } from "../generated/api";
import { decimals, fixed, list, low, many, span } from "./format";
import { describe, familyOf, plainText, type Family, type Phrase, type Query } from "./query";

/** One number with its interval, and the value that was known before. */
export interface Mark {
  name: string;
  value: number | null;
  low: number | null;
  high: number | null;
  /** what training (or the check part) says; null where it says nothing */
  known: number | null;
  /** whether the known value lies outside the interval */
  differs: boolean;
  /** how far outside, at least; 0 where it does not differ */
  by: number;
  /** digits after the point, of this mark's half-width */
  digits: number;
}

export interface Row {
  past: PastAnswer;
  seq: number;
  title: Phrase;
  /** all that a search looks through, in lower case */
  text: string;
  family: Family;
  mark: Mark;
  /** of an answer that is many numbers */
  items: Mark[];
  differs: boolean;
  tokens: number;
  /** whether the analyst gave a guess of their own */
  guessed: boolean;
  /** "training value" or "check value" */
  known: string;
}

function mark(name: string, value: number | null | undefined, from: number | null | undefined, to: number | null | undefined, known: number | null | undefined): Mark {
  const bounded = from != null && to != null;
  const half = bounded ? (to - from) / 2 : 0;
  // An answer that takes the training value over shows it as it was released: the two differ by rounding alone, which is no difference.
  const slack = 1e-6 * Math.max(half, Number.MIN_VALUE);
  const apart = bounded && known != null ? Math.max(from - known, known - to, 0) : 0;
  const by = apart > slack ? Number(apart.toPrecision(12)) : 0; // without the error of the subtraction
  return { name, value: value ?? null, low: from ?? null, high: to ?? null, known: known ?? null, differs: by > 0, by, digits: decimals(half) };
}

/** A row of the history. */
export function rowOf(past: PastAnswer): Row {
  const query = (past.canonical ?? {}) as Query;
  const { answer, reference } = past;
  const title: Phrase = past.note ? [{ text: past.note }] : describe(query);
  const one = mark(plainText(title), answer.value, answer.interval?.low, answer.interval?.high, reference?.value);
  if (!answer.items?.length && answer.interval && answer.interval.low === undefined) one.low = one.high = null;
  const items = (answer.items ?? []).map((item, i) => mark(item.of, item.value, item.low, item.high, reference?.items?.find((r) => r.of === item.of)?.value ?? reference?.items?.[i]?.value));
  level(items);
  const differs = one.differs || items.some((i) => i.differs);
  return {
    past, seq: answer.ledger.seq, title, family: familyOf(query, past.measure, past.per), mark: one, items, differs, tokens: answer.cost.tokens, guessed: query.guess !== undefined,
    known: reference?.part === "check" ? "check value" : "training value",
    text: [plainText(title), plainText(describe(query)), past.asked_by.name ?? past.asked_by.id, query.type].join(" ").toLowerCase(),
  };
}

export interface Group {
  family: Family;
  rows: Row[];
  differs: boolean;
  newest: number;
}

/** Gives marks that stand under each other the digits that the widest of them needs, or more where a narrow one has else none of its own. */
function level(marks: Mark[]) {
  const halves = marks.filter((m) => m.value !== null && m.low !== null && m.high !== null).map((m) => (m.high! - m.low!) / 2);
  if (halves.length === 0) return;
  const common = decimals(halves.reduce((a, b) => Math.max(a, b), 0));
  for (const m of marks) if (m.low !== null && m.high !== null) m.digits = Math.max(common, decimals((m.high - m.low) / 2) - 1);
}

/** Rows by their family: first those with a difference, then by their newest answer. Within one the newest is first, or the largest value. */
export function groups(rows: Row[], order: "time" | "value" = "time"): Group[] {
  const found = new Map<string, Group>();
  for (const row of rows) {
    let group = found.get(row.family.key);
    if (!group) found.set(row.family.key, (group = { family: row.family, rows: [], differs: false, newest: 0 }));
    group.rows.push(row);
    group.differs ||= row.differs;
    group.newest = Math.max(group.newest, row.seq);
  }
  const all = [...found.values()];
  for (const group of all) {
    level(group.rows.map((r) => r.mark));
    group.rows.sort((a, b) => (order === "value" ? (b.mark.value ?? -Infinity) - (a.mark.value ?? -Infinity) || b.seq - a.seq : b.seq - a.seq));
  }
  return all.sort((a, b) => Number(b.differs) - Number(a.differs) || b.newest - a.newest);
}

/** What is drawn of these rows, and so stands in the legend: a key whose grant shows less sees less. */
export function drawn(rows: Row[]) {
  const found = { interval: false, value: false, agrees: false, differs: false };
  for (const m of rows.flatMap((r) => [r.mark, ...r.items])) {
    found.interval ||= m.low !== null && m.high !== null;
    found.value ||= m.value !== null;
    found.agrees ||= m.known !== null && !m.differs;
    found.differs ||= m.known !== null && m.differs;
  }
  return found;
}

/** All numbers that an axis must show. */
export const shown = (marks: Mark[]): number[] => marks.flatMap((m) => [m.value, m.low, m.high, m.known].filter((x): x is number => x !== null));

/** "0.717", or a dash where there is none. */
export const valueOf = (m: Mark) => (m.value === null ? "—" : fixed(m.value, m.digits));

/** Its value in words: the candidate that was selected, or whether it passed where no more is shown. */
export function told(row: Row): string {
  const { selected, passed } = row.past.answer;
  return selected ?? (passed === undefined ? valueOf(row.mark) : passed ? "passed" : "not passed");
}

/** Of an answer that is not shown whole, why there is no interval; else empty. */
export const withheld = (a: PastAnswer["answer"]) => (a.shows === "value" ? "The grant of this key shows no intervals." : a.shows === "bit" ? "The grant of this key shows whether it passed, and no more." : "");

/** "0.692 to 0.742" */
export const intervalOf = (m: Mark) => (m.low === null || m.high === null ? "" : span(m.low, m.high, m.digits));

/** "too high by at least 0.202" */
export const wrongBy = (m: Mark) => `too ${m.known! > m.high! ? "high" : "low"} by at least ${low(m.by, Math.max(m.digits, decimals(m.by) - 1))}`;

const agreement = (m: Mark, known: string) =>
  m.known === null ? "" : `; ${known} ${fixed(m.known, m.digits)}${m.differs ? `, ${wrongBy(m)}` : m.low === null ? "" : " agrees"}`;

/** What a screen reader says of a row. */
export function spoken(row: Row): string {
  const name = plainText(row.title);
  const tokens = row.tokens > 0 ? `; ${many(row.tokens, "token")}` : "";
  if (row.items.length > 0) {
    const wrong = row.items.filter((i) => i.differs).length;
    return `${name}: ${many(row.items.length, "value")}${wrong ? `, ${wrong} differ from training` : ""}${tokens}`;
  }
  if (row.past.answer.passed !== undefined) return `${name}: ${told(row)}`;
  return `${spokenMark(row.mark, name, row.known)}${tokens}`;
}

export function spokenMark(m: Mark, name: string, known: string): string {
  return `${name}: ${m.value === null ? "no value" : valueOf(m)}${m.low === null ? "" : `, interval ${intervalOf(m)}`}${agreement(m, known)}`;
}

/** "26 answers. 3 differ from training." */
export function headline(rows: Row[]): string {
  const compared = rows.filter((r) => r.mark.known !== null || r.items.some((i) => i.known !== null));
  const wrong = rows.filter((r) => r.differs).length;
  const answers = many(rows.length, "answer");
  if (wrong > 0) return `${answers}. ${wrong} ${wrong === 1 ? "differs" : "differ"} from training.`;
  return compared.length > 0 ? `${answers}. ${rows.length === 1 ? "It agrees" : "All agree"} with training.` : `${answers}.`;
}

const numbers = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"];

/** The sentence under the headline: by how much training was wrong. */
export function summary(rows: Row[]): string {
  const why = rows.map((r) => withheld(r.past.answer)).find((w) => w);
  if (why) return why;
  const wrong = rows.filter((r) => r.differs);
  if (wrong.length === 0) return "Every value that was known before lies in its interval.";
  const agree = rows.length - wrong.length;
  const rest = agree === 0 ? "" : ` The other ${agree === 1 ? "training value agrees" : `${agree} training values agree`} with the holdout.`;
  const single = wrong.filter((r) => r.mark.differs);
  if (single.length !== wrong.length || wrong.length > 6) return `${numbers[wrong.length] ?? wrong.length} training ${wrong.length === 1 ? "value was" : "values were"} wrong by more than chance allows.${rest}`;
  const ups = single.filter((r) => r.mark.known! > r.mark.high!).length;
  const models = single.every((r) => r.family.key.startsWith("score"));
  const what = models ? (single.length === 1 ? "model looked" : "models looked") : single.length === 1 ? "value was" : "values were";
  const how = models ? (ups === single.length ? "better in training than it is" : "different in training") : ups === single.length ? "too high in training" : ups === 0 ? "too low in training" : "wrong in training";
  const amounts = single.map((r) => r.mark).sort((a, b) => a.by - b.by).map((m) => (m.by >= 10 ** (1 - m.digits) ? low(m.by, Math.max(0, m.digits - 1)) : low(m.by, decimals(m.by) - 1)));
  const plural = models && single.length > 1 ? how.replace("than it is", "than they are") : how;
  return `${numbers[single.length]} ${what} ${plural}, by at least ${list(amounts)}.${rest}`;
}

/** What an opened row says of where its value is from. */
export function origin(row: Row): string {
  const { answer } = row.past;
  if (withheld(answer)) return withheld(answer);
  const known = row.known.replace(" value", "");
  const Known = known === "check" ? "The check part" : "Training";
  const m = row.mark;
  const said = m.known === null || row.items.length > 0 ? "" : m.differs ? ` ${Known} said ${fixed(m.known, m.digits)}, which is ${wrongBy(m)}.` : ` ${Known} said ${fixed(m.known, m.digits)}.`;
  switch (row.past.outcome ?? answer.source) {
    case "close":
      return row.guessed ? `The value is your guess; the holdout agrees with it.${said}` : `The value is from ${known}; the holdout agrees with it.`;
    case "rough":
      return `The value is from ${row.guessed ? "your guess" : known}; the holdout agrees roughly, so the interval is wider.`;
    case "agrees":
      return `The value is from ${known}; the holdout agrees with it.`;
    case "differs":
      return `The value is from the holdout.${row.guessed ? " The guess was wrong." : ""}${said}`;
    case "kept":
      return `The value is from the holdout, and the promise about it is kept.${said}`;
    case "broken":
      return `The value is from the holdout. The promise about it is broken, which costs a token.${said}`;
    case "mixed": {
      const wrong = row.items.filter((i) => i.differs).length;
      return `Some values are from ${known} and some from the holdout.${wrong ? ` ${many(wrong, "value")} differ from ${known}.` : ""}`;
    }
    case "unknown":
      return `${Known === "Training" ? "Training has" : `${Known} has`} too few of these rows to compare the holdout with.`;
    case "selected":
      return `Selected: ${answer.selected ?? ""}.`;
    case "best":
      return "This is the best submission so far.";
    case "behind":
      return "This is not better than the best submission before it.";
    case "measured": case "holdout":
      return `The value is from the holdout.${said}`;
  }
  return said.trim();
}

