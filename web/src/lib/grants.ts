// Grants: slices of a holdout's budget, as a tree.
import type { Grant } from "../generated/api";

/** A grant with its place in the tree. */
export interface Branch {
  grant: Grant;
  /** how many grants it is a part of */
  depth: number;
}

/** Grants in the order of a tree: each is followed by those that are parts of it. Those whose parent is not shown stand at the top. */
export function tree(grants: Grant[]): Branch[] {
  const known = new Set(grants.map((g) => g.id));
  const parts = new Map<string, Grant[]>();
  for (const g of grants) {
    const of = g.parent && known.has(g.parent) ? g.parent : "";
    parts.set(of, [...(parts.get(of) ?? []), g]);
  }
  const branches: Branch[] = [];
  const walk = (of: string, depth: number) => {
    for (const grant of parts.get(of) ?? []) {
      branches.push({ grant, depth });
      walk(grant.id, depth + 1);
    }
  };
  walk("", 0);
  return branches;
}

/** What is shown of an answer, in words. */
export const shown: Record<string, string> = {
  full: "values and intervals",
  value: "values without intervals",
  bit: "verdicts alone",
};
