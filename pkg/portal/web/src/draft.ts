// Job files that a person writes, by the address of the page. They survive a reload and other pages.
import { mask, masked } from "./parameters";
import { base } from "./route";
import { me } from "./session";

export interface Draft {
  text: string;
  /** The text that the page began with, such as that of a template. */
  began: string;
  /** Secrets that were entered in fields. They aren't stored. */
  secrets: Record<string, string>;
}

const here = new Map<string, Draft>();

/** The key of the page that is shown, without the address of a proxy. */
export function pageKey(): string {
  return `draft ${me.value?.name} ${location.pathname.slice(base.length)}${location.search}`;
}

/** Returns the draft of a page; null without one. After a reload, its secrets are masked. */
export function draftOf(key: string): Draft | null {
  const known = here.get(key);
  if (known) return known;
  const text = sessionStorage.getItem(key);
  return text === null ? null : { text, began: "", secrets: {} };
}

/** Keeps a draft until the page is loaded again. */
export function remember(key: string, d: Draft): void {
  if (d.text && (d.text !== d.began || Object.keys(d.secrets).length)) here.set(key, d);
  else here.delete(key);
}

/** Stores a draft with masked secrets, for the time after the page was loaded again. One that can't be masked isn't stored. */
export function store(key: string): void {
  if (!me.value) return; // the person has signed out
  const d = here.get(key);
  const stored = d && d.text !== d.began ? masked(d.text) : null;
  try {
    if (stored === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, stored);
  } catch {
    // The browser's storage is full, or it allows none.
  }
}

export function forget(key: string): void {
  here.delete(key);
  sessionStorage.removeItem(key);
}

/** Whether a job file has masked secrets. */
export function isMasked(text: string): boolean {
  return text.includes(mask);
}
