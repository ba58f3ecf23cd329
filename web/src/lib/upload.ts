// Sends a table. fetch cannot say how much of a body has left; XMLHttpRequest can.
import type { Card, Registration } from "../generated/api";
import { address, Away, mark, Problem, type CallOptions } from "./api";

export interface Upload {
  file: File;
  query: CallOptions["query"];
  /** names a creation: after a broken connection the same name gets the card, and no second holdout */
  name?: string;
  signal: AbortSignal;
  progress: (sent: number) => void;
}

/** How often a server that is busy with other uploads is asked again. Nothing was done when it says so. */
const attempts = 5;

/** Uploads for a dry run, and resolves to the card. Throws a Problem, Away, or the signal's reason. */
export const upload = async (what: Upload) => (await sent(what)) as Card;

/** Uploads, and resolves to the path of the page of what came of it: the holdout or, of a table that is too large to be divided at once, the registration. Throws as upload does. */
export async function make(what: Upload): Promise<string> {
  const made = await sent(what);
  return "stage" in made ? `/registrations/${encodeURIComponent(made.id)}` : `/holdouts/${encodeURIComponent(made.id ?? "")}`;
}

async function sent(what: Upload): Promise<Card | Registration> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(what);
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "busy" || attempt === attempts) throw error;
      await new Promise((done) => setTimeout(done, 1000 * Math.min(5, Math.max(1, error.retryAfter))));
      what.signal.throwIfAborted();
    }
  }
}

function send({ file, query, name, signal, progress }: Upload): Promise<Card | Registration> {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.open("POST", address("/v1/holdouts", query));
    for (const [header, value] of Object.entries(mark)) request.setRequestHeader(header, value);
    request.setRequestHeader("Content-Type", "application/vnd.apache.parquet");
    request.setRequestHeader("Prefer", "respond-async");
    if (name) request.setRequestHeader("Idempotency-Key", name);
    request.upload.onprogress = (event) => progress(event.loaded);
    request.onerror = () => fail(new Away());
    request.onabort = () => fail(signal.reason);
    request.onload = () => {
      let body: Record<string, unknown> = {};
      try {
        body = JSON.parse(request.responseText) as Record<string, unknown>;
      } catch {
        // Not from this server: a proxy's page.
      }
      if (request.status >= 200 && request.status < 300) done(body as unknown as Card | Registration);
      else fail(new Problem(body, request.status, Number(request.getResponseHeader("Retry-After") ?? 0)));
    };
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/** A name that nothing else has. Pages over plain HTTP from another machine have no crypto.randomUUID. */
export function newName(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/** 1.2 MB, 640 kB */
export function bytes(n: number): string {
  return n < 1e6 ? `${Math.ceil(n / 1e3)} kB` : n < 1e9 ? `${(n / 1e6).toFixed(1)} MB` : `${(n / 1e9).toFixed(2)} GB`;
}
