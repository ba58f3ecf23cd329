// Numbers and times as the page writes them: as many digits as two of the half-width need, never more; a true minus sign; commas between thousands.
// Ends of intervals are rounded outward, so that what is shown holds what was proved. internal/printed/cases.json is the table that the server and Python are tested by, too.

/** Rounding of a half-width that a float's own error does not move: 0.3 - 0.2 has as many digits as 0.1. */
const slack = 1e-9;

/** How many digits after the point show two of the half-width's: 3 for 0.025, 1 for 4.7, 0 for 47. */
export function decimals(halfWidth: number): number {
  if (!(halfWidth > 0) || !Number.isFinite(halfWidth)) return 3;
  return Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(halfWidth) + slack)));
}

function grouped(digits: string): string {
  const [whole = "", part] = digits.split(".");
  const commas = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return part === undefined ? commas : `${commas}.${part}`;
}

/** Beyond these sizes figures are powers of ten: nobody reads thirteen digits. */
const largest = 1e12;

type Direction = "down" | "near" | "up";

/**
 * The magnitude of x in units of 10^-digits, rounded; digits may be negative. x is the shortest decimal that reads as it, so that what is short already stays as it is.
 */
function units(x: number, digits: number, to: Direction): bigint {
  const [mantissa = "", exponent = "0"] = Math.abs(x).toExponential().split("e");
  const [whole = "", part = ""] = mantissa.split(".");
  const all = BigInt(whole + part);
  const shift = part.length - Number(exponent) - digits;
  if (shift <= 0) return all * 10n ** BigInt(-shift);
  const unit = 10n ** BigInt(shift);
  const kept = all / unit;
  const twice = 2n * (all % unit);
  const grows = to === "near" ? twice >= unit : twice > 0n && (to === "down") === x < 0;
  return grows ? kept + 1n : kept;
}

function rounded(x: number, digits: number, to: Direction): string {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x < 0 ? "−∞" : "∞";
  if (Math.abs(x) >= largest) {
    const power = Number(x.toExponential().split("e")[1]);
    return Number(`${x < 0 ? "-" : ""}${units(x, 2 - power, to)}e${power - 2}`).toExponential(2).replace("e+", "e").replaceAll("-", "−");
  }
  const whole = units(x, digits, to);
  const text = String(whole).padStart(digits + 1, "0");
  const at = text.length - digits;
  return (x < 0 && whole !== 0n ? "−" : "") + grouped(digits === 0 ? text : `${text.slice(0, at)}.${text.slice(at)}`);
}

/** A number with so many digits after the point: the nearest, of two the one farther from 0. */
export const fixed = (x: number, digits: number) => rounded(x, digits, "near");

/** The low end of an interval: rounded down, so that what is shown holds what is meant. */
export const low = (x: number, digits: number) => rounded(x, digits, "down");

/** The high end of an interval: rounded up. */
export const high = (x: number, digits: number) => rounded(x, digits, "up");

/** A count: 1,687. */
export const count = (n: number) => grouped(String(Math.round(Math.abs(n)))).replace(/^/, n < 0 ? "−" : "");

/** "1 question", "12 questions". */
export const many = (n: number, one: string, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;

/** A number by itself, such as a guess or a range's end, without digits that say nothing. */
export function plain(x: number): string {
  if (Number.isInteger(x) && Math.abs(x) < largest) return count(x);
  const text = Number(x.toPrecision(6));
  return Math.abs(text) >= largest || (text !== 0 && Math.abs(text) < 1e-4) ? text.toExponential().replace("e+", "e").replaceAll("-", "−") : (text < 0 ? "−" : "") + grouped(String(Math.abs(text)));
}

/** A planned half-width with two digits: ±0.022, ±6.3. */
export const around = (h: number) => `±${fixed(h, decimals(h))}`;

/** A half-width that nothing is wider than: rounded up. */
export const within = (h: number) => `±${high(h, decimals(h))}`;

/** "0.692 to 0.742" */
export function span(from: number, to: number, digits = decimals((to - from) / 2)): string {
  return `${low(from, digits)} to ${high(to, digits)}`;
}

/** 95%, 99.9% */
export const percent = (share: number) => `${plain(100 * share)}%`;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

/** 02:44 today, else 22 Nov, or 22 Nov 2025 of another year. */
export function moment(time: string, now = new Date()): string {
  const t = new Date(time);
  if (t.toDateString() === now.toDateString()) return clock.format(t);
  return t.getFullYear() === now.getFullYear() ? day.format(t) : date.format(t);
}

/** "at 02:44" today, else "on 22 Nov" */
export const when = (time: string) => (new Date(time).toDateString() === new Date().toDateString() ? `at ${moment(time)}` : `on ${moment(time)}`);

/** 22 Nov 2026 */
export const onDay = (time: string) => date.format(new Date(time));

/** "0.02, 0.10 and 0.20" */
export function list(words: string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}
