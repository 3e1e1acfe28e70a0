// Commands to copy.
import { addressOf } from "./api";
import type { Routes } from "./types";

/** Quotes a word for a shell, if it needs that. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_./~:@%+,-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}

/** Returns the request of a route as a command. The token is the person's own, from the environment. */
export function curl<K extends keyof Routes>(route: K, args: { path?: unknown; query?: unknown }): string {
  const method = route.slice(0, route.indexOf(" "));
  return `curl ${method === "GET" ? "" : `-X ${method} `}-H "Authorization: Bearer $PAI_TOKEN" ${quoted(location.origin + addressOf(route, args))}`;
}
