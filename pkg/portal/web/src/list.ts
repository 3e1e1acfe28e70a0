// A list of jobs that follows the server.
import { signal, type Signal } from "@preact/signals";
import { call, failure, watchJobs, type Failure } from "./api";
import type { ListingRow, Routes } from "./types";

export type Filter = Pick<NonNullable<Routes["GET /api/v3/jobs"]["query"]>, "user" | "vc" | "keyword" | "state">;

export interface List {
  rows: Signal<ListingRow[] | null>;
  /** The cursor of the following page, or "". */
  next: Signal<string>;
  note: Signal<string>;
  error: Signal<Failure | null>;
  older(): Promise<void>;
  end(): void;
}

/** The order of the server's lists: newest first. */
function newestFirst(a: ListingRow, b: ListingRow): number {
  const by = Date.parse(b.submitted) - Date.parse(a.submitted);
  return by || (b.uid < a.uid ? -1 : b.uid > a.uid ? 1 : 0);
}

/** Lists jobs: the first page, and all changes in it. */
export function list(filter: Filter, limit: number): List {
  const stop = new AbortController();
  const known = new Map<string, ListingRow>();
  const out: List = { rows: signal(null), next: signal(""), note: signal(""), error: signal(null), older, end: () => stop.abort() };
  let waiting = false;
  // Many changes that come together are drawn once.
  const draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      out.rows.value = [...known.values()].sort(newestFirst);
    });
  };
  const last = () => out.rows.value?.at(-1);
  watchJobs({ ...filter, limit }, stop.signal, {
    whole(rows, next, note) {
      known.clear();
      for (const r of rows) known.set(r.uid, r);
      out.next.value = next;
      out.note.value = note;
      draw();
    },
    changed(row) {
      const end = last();
      // Jobs of later pages change, too.
      if (!known.has(row.uid) && out.next.value && end && newestFirst(row, end) > 0) return;
      known.set(row.uid, row);
      draw();
    },
    gone(uid) {
      if (known.delete(uid)) draw();
    },
  }).catch((e) => {
    if (!stop.signal.aborted) out.error.value = failure(e);
  });
  async function older() {
    const page = await call("GET /api/v3/jobs", { query: { ...filter, limit, cursor: out.next.value }, signal: stop.signal });
    for (const r of page.items ?? []) if (!known.has(r.uid)) known.set(r.uid, r);
    out.next.value = page.next ?? "";
    out.note.value = page.note ?? "";
    draw();
  }
  return out;
}

/** Returns all jobs of a filter, page by page. */
export async function everything(filter: Filter): Promise<ListingRow[]> {
  const out: ListingRow[] = [];
  let cursor = "";
  do {
    const page = await call("GET /api/v3/jobs", { query: { ...filter, limit: 5000, cursor } });
    out.push(...(page.items ?? []));
    cursor = page.next ?? "";
  } while (cursor);
  return out;
}

/** The columns of a list of jobs as CSV. */
export const columns: [string, (r: ListingRow) => unknown][] = [
  ["name", (r) => r.name],
  ["user", (r) => r.user],
  ["state", (r) => r.state],
  ["virtualCluster", (r) => r.virtualCluster],
  ["priority", (r) => r.priority],
  ["tasks", (r) => r.tasks],
  ["gpus", (r) => (r.gpus < 0 ? "" : r.gpus)],
  ["retries", (r) => r.retries],
  ["submitted", (r) => r.submitted],
  ["started", (r) => r.started],
  ["completed", (r) => r.completed],
  ["code", (r) => r.code],
  ["tags", (r) => r.tags?.join(" ")],
];

/**
 * Returns rows as CSV. What a spreadsheet could take for a formula begins with an apostrophe, also after a semicolon or a tab: in some countries they separate cells,
 * and an empty pair of quotes before a formula doesn't count. East Asian spreadsheets read the wide characters as the narrow ones.
 */
export function csv<R>(rows: R[], columns: [string, (r: R) => unknown][]): string {
  const cell = (v: unknown) => {
    let text = v === undefined || v === null ? "" : String(v);
    if (typeof v !== "number") text = text.replace(/(^|[;\t\r\n])(?=[\s"]*[=+\-@＝＋－＠])/g, "$1'");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map(([name]) => name).join(","), ...rows.map((r) => columns.map(([, of]) => cell(of(r))).join(","))].join("\r\n") + "\r\n";
}
