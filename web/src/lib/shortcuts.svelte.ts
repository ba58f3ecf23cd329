// Keys that do something. A page adds its own while it is open; `?` lists all. Keys count only where nobody is typing.
import { untrack } from "svelte";
import { go } from "./router.svelte";

export interface Shortcut {
  /** as KeyboardEvent.key has it, or two after each other: "g h" */
  keys: string;
  says: string;
  run: () => void;
}

class Shortcuts {
  list = $state.raw<Shortcut[]>([]);
  shown = $state(false);

  /** Adds shortcuts; what is returned takes them away, so that an effect can return it. */
  add(...more: Shortcut[]): () => void {
    this.list = [...untrack(() => this.list), ...more]; // an effect that adds does not depend on what others add
    return () => (this.list = this.list.filter((s) => !more.includes(s)));
  }
}

export const shortcuts = new Shortcuts();

const typing = (target: EventTarget | null) => target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && !(target instanceof HTMLInputElement && target.type === "range");

/** How long the first of two keys is remembered. */
const patience = 1200;

export function startShortcuts() {
  let first = "";
  let since = 0;
  shortcuts.add(
    { keys: "g h", says: "Holdouts", run: () => go("/holdouts") },
    { keys: "g p", says: "Plan", run: () => go("/plan") },
    { keys: "g e", says: "Experiments", run: () => go("/experiments") },
    { keys: "g k", says: "Keys", run: () => go("/keys") },
    { keys: "?", says: "This list", run: () => (shortcuts.shown = !shortcuts.shown) },
  );
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "Escape") shortcuts.shown = false;
    const both = event.timeStamp - since < patience ? `${first} ${event.key}` : "";
    const found = shortcuts.list.findLast((s) => s.keys === both) ?? shortcuts.list.findLast((s) => s.keys === event.key);
    first = event.key;
    since = event.timeStamp;
    if (!found) return;
    event.preventDefault();
    first = "";
    found.run();
  });
}
