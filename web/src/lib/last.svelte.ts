// The holdout that was looked at last: the tab Ask of a phone opens it.

const name = "last-holdout";

class Last {
  id = $state<string | null>(null);

  constructor() {
    try {
      this.id = localStorage.getItem(name);
    } catch {
      // A browser that keeps nothing begins with the list.
    }
  }

  see(id: string) {
    this.id = id;
    try {
      localStorage.setItem(name, id);
    } catch {
      // It is known until the page is closed.
    }
  }
}

export const last = new Last();
