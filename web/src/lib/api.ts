// The server's HTTP interface. Types of replies are made from its OpenAPI document (generated/api.ts); this file is about how to talk: errors,
// a server that is away, and streams of events.
import type { Problem as ProblemBody, Violation } from "../generated/api";
import { connection, pause } from "./connection.svelte";

/** A reply that says what was wrong (application/problem+json). Compare `code`. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly errors: Violation[];
  /** All members, those of its code too, such as `requested` and `remaining`. */
  readonly members: Record<string, unknown>;
  /** How many seconds the server asks to wait; 0 where it does not. */
  readonly retryAfter: number;

  constructor(body: Partial<ProblemBody> & Record<string, unknown>, status: number, retryAfter = 0) {
    super(body.detail || body.title || `The server replied ${status}.`);
    this.name = "Problem";
    this.status = status;
    this.code = body.code ?? "";
    this.title = body.title ?? "";
    this.detail = body.detail ?? "";
    this.errors = body.errors ?? [];
    this.members = body;
    this.retryAfter = retryAfter;
  }

  /** The violation at a pointer into the body, such as `/of`, or of a parameter. */
  at(place: string): Violation | undefined {
    return this.errors.find((e) => e.pointer === place || e.parameter === place);
  }
}

/** What a problem says, as a sentence. What is no problem of the server's is thrown on. */
export function sentence(e: unknown): string {
  if (!(e instanceof Problem)) throw e;
  return e.detail[0]!.toUpperCase() + e.detail.slice(1) + ".";
}

/** The request did not reach the server, or its reply did not come back. */
export class Away extends Error {
  constructor() {
    super("No connection.");
    this.name = "Away";
  }
}

/** Says that a request is of this page: a cookie alone would go along with requests of others' pages, too. Who asks is in the cookie. */
export const mark = { "X-Holdoutd": "dashboard" };

let refused: () => void = () => {};

/** Is called when the server no longer knows who asks. */
export function whenRefused(then: () => void) {
  refused = then;
}

export interface CallOptions {
  /** what becomes the JSON of the body */
  body?: unknown;
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** false: a server that is away is an error at once. Without it the call waits and tries again, which is right for all that may be sent twice: questions may. */
  patient?: boolean;
}


/** The path with its parameters. */
export function address(path: string, query: CallOptions["query"] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== "") parameters.set(name, String(value));
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/** Reads a reply that is not what was asked for. */
export async function problemOf(reply: Response): Promise<Problem> {
  const wait = Number(reply.headers.get("Retry-After") ?? 0);
  let body: Record<string, unknown> = {};
  try {
    body = (await reply.json()) as Record<string, unknown>;
  } catch {
    // Not from this server: a proxy's page.
  }
  if (reply.status === 401) refused();
  return new Problem(body, reply.status, Number.isFinite(wait) ? wait : 0);
}

async function attempt(method: string, url: string, options: CallOptions): Promise<Response> {
  const headers: Record<string, string> = { ...mark, Accept: "application/json", ...options.headers };
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (options.signal) init.signal = options.signal;
  if (options.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(options.body);
  }
  try {
    return await fetch(url, init);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Away();
  }
}

/** Codes of 503 that pass by themselves; nothing was released. */
const passing = new Set(["busy", "timeout"]);

/** Sends one request and reads the JSON of its reply. Throws a {@link Problem}, or {@link Away} where it is not patient. */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const url = address(path, options.query);
  for (let failures = 0; ; ) {
    let reply: Response;
    try {
      reply = await attempt(method, url, options);
    } catch (error) {
      if (!(error instanceof Away) || options.patient === false) throw error;
      await pause(++failures, options.signal);
      continue;
    }
    connection.back();
    if (reply.ok) return (reply.status === 204 ? undefined : await reply.json()) as T;
    const problem = await problemOf(reply);
    if (reply.status === 503 && passing.has(problem.code) && failures < 5 && options.patient !== false) {
      failures++;
      await new Promise((done) => setTimeout(done, 1000 * Math.min(10, Math.max(1, problem.retryAfter))));
      options.signal?.throwIfAborted();
      continue;
    }
    throw problem;
  }
}

export const get = <T>(path: string, options?: CallOptions) => call<T>("GET", path, options);
export const post = <T>(path: string, body: unknown, options?: CallOptions) => call<T>("POST", path, { ...options, body });
export const remove = (path: string, options?: CallOptions) => call<void>("DELETE", path, options);
