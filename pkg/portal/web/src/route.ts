// The address is the state: which page is shown, and with which filters.
import { signal } from "@preact/signals";

/** The path of the portal's root: this file is two folders below it. It isn't "/" behind a proxy that serves the portal below a path. */
export const base = new URL("../../", import.meta.url).pathname;

export interface Place {
  /** The parts of the path below the root. */
  path: string[];
  query: URLSearchParams;
}

function read(): Place {
  const below = location.pathname.startsWith(base) ? location.pathname.slice(base.length) : "";
  return { path: below.split("/").filter(Boolean).map(decode), query: new URLSearchParams(location.search) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const place = signal(read());

export type Query = Record<string, string | undefined>;

/** Returns an address of the portal. */
export function address(path: string[], query: Query = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) if (v) q.set(k, v);
  const text = q.toString();
  return base + path.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

export function go(to: string, replace = false): void {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  place.value = read();
  if (!replace) scrollTo(0, 0);
}

/** Changes keys of the query. It replaces the entry of the history, so that the back button leaves the page. */
export function setQuery(change: Query): void {
  const q: Query = Object.fromEntries(place.value.query);
  go(address(place.value.path, { ...q, ...change }), true);
}

/** Follows links within the portal without loading a document. */
export function start(): void {
  addEventListener("popstate", () => (place.value = read()));
  document.addEventListener("click", (e) => {
    const a = (e.target as Element).closest?.("a");
    if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || a.target || a.hasAttribute("download") || a.dataset.leave !== undefined) return;
    const to = new URL(a.href);
    if (to.origin !== location.origin || !to.pathname.startsWith(base)) return;
    e.preventDefault();
    go(to.pathname + to.search);
  });
}
