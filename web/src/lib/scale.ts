// Axes. A chart is drawn in percent of its width, so that it needs no measuring and no style.

export interface Scale {
  from: number;
  to: number;
  /** where a value stands, in percent of the width, to two digits */
  at: (x: number) => number;
  ticks: number[];
  /** digits after the point that the ticks need */
  digits: number;
}

/** Space beside the outermost marks, in percent of the width. */
const margin = 3.7;

/** The round number (1, 2 or 5 times a power of ten) at or above x. */
export function roundUp(x: number): number {
  const power = 10 ** Math.floor(Math.log10(x));
  const step = [1, 2, 5, 10].find((s) => s * power >= x * (1 - 1e-9))!;
  return step * power;
}

/** A linear axis that shows all values, with about so many round ticks. */
export function linear(values: number[], about = 4): Scale {
  let from = Math.min(...extremes(values));
  let to = Math.max(...extremes(values));
  if (!(from < to)) {
    const room = Math.abs(from) > 0 ? Math.abs(from) / 10 : 1;
    from -= room;
    to += room;
  }
  const inner = 100 - 2 * margin;
  const at = (x: number) => Math.round(100 * (margin + (inner * (x - from)) / (to - from))) / 100;
  const whole = (to - from) * (100 / inner);
  const step = roundUp(whole / about);
  const first = Math.ceil((from - ((to - from) * margin) / inner) / step);
  const ticks: number[] = [];
  for (let i = first; at(i * step) <= 100; i++) ticks.push(i === 0 ? 0 : i * step);
  return { from, to, at, ticks, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** The least and the greatest finite value, or 0 and 1. Spreading a long list into Math.min would overflow the stack. */
function extremes(values: number[]): [number, number] {
  let least = Infinity;
  let most = -Infinity;
  for (const v of values) {
    if (!Number.isFinite(v)) continue;
    if (v < least) least = v;
    if (v > most) most = v;
  }
  return least <= most ? [least, most] : [0, 1];
}

/** A logarithmic place between 0 and 1. */
export const logPlace = (x: number, from: number, to: number) => (Math.log(x) - Math.log(from)) / (Math.log(to) - Math.log(from));

/** The value at a logarithmic place. */
export const logValue = (place: number, from: number, to: number) => Math.exp(Math.log(from) + place * (Math.log(to) - Math.log(from)));

/** A number with two digits, three above a thousand: what a slider stops at. */
export function stop(x: number): number {
  if (x < 1) return x;
  const power = 10 ** Math.max(0, Math.floor(Math.log10(x) + 1e-9) - 1);
  return Math.round(x / power) * power;
}
