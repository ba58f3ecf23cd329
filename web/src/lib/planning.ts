// What the planner draws: the half-width of each method against the number of questions, as the server computes it.
import type { MethodPlan, Plan } from "../generated/api";

export interface Settings {
  n: number;
  training: number;
  questions: number;
  tokens: number;
  confidence: number;
}

/** Where curves are computed; between these points lines are nearly straight in logarithms. */
export const grid = [20, 50, 200, 1000, 5000, 20_000, 100_000];
export const fewest = 20;
export const mostQuestions = 100_000;

/** The request of a plan with so many questions. There are never more tokens than questions. */
export const requestOf = (s: Settings, questions = s.questions) => ({ n: s.n, training: s.training, questions, confidence: s.confidence, ...(s.training > 0 && s.tokens > 0 ? { tokens: Math.min(s.tokens, questions) } : {}) });

const floor = "non-adaptive";

/** Names for people, of the lines that have one. */
function nameOf(m: MethodPlan): string | undefined {
  return { "guess-and-check": "guess and check", thresholdout: "thresholdout", "adaptive-hoeffding-scheduled": "gaussian", splitting: "splitting", [floor]: "all fixed beforehand" }[m.method];
}

export interface Line {
  method: string;
  name?: string;
  kind: "recommended" | "named" | "floor" | "thin";
  points: [number, number][];
  /** at the chosen number of questions */
  at: number | null;
  mechanism?: string;
}

/** The lines of the chart from plans at several numbers of questions, and that at the chosen one. Lines end at ±1. */
export function lines(plans: Map<number, Plan>, chosen: Plan): Line[] {
  const published = chosen.methods.filter((m) => m.published && m.method !== floor && m.method !== "splitting" && m.half_width !== null).sort((a, b) => a.half_width! - b.half_width!)[0]?.method;
  const all = new Map([...plans, [chosen.questions, chosen]]);
  const at = [...all.keys()].sort((a, b) => a - b);
  return chosen.methods
    .filter((m) => !m.rounds || m.method === floor)
    .map((m): Line => {
      const points: [number, number][] = [];
      for (const k of at) {
        const h = all.get(k)!.methods.find((x) => x.method === m.method)?.half_width;
        if (h == null) break;
        const before = points.at(-1);
        if (h > 1) {
          // The line ends where it reaches ±1, on the straight line in logarithms.
          if (before && before[1] < 1) points.push([Math.exp(Math.log(before[0]) + ((Math.log(k) - Math.log(before[0])) * -Math.log(before[1])) / (Math.log(h) - Math.log(before[1]))), 1]);
          break;
        }
        points.push([k, h]);
      }
      const name = nameOf(m) ?? (m.method === published ? "best published bound" : undefined);
      const kind = m.method === chosen.recommended ? "recommended" : m.method === floor ? "floor" : name ? "named" : "thin";
      return { method: m.method, name: name ?? (kind === "recommended" ? m.method.replaceAll("-", " ") : undefined), kind, points, at: m.half_width, mechanism: m.mechanism };
    });
}

/** What widths are shown in, beside shares: "delay in [-60, 180]". */
export function unit(text: string): { name: string; width: number } | undefined {
  const m = /^\s*(.+?)\s+in\s+\[?\s*([-−]?[\d.,eE]+?)\s*(?:,|to|\.\.)\s*([-−]?[\d.eE]+)\s*\]?\s*$/.exec(text);
  if (!m) return undefined;
  const [low, high] = [m[2]!, m[3]!].map((t) => Number(t.replaceAll("−", "-"))) as [number, number];
  return high > low ? { name: m[1]!, width: high - low } : undefined;
}

/** Labels at the ends of lines that would stand on each other move apart, and stay in the order of their lines. */
export function spread(at: number[], apart: number): number[] {
  const order = at.map((_, i) => i).sort((a, b) => at[a]! - at[b]!);
  const out = [...at];
  for (let i = 1; i < order.length; i++) out[order[i]!] = Math.max(out[order[i]!]!, out[order[i - 1]!]! + apart);
  return out;
}

/** A count that was typed: 30,000 or 3e4. */
export function typed(text: string, from: number, to: number): number | undefined {
  const n = Number(text.replace(/[,\s]/g, ""));
  return Number.isFinite(n) && text.trim() !== "" ? Math.min(to, Math.max(from, Math.round(n))) : undefined;
}

