// Commands to copy.
import { addressOf } from "./api";
import type { Routes } from "./types";

/** Quotes a word for a shell, if it needs that. Words may be from a link of someone else: a terminal would act on control characters. */
export function quoted(word: string): string {
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(word)) return "$'" + word.replace(/[\\'\u0000-\u001f\u007f]/g, (c) => "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0")) + "'";
  return /^[A-Za-z0-9_./~:@%+,-][A-Za-z0-9_./~:@%+,=-]*$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}

/** Returns the request of a route as a command. The token is the person's own, from the environment. */
export function curl<K extends keyof Routes>(route: K, args: { path?: unknown; query?: unknown; body?: unknown }): string {
  const method = route.slice(0, route.indexOf(" "));
  const body = args.body === undefined ? "" : `-H "Content-Type: application/json" -d ${quoted(JSON.stringify(args.body))} `;
  return `curl ${method === "GET" ? "" : `-X ${method} `}-H "Authorization: Bearer $PAI_TOKEN" ${body}${quoted(location.origin + addressOf(route, args))}`;
}
