// Light or dark: the system's, until the button says otherwise.

const system = matchMedia("(prefers-color-scheme: dark)");

class Theme {
  #system = $state(system.matches);
  #chosen = $state(document.documentElement.dataset.theme);

  constructor() {
    system.addEventListener("change", () => (this.#system = system.matches));
  }

  get dark() {
    return this.#chosen ? this.#chosen === "dark" : this.#system;
  }

  toggle() {
    const next = this.dark ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    this.#chosen = next;
    try {
      localStorage.setItem("theme", next); // theme.js reads it before the next first paint
    } catch {
      // A browser that keeps nothing forgets it.
    }
  }
}

export const theme = new Theme();
