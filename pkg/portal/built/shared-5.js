import {
  call,
  failure,
  watchJobs
} from "./shared.js";

// pkg/portal/web/src/list.ts
import { signal } from "./library.js";
function newestFirst(a, b) {
  const by = Date.parse(b.submitted) - Date.parse(a.submitted);
  return by || (b.uid < a.uid ? -1 : b.uid > a.uid ? 1 : 0);
}
function list(filter, limit) {
  const stop = new AbortController();
  const known = /* @__PURE__ */ new Map();
  const out = { rows: signal(null), next: signal(""), note: signal(""), error: signal(null), older, end: () => stop.abort() };
  let waiting = false;
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
      if (!known.has(row.uid) && out.next.value && end && newestFirst(row, end) > 0) return;
      known.set(row.uid, row);
      draw();
    },
    gone(uid) {
      if (known.delete(uid)) draw();
    }
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
async function everything(filter) {
  const out = [];
  let cursor = "";
  do {
    const page = await call("GET /api/v3/jobs", { query: { ...filter, limit: 5e3, cursor } });
    out.push(...page.items ?? []);
    cursor = page.next ?? "";
  } while (cursor);
  return out;
}
var columns = [
  ["name", (r) => r.name],
  ["user", (r) => r.user],
  ["state", (r) => r.state],
  ["virtualCluster", (r) => r.virtualCluster],
  ["priority", (r) => r.priority],
  ["tasks", (r) => r.tasks],
  ["gpus", (r) => r.gpus < 0 ? "" : r.gpus],
  ["retries", (r) => r.retries],
  ["submitted", (r) => r.submitted],
  ["started", (r) => r.started],
  ["completed", (r) => r.completed],
  ["code", (r) => r.code],
  ["tags", (r) => r.tags?.join(" ")]
];
function csv(rows, columns2) {
  const cell = (v) => {
    let text = v === void 0 || v === null ? "" : String(v);
    if (typeof v !== "number") text = text.replace(/(^|[;\t\r\n])(?=[\s"]*[=+\-@＝＋－＠])/g, "$1'");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns2.map(([name]) => name).join(","), ...rows.map((r) => columns2.map(([, of]) => cell(of(r))).join(","))].join("\r\n") + "\r\n";
}

export {
  list,
  everything,
  columns,
  csv
};
