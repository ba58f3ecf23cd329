// A part of a holdout as files: one, or several where it has many rows.
import { Away, mark, problemOf } from "./api";

export class Download {
  /** how many files there are; 0 before the first look */
  pieces = $state(0);
  /** whether the list of several files is shown */
  listed = $state(false);
  /** whether the browser was given the one file */
  begun = $state(false);

  /** The server names the files. */
  constructor(readonly address: string) {}

  /** Downloads the one file, or shows and hides the list of several. The server says how many there are when the first is looked at; it throws what went wrong. */
  async start() {
    if (this.pieces > 1) return void (this.listed = !this.listed);
    this.pieces ||= await this.#count();
    if (this.pieces > 1) return void (this.listed = true);
    this.begun = true;
    Object.assign(document.createElement("a"), { href: this.address, download: "" }).click();
  }

  async #count(): Promise<number> {
    let reply: Response;
    try {
      reply = await fetch(`${this.address}?piece=0`, { method: "HEAD", headers: mark, credentials: "same-origin" });
    } catch {
      throw new Away();
    }
    if (!reply.ok) throw await problemOf(reply);
    return Number(reply.headers.get("X-Holdoutd-Pieces") ?? 1) || 1;
  }
}
