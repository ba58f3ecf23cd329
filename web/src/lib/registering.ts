// Tables of sources on their way to a holdout, in words.
import type { Registration, SourceStatus } from "../generated/api";
import { count, percent } from "./format";

/** The stages that a person waits through, in their order. */
export const stages = ["waiting", "looking", "reading-units", "dividing", "checking"] as const;

const words: Record<string, string> = {
  waiting: "Waiting for its turn", looking: "Looking at the table", "reading-units": "Reading what belongs together", dividing: "Dividing the rows", checking: "Checking the parts",
  done: "Done", failed: "Failed", cancelled: "Cancelled",
};

export const stageWords = (stage: string) => words[stage] ?? stage;

export const ended = (r: Registration) => r.stage === "done" || r.stage === "failed" || r.stage === "cancelled";

/** How far the stage is, from 0 to 1; undefined where nobody knows. */
export const share = (r: Registration) => (r.rows && r.done ? Math.min(1, r.done / r.rows) : undefined);

export function progressWords(r: Registration): string {
  const s = share(r);
  return s === undefined ? stageWords(r.stage) : `${stageWords(r.stage)}, ${percent(Math.floor(100 * s) / 100)} of ${count(r.rows ?? 0)} rows`;
}

const kinds: Record<string, string> = { file: "files", clickhouse: "ClickHouse", trino: "Trino" };
export const kindWords = (kind: string) => kinds[kind] ?? kind;
export const sourceWords = (s: SourceStatus) => `${s.name} (${kindWords(s.kind)})${s.ready ? "" : ", does not answer"}`;

/** What a name of a table looks like there. */
export const tableHint = (kind: string) => (kind === "trino" ? "As it is named there: catalog.schema.table." : kind === "clickhouse" ? "As it is named there: database.table." : "The folder of its Parquet files, below that of the source.");

/** Names that are separated by commas. */
export const listed = (text: string) => text.split(",").map((s) => s.trim()).filter(Boolean);
