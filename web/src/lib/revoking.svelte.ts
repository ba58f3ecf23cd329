// Something in a list that can be ended for good: who asks is asked once more, beside it, and told why where it cannot be.
import { Problem, remove, sentence } from "./api";

export class Revoking {
  /** The id of the one that is asked about. */
  asked = $state<string | undefined>();
  /** Why it was not done. */
  refused = $state("");

  /** path is that of the list; done runs when one is revoked. */
  constructor(private path: string, private done: (id: string) => unknown) {}

  ask(id: string) {
    this.asked = id;
    this.refused = "";
  }

  keep() {
    this.asked = undefined;
    this.refused = "";
  }

  async revoke(id: string) {
    this.refused = "";
    try {
      await remove(`${this.path}/${encodeURIComponent(id)}`);
      this.asked = undefined;
      await this.done(id);
    } catch (e) {
      this.refused = e instanceof Problem ? sentence(e) : "No connection. Try again: what is revoked already stays so.";
    }
  }
}
