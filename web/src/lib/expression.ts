// The row expressions of docs/EXPRESSIONS.md, as far as a field needs them: colours and completion. The server says what is wrong.
import type { Column } from "../generated/api";
import { plain } from "./format";
import { columnWords } from "./words";

export interface Token {
  kind: "column" | "number" | "text" | "operator" | "function" | "space" | "other";
  text: string;
  from: number;
}

const pattern = /(\s+)|((?:r)?"(?:[^"\\]|\\.)*"?|(?:r)?'(?:[^'\\]|\\.)*'?)|(0x[0-9A-Fa-f]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(&&|\|\||[<>=!]=|[-+*/<>!?:])|(.)/gy;

const constants = new Set(["true", "false", "null", "in"]);

/** The pieces of an expression; together they are its text. */
export function tokens(text: string, columns: Set<string>): Token[] {
  const out: Token[] = [];
  pattern.lastIndex = 0;
  for (let m: RegExpExecArray | null; (m = pattern.exec(text)); ) {
    const [all, space, string, number, name, operator] = m;
    let kind: Token["kind"] = "other";
    if (space !== undefined) kind = "space";
    else if (string !== undefined) kind = "text";
    else if (number !== undefined) kind = "number";
    else if (operator !== undefined || name === "in") kind = "operator";
    else if (name !== undefined) kind = constants.has(name) ? "number" : columns.has(name) ? "column" : /^\s*\(/.test(text.slice(m.index + all.length)) ? "function" : "other";
    out.push({ kind, text: all, from: m.index });
  }
  return out;
}

/** The place in a text of a line and a column, both from 1, as the server counts them: in characters. */
export function placeOf(text: string, line = 1, column = 1): number {
  const before = text.split("\n").slice(0, line - 1).join("\n");
  const start = line > 1 ? before.length + 1 : 0;
  return start + [...text.slice(start)].slice(0, column - 1).join("").length;
}

/** Where the piece that begins at a place ends, for the underline. */
export function endOf(text: string, from: number): number {
  const rest = /^(\w+|"[^"]*"?|'[^']*'?|\S)/.exec(text.slice(from));
  return rest ? from + rest[0].length : text.length;
}

export interface Proposal {
  label: string;
  insert: string;
  says: string;
  /** how many characters before the end of what is inserted the caret goes */
  back?: number;
}

export interface Completion {
  from: number;
  to: number;
  proposals: Proposal[];
}

const ofTime: [string, string][] = [
  ["getFullYear()", "year"], ["getMonth()", "0 is January"], ["getDate()", "day of the month, from 1"], ["getDayOfWeek()", "0 is Sunday"], ["getDayOfYear()", "from 0"],
  ["getHours()", "0 to 23, UTC"], ["getMinutes()", "0 to 59"], ["getSeconds()", "0 to 59"],
];
const ofText: [string, string][] = [["startsWith('')", "text"], ["endsWith('')", "text"], ["contains('')", "text"]];
const ofNumbers: [string, string][] = [
  ["abs()", "number"], ["min(, )", "the least"], ["max(, )", "the greatest"], ["clamp(, 0, 1)", "moved into a range"], ["log()", "natural"], ["sqrt()", "number"], ["exp()", "number"], ["floor()", "number"], ["ceil()", "number"],
];

/** How a column is written: one that is no identifier stands in col("…"). */
export const written = (name: string) => (/^[A-Za-z_][\w.]*$/.test(name) && !constants.has(name) ? name : `col(${JSON.stringify(name)})`);

const most = 8;
const starts = (name: string, typed: string) => name.toLowerCase().startsWith(typed.toLowerCase());

/** What may stand at the caret. Without asking for it (`forced`) nothing is proposed before two letters. */
export function complete(text: string, caret: number, columns: Column[], forced: boolean): Completion | undefined {
  const before = text.slice(0, caret);
  const to = caret;

  // Within quotes: the categories of the text column that is compared.
  const quoted = /(["'])((?:(?!\1)[^\\])*)$/.exec(before);
  const open = (before.match(/"/g)?.length ?? 0) % 2 === 1 || (before.match(/'/g)?.length ?? 0) % 2 === 1;
  if (quoted && open) {
    const head = before.slice(0, quoted.index);
    const name = /(\w[\w.]*)\s*(?:[=!]=\s*|in\s*\[[^\]]*|\.(?:startsWith|endsWith|contains)\()$/.exec(head)?.[1];
    const values = columns.find((c) => c.name === name)?.values ?? [];
    const typed = quoted[2]!;
    const closed = text[caret] === quoted[1];
    const proposals = values.filter((v) => starts(v, typed)).slice(0, most).map((v) => ({ label: v, insert: v + (closed ? "" : quoted[1]!), says: name ?? "" }));
    return proposals.length > 0 ? { from: caret - typed.length, to, proposals } : undefined;
  }

  const member = /([A-Za-z_]\w*)\.(\w*)$/.exec(before);
  const column = member && columns.find((c) => c.name === member[1]);
  if (member && column) {
    const typed = member[2]!;
    const methods = column.kind === "time" ? ofTime : column.kind === "text" ? ofText : [];
    const proposals = methods.filter(([name]) => starts(name, typed)).map(([name, says]) => ({ label: name, insert: name, says, back: name.endsWith("('')") ? 2 : 0 }));
    return proposals.length > 0 ? { from: caret - typed.length, to, proposals } : undefined;
  }

  const typed = /[A-Za-z_]\w*$/.exec(before)?.[0] ?? "";
  if (!forced && typed.length < 2) return undefined;
  const fits = columns.filter((c) => starts(c.name, typed) && (forced || c.name !== typed));
  const proposals: Proposal[] = [
    ...fits.map((c) => ({ label: c.name, insert: written(c.name), says: columnWords(c) === c.kind ? c.kind : `${c.kind} · ${columnWords(c)}` })),
    ...ofNumbers.filter(([name]) => starts(name, typed)).map(([name, says]) => ({ label: name.replace(/\(.*/, "()"), insert: name, says, back: name.length - name.indexOf("(") - 1 })),
  ];
  return proposals.length > 0 ? { from: caret - typed.length, to, proposals: proposals.slice(0, forced ? 20 : most) } : undefined;
}

/** The two sides of the last && that is in no brackets: a share of all rows may be asked as a share of some. */
export function sides(text: string): [string, string] | undefined {
  let depth = 0;
  let found: number | undefined;
  for (const t of tokens(text, new Set())) {
    if (/^[([{]$/.test(t.text)) depth++;
    else if (/^[)\]}]$/.test(t.text)) depth--;
    else if (depth === 0 && (t.text === "||" || t.text === "?")) return undefined;
    else if (depth === 0 && t.text === "&&") found = t.from;
  }
  if (found === undefined) return undefined;
  const [a, b] = [text.slice(0, found).trim(), text.slice(found + 2).trim()];
  return a && b ? [a, b] : undefined;
}

export const rangeWords = (range: number[]) => `${plain(range[0]!)} to ${plain(range[1]!)}`;
