// Who uses the page. The key is sent once: the server answers with a cookie that scripts cannot read and that other sites' pages do not send.
import { call, get, remove, whenRefused } from "./api";

export interface Who {
  id: string;
  name: string;
  scope: "admin" | "analyst" | "granted";
}

class Session {
  /** undefined: not known yet; null: nobody has signed in */
  who = $state<Who | null | undefined>();

  get admin() {
    return this.who?.scope === "admin";
  }

  /** Whether the key has slices of budgets, and no more. */
  get granted() {
    return this.who?.scope === "granted";
  }

  /** Asks the server who the cookie is of. */
  async begin() {
    whenRefused(() => (this.who = null));
    this.who = (await get<{ key: Who | null }>("/v1/session")).key;
  }

  /** Throws a Problem where the key is refused. */
  async signIn(key: string) {
    this.who = (await call<{ key: Who | null }>("POST", "/v1/session", { headers: { Authorization: `Bearer ${key}` } })).key;
  }

  async signOut() {
    await remove("/v1/session");
    this.who = null;
  }
}

export const session = new Session();
