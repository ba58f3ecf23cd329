// The answers of one holdout: those that are there, page by page, and then each new one as it is recorded.
import type { AnswerPage, PastAnswer } from "../generated/api";
import { rowOf, type Row } from "./answers";
import { get } from "./api";
import { follow, type StreamState } from "./events";

/** The largest page that the server gives. */
const page = 1000;

/** How long an answer is called new. */
const newFor = 60_000;

export class History {
  rows = $state.raw<Row[]>([]);
  /** whether all that was there has come */
  complete = $state(false);
  stream = $state<StreamState | undefined>();
  /** Rows that came meanwhile and are not shown yet, since somebody reads further down. */
  waiting = $state.raw<Row[]>([]);
  /** When a row came, by its number; only of those that came live. */
  #since = $state.raw(new Map<number, number>());
  /** Whether new rows may be shown at once. */
  mayShow: () => boolean = () => true;
  /** Is called with what came. */
  arrived: (rows: Row[]) => void = () => {};

  constructor(readonly id: string) {}

  /** Loads and follows until the signal ends it. */
  async run(signal: AbortSignal) {
    const path = `/v1/holdouts/${encodeURIComponent(this.id)}/answers`;
    let after = 0;
    for (;;) {
      const answers = await get<AnswerPage>(path, { query: { after, limit: page }, signal });
      this.rows = [...this.rows, ...answers.answers.map(rowOf)];
      after = this.rows.at(-1)?.seq ?? after;
      if (answers.next === undefined) break;
      after = answers.next;
    }
    this.complete = true;
    await follow(
      `${path}/events`,
      String(after),
      (events) => this.#take(events.filter((e) => e.name === "answer").map((e) => rowOf(JSON.parse(e.data) as PastAnswer))),
      (s) => (this.stream = s),
      signal,
    );
  }

  #take(rows: Row[]) {
    const known = this.rows.at(-1)?.seq ?? 0;
    const news = rows.filter((r) => r.seq > Math.max(known, this.waiting.at(-1)?.seq ?? 0));
    if (news.length === 0) return;
    const since = new Map(this.#since);
    for (const row of news) since.set(row.seq, Date.now());
    this.#since = since;
    if (this.mayShow()) {
      this.rows = [...this.rows, ...this.waiting, ...news];
      this.waiting = [];
    } else this.waiting = [...this.waiting, ...news];
    setTimeout(() => {
      const rest = new Map(this.#since);
      for (const row of news) rest.delete(row.seq);
      this.#since = rest;
    }, newFor);
    this.arrived(news);
  }

  /** Shows what waits. */
  show() {
    this.rows = [...this.rows, ...this.waiting];
    this.waiting = [];
  }

  isNew = (row: Row) => this.#since.has(row.seq);
}
