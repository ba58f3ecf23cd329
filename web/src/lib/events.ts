// Server-sent events, read with fetch: the browser's own EventSource sends no headers, and a proxy between may need some.
import { mark, problemOf } from "./api";
import { delay } from "./connection.svelte";

export interface Event {
  id: string;
  name: string;
  data: string;
}

/** Takes text as it comes and gives the events that are complete, as the HTML standard reads them. */
export function reader(): (text: string) => Event[] {
  let rest = "";
  let event: Event = { id: "", name: "message", data: "" };
  return (text) => {
    const complete: Event[] = [];
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const ended of lines) {
      const line = ended.replace(/\r$/, "");
      if (line === "") {
        if (event.data !== "") complete.push({ ...event, data: event.data.slice(0, -1) });
        event = { id: event.id, name: "message", data: "" };
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue; // a comment, which says that the stream lives
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") event.data += value + "\n";
      else if (field === "event") event.name = value;
      else if (field === "id") event.id = value;
    }
    return complete;
  };
}

export type StreamState = "live" | "paused";

/** How long a stream may be silent: the server sends a sign of life every 20 seconds. */
const silence = 50_000;

/** Follows a stream until the signal ends it. After a break it goes on behind the last event, with Last-Event-ID. */
export async function follow(path: string, after: string, each: (events: Event[]) => void, state: (s: StreamState) => void, signal: AbortSignal): Promise<void> {
  let last = after;
  for (let failures = 0; !signal.aborted; ) {
    const silent = new AbortController();
    let alarm = setTimeout(() => silent.abort(), silence);
    try {
      const headers = { ...mark, Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
      const reply = await fetch(path, { headers, credentials: "same-origin", signal: AbortSignal.any([signal, silent.signal]) });
      if (!reply.ok || !reply.body) {
        const problem = await problemOf(reply);
        if (reply.status === 401 || reply.status === 403 || reply.status === 404) {
          state("paused");
          return;
        }
        throw problem;
      }
      state("live");
      failures = 0;
      const read = reader();
      const chunks = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await chunks.read();
        if (done) break;
        clearTimeout(alarm);
        alarm = setTimeout(() => silent.abort(), silence);
        const events = read(value);
        if (events.length > 0) {
          last = events[events.length - 1]!.id || last;
          each(events);
        }
      }
    } catch {
      if (signal.aborted) return;
    } finally {
      clearTimeout(alarm);
    }
    if (signal.aborted) return;
    state("paused");
    failures++;
    await new Promise<void>((done) => {
      const timer = setTimeout(done, 1000 * delay(failures));
      signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
    });
  }
}
