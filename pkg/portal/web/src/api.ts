// Requests to the server. The browser sends the cookie of its session, which no script can read.
import { signal } from "@preact/signals";
import { base } from "./route";
import { t } from "./text";
import type { ListingRow, Routes, StatusCluster, StatusDelta, StrictyamlFinding, V3ApiFrame, WireError } from "./types";

/** An error of the server, or of the way to it. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly remedy = "",
    readonly request = "",
    readonly findings: StrictyamlFinding[] = [],
  ) {
    super(message);
  }
}

export function failure(e: unknown): Failure {
  return e instanceof Failure ? e : new Failure(0, "NoAnswer", t("noAnswer"), String((e as Error)?.message ?? ""));
}

type Key = keyof Routes;
type Args<K extends Key> = (Routes[K] extends { path: infer P } ? { path: P } : { path?: undefined }) &
  (Routes[K] extends { query: infer Q } ? { query?: Q } : { query?: undefined }) &
  (Routes[K] extends { body: infer B } ? { body: B } : { body?: undefined }) & { key?: string; signal?: AbortSignal };

/** Returns the address of a route, with its path and query filled in. */
export function addressOf<K extends Key>(route: K, args: { path?: unknown; query?: unknown }): string {
  let path = route.slice(route.indexOf(" ") + 1);
  for (const [name, value] of Object.entries((args.path ?? {}) as Record<string, string>)) path = path.replace(`{${name}}`, encodeURIComponent(value));
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries((args.query ?? {}) as Record<string, unknown>)) {
    if (value === undefined || value === "" || value === false || (Array.isArray(value) && value.length === 0)) continue;
    q.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  const text = q.toString();
  return base + path.slice(1) + (text ? "?" + text : "");
}

export async function call<K extends Key>(route: K, args: Args<K>): Promise<Routes[K]["answer"]> {
  const answer = await ask(route, args, args.signal);
  return (await answer.json()) as Routes[K]["answer"];
}

/** Sends a request without a body, or with a file, and ignores the answer. */
export async function send<K extends Key>(route: K, args: { path?: unknown }, file?: Blob): Promise<void> {
  await ask(route, args, undefined, file ? { "Content-Type": "application/gzip" } : {}, file);
}

async function ask<K extends Key>(route: K, args: { path?: unknown; query?: unknown; body?: unknown; key?: string }, stop?: AbortSignal, more: Record<string, string> = {}, file?: Blob): Promise<Response> {
  const headers: Record<string, string> = { ...more };
  if (args.body !== undefined) headers["Content-Type"] = "application/json";
  if (args.key) headers["Idempotency-Key"] = args.key;
  const method = route.slice(0, route.indexOf(" "));
  const body = file ?? (args.body === undefined ? undefined : JSON.stringify(args.body));
  const r = await fetch(addressOf(route, args), { method, headers, body, signal: stop, credentials: "same-origin" });
  if (r.ok) return r;
  let e: Partial<WireError> = {};
  try {
    e = await r.json();
  } catch {
    // A proxy answered.
  }
  if (r.status === 401) toSignIn();
  throw new Failure(r.status, e.code ?? "UnknownError", e.message ?? t("status", { status: r.status }), e.remedy, e.request ?? r.headers.get("X-Request-Id") ?? "", e.findings);
}

/** Leaves for the page that signs people in, which returns here. */
export function toSignIn(): void {
  location.assign(base + "sign-in?" + new URLSearchParams({ to: location.pathname + location.search }).toString());
}

/** Yields the lines of an answer as they arrive. */
async function* lines(r: Response): AsyncGenerator<string> {
  const reader = r.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop()!;
      yield* parts;
    }
    if (rest) yield rest;
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** Reads a stream of frames until it ends. A stream that breaks off is an error. */
export async function frames<K extends Key>(route: K, args: { path?: unknown; query?: unknown }, stop: AbortSignal, take: (f: V3ApiFrame) => void): Promise<void> {
  const r = await ask(route, args, stop);
  for await (const line of lines(r)) {
    if (!line) continue;
    const f = JSON.parse(line) as V3ApiFrame;
    if (f.end) return;
    if (f.error) throw new Failure(500, f.error.code, f.error.message, f.error.remedy, f.error.request);
    take(f);
  }
  throw new Failure(0, "NoAnswer", t("cut"));
}

/** Whether the streams of the page are connected. While one is lost, it has the reason. */
export const lost = signal<Failure | null>(null);

const longest = 30_000; // milliseconds between two attempts to connect

/** Runs a stream again whenever it is lost, until it ends or is stopped. Errors that a repetition can't change end it. */
export async function lasting(stop: AbortSignal, run: (alive: () => void) => Promise<void>): Promise<void> {
  let wait = 500;
  for (;;) {
    try {
      await run(() => {
        wait = 500;
        lost.value = null;
      });
      return;
    } catch (e) {
      if (stop.aborted) return;
      const f = failure(e);
      if (f.status === 401) toSignIn();
      if (f.status >= 400 && f.status < 500 && f.status !== 429) throw f;
      lost.value = f;
      await pause(wait * (0.5 + Math.random()), stop);
      if (stop.aborted) return;
      wait = Math.min(wait * 2, longest);
    }
  }
}

/** Waits for a time, or until the browser is online again or the person returns to the page. */
function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      stop.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    addEventListener("online", end);
    stop.addEventListener("abort", end);
  });
}

export interface JobsWatcher {
  /** Receives the whole list, which replaces all rows; next is the cursor of the following page. */
  whole(rows: ListingRow[], next: string, note: string): void;
  changed(row: ListingRow): void;
  gone(uid: string): void;
}

type WatchQuery = Routes["GET /api/v3/jobs/watch"]["query"];

interface ServerEvent {
  name: string;
  data: string;
  /** The place at which a stream continues after this event, or "". */
  id: string;
}

/** Yields the events of an answer as they arrive. */
async function* events(r: Response): AsyncGenerator<ServerEvent> {
  let e: ServerEvent = { name: "", data: "", id: "" };
  for await (const line of lines(r)) {
    if (line === "") {
      yield e;
      e = { name: "", data: "", id: "" };
    } else if (line.startsWith("event: ")) e.name = line.slice(7);
    else if (line.startsWith("data: ")) e.data += line.slice(6);
    else if (line.startsWith("id: ")) e.id = line.slice(4);
  }
}

/** Watches a list of jobs. After a lost connection it continues where it was. */
export function watchJobs(query: WatchQuery, stop: AbortSignal, to: JobsWatcher): Promise<void> {
  let last = "";
  return lasting(stop, async (alive) => {
    const r = await ask("GET /api/v3/jobs/watch", { query }, stop, last ? { "Last-Event-ID": last } : {});
    alive();
    let rows: ListingRow[] | null = null;
    for await (const e of events(r)) {
      switch (e.name) {
        case "snapshot":
          rows = [];
          break;
        case "job":
          if (rows) rows.push(JSON.parse(e.data));
          else to.changed(JSON.parse(e.data));
          break;
        case "gone":
          to.gone(JSON.parse(e.data).uid);
          break;
        case "ready": {
          const ready = JSON.parse(e.data);
          to.whole(rows ?? [], ready.next ?? "", ready.note ?? "");
          rows = null;
          break;
        }
        case "problem":
          lost.value = problem(e.data);
          break;
        case "back":
          lost.value = null;
          break;
        case "end":
          throw problem(e.data);
      }
      if (e.id) last = e.id;
    }
    throw new Failure(0, "NoAnswer", t("cut"));
  });
}

/** Watches parts of the state of the cluster. After a lost connection it receives the whole state again. */
export function watchStatus(parts: string[], stop: AbortSignal, whole: (c: StatusCluster) => void, changed: (d: StatusDelta) => void): Promise<void> {
  return lasting(stop, async (alive) => {
    const r = await ask("GET /api/v3/status/watch", { query: { parts } }, stop);
    alive();
    for await (const e of events(r)) {
      if (e.name === "snapshot") whole(JSON.parse(e.data));
      else if (e.name === "change") changed(JSON.parse(e.data));
      else if (e.name === "end") throw problem(e.data);
    }
    throw new Failure(0, "NoAnswer", t("cut"));
  });
}

function problem(data: string): Failure {
  const e = JSON.parse(data) as WireError;
  return new Failure(e.code === "UnauthorizedUserError" ? 401 : 503, e.code, e.message, e.remedy, e.request);
}
