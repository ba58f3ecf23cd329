// Real paths without a library: the server sends the same page for each of them, and this module says which one is meant. What a page shows is
// in its path and its query (`?row=12`), so that a link can be sent. A key never is in a path.
import { routes, type Route } from "../routes";

class Place {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));
}

/** Where the page is now. */
export const place = new Place();

/** The route of a path with the values of its parameters, or undefined for a path that is no page of this application. */
export function match(path: string): { route: Route; params: Record<string, string> } | undefined {
  const parts = path.split("/").filter((part) => part !== "");
  for (const route of routes) {
    const pattern = route.path.split("/").filter((part) => part !== "");
    if (pattern.length !== parts.length) continue;
    const params: Record<string, string> = {};
    const fits = pattern.every((part, i) => {
      const given = parts[i]!;
      if (!part.startsWith(":")) return part === given;
      params[part.slice(1)] = decodeURIComponent(given);
      return true;
    });
    if (fits) return { route, params };
  }
  return undefined;
}

function arrive() {
  place.path = location.pathname;
  place.query = new URLSearchParams(location.search);
}

/** Opens a page of this application. `replace` leaves no step in the browser's history. */
export function go(to: string, options: { replace?: boolean } = {}) {
  if (options.replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  const before = place.path;
  arrive();
  if (place.path !== before && !options.replace) scrollTo(0, 0);
}

/** Changes one value of the query and stays on the page. null takes it away. */
export function setQuery(name: string, value: string | null) {
  const query = new URLSearchParams(location.search);
  if (value === null) query.delete(name);
  else query.set(name, value);
  const text = query.toString();
  go(location.pathname + (text ? "?" + text : ""), { replace: true });
}

/** Makes links and the browser's buttons work without loading the page again. */
export function startRouter() {
  addEventListener("popstate", arrive);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin || !match(link.pathname)) return;
    if (link.hash && link.pathname === location.pathname) return; // a place on this page
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
