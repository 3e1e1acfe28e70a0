import {
  Failure,
  Icon,
  Problem,
  address,
  addressOf,
  call,
  failure,
  frames,
  lasting,
  lost,
  place,
  save,
  setQuery,
  t
} from "./shared.js";

// pkg/portal/web/src/logs.tsx
import { useSignal as useSignal2 } from "./library.js";
import { useEffect as useEffect2, useRef as useRef2 } from "./library.js";

// pkg/portal/web/src/logline.ts
var longest = 8 << 10;
var decoder = new TextDecoder();
function bytesOf(base64) {
  return Uint8Array.from(atob(base64 ?? ""), (c) => c.charCodeAt(0));
}
function textOf(all, most3 = longest) {
  let end = all.length;
  while (end > 0 && (all[end - 1] === 13 || all[end - 1] === 10)) end--;
  const from = end > 0 ? all.lastIndexOf(13, end - 1) + 1 : 0;
  const shown = all.subarray(from, Math.min(end, from + most3));
  return { text: decoder.decode(shown) + (from + most3 < end ? "…" : ""), bytes: shown.length };
}
var escapes = /\u001b(?:\[([0-9;?]*)([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;
function coloured(text) {
  if (!text.includes("\x1B")) return [{ text, style: "" }];
  const out = [];
  let bold = false;
  let colour = "";
  let from = 0;
  const add = (part) => {
    const style = bold && colour ? "bold " + colour : bold ? "bold" : colour;
    const last = out.at(-1);
    if (last?.style === style) last.text += part;
    else out.push({ text: part, style });
  };
  for (const m of text.matchAll(escapes)) {
    if (m.index > from) add(text.slice(from, m.index));
    from = m.index + m[0].length;
    if (m[2] !== "m") continue;
    for (const code of (m[1] || "0").split(";").map(Number)) {
      if (code === 0 || code === 39) colour = "";
      if (code === 0 || code === 22) bold = false;
      else if (code === 1) bold = true;
      else if (code >= 30 && code <= 37) colour = "ansi" + (code - 30);
      else if (code >= 90 && code <= 97) colour = "ansi" + (code - 90);
    }
  }
  if (from < text.length) add(text.slice(from));
  return out;
}
function marked(text, word) {
  if (!word) return [document.createTextNode(text)];
  const out = [];
  const lower = text.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, from)) {
    if (at > from) out.push(document.createTextNode(text.slice(from, at)));
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + word.length);
    out.push(mark);
    from = at + word.length;
  }
  if (from < text.length || out.length === 0) out.push(document.createTextNode(text.slice(from)));
  return out;
}
function fill(to, text, word) {
  const parts = [];
  for (const p of coloured(text)) {
    const nodes = marked(p.text, word);
    if (!p.style) parts.push(...nodes);
    else {
      const span = document.createElement("span");
      span.className = p.style;
      span.append(...nodes);
      parts.push(span);
    }
  }
  to.replaceChildren(...parts);
}
function stampOf(stamp) {
  const out = document.createElement("span");
  out.className = "stamp";
  out.textContent = stamp.slice(0, 23).replace("T", " ");
  return out;
}

// pkg/portal/web/src/logparts.tsx
import { signal } from "./library.js";
import { Fragment, jsx, jsxs } from "./library.js";
var wrap = signal(localStorage.getItem("wrap") !== "false");
var times = signal(false);
function screenClass() {
  return `screen ${wrap.value ? "wraps" : ""} ${times.value ? "timed" : ""}`;
}
function TaskChoice({ d, task }) {
  return /* @__PURE__ */ jsxs("select", { "aria-label": t("task"), value: task, onChange: (e) => setQuery({ task: e.currentTarget.value || void 0, at: void 0 }), children: [
    /* @__PURE__ */ jsx("option", { value: "", children: t("allTasks") }),
    (d.taskList ?? []).map((x) => /* @__PURE__ */ jsxs("option", { value: `${x.role}[${x.index}]`, children: [
      x.role,
      "[",
      x.index,
      "]",
      x.node ? ` · ${x.node}` : ""
    ] }, `${x.role}[${x.index}]`))
  ] });
}
function Tick({ label, checked, change }) {
  return /* @__PURE__ */ jsxs("label", { class: "tick", children: [
    /* @__PURE__ */ jsx("input", { type: "checkbox", checked, onChange: (e) => change(e.currentTarget.checked) }),
    " ",
    label
  ] });
}
function Ticks() {
  const previous = place.value.query.get("previous") === "true";
  return /* @__PURE__ */ jsxs(Fragment, { children: [
    /* @__PURE__ */ jsx(Tick, { label: t("previous"), checked: previous, change: (to) => setQuery({ previous: to ? "true" : void 0, at: void 0 }) }),
    /* @__PURE__ */ jsx(Tick, { label: t("times"), checked: times.value, change: (to) => times.value = to }),
    /* @__PURE__ */ jsx(
      Tick,
      {
        label: t("wrap"),
        checked: wrap.value,
        change: (to) => {
          wrap.value = to;
          localStorage.setItem("wrap", String(to));
        }
      }
    )
  ] });
}

// pkg/portal/web/src/tasklog.tsx
import { useSignal } from "./library.js";
import { useEffect, useRef } from "./library.js";

// pkg/portal/web/src/pager.ts
var page = 500;
var around = 100;
var most = 3e3;
var mostBytes = 4 << 20;
var near = 800;
var mostBehind = 4;
var wait = "20s";
var whole = 256 << 10;
function offsetOf(position) {
  return Number(position.slice(position.indexOf(".") + 1));
}
var Pager = class {
  constructor(box, ask, link, events) {
    this.box = box;
    this.ask = ask;
    this.link = link;
    this.events = events;
  }
  box;
  ask;
  link;
  events;
  rows = [];
  /** The last answer, without its lines, and the range that is shown. */
  info = null;
  from = "";
  to = "";
  before = false;
  after = false;
  /** Whether the page shows the end of the log and scrolls with it. */
  follows = false;
  /** The words that match, by the position of their line. */
  marks = /* @__PURE__ */ new Map();
  marked = "";
  here = "";
  bytes = 0;
  loading = false;
  tailing = false;
  opened = new AbortController();
  close() {
    this.opened.abort();
  }
  /** Shows the log at a place: "" is the end. */
  async open(at) {
    this.opened.abort();
    this.opened = new AbortController();
    const stop = this.opened.signal;
    this.loading = true;
    this.tailing = this.follows = false;
    this.events.failed(null);
    try {
      await lasting(stop, async (alive) => {
        const end = at === "" || at === "end";
        const w = await this.ask({ at: end ? "end" : at, before: end, lines: page }, stop);
        const placed = !end && at !== "start";
        const earlier = placed && w.before ? await this.ask({ at: w.from, before: true, lines: around }, stop) : null;
        if (stop.aborted) return;
        alive();
        this.reset();
        this.take(w, false);
        if (earlier) this.take(earlier, true);
        const line = placed ? w.lines?.[0]?.at : void 0;
        this.mark(line ?? "");
        if (line) this.show(line);
        else this.box.scrollTop = end ? this.box.scrollHeight : 0;
        this.follows = end || placed && !line;
      });
    } catch (e) {
      if (!stop.aborted) this.events.failed(failure(e));
      return;
    } finally {
      if (!stop.aborted) this.loading = false;
    }
    if (stop.aborted) return;
    this.events.changed();
    this.scrolled();
  }
  has(at) {
    return this.rows.some((r) => r.at === at);
  }
  /** Marks the line of a position. */
  mark(at) {
    this.row(this.marked)?.element.classList.remove("linked");
    this.marked = at;
    this.row(at)?.element.classList.add("linked");
  }
  /** Scrolls to a line that is shown. */
  show(at) {
    const row = this.row(at);
    if (!row) return;
    const line = row.element.getBoundingClientRect();
    const frame = this.box.getBoundingClientRect();
    this.box.scrollTop += line.top - frame.top - frame.height / 2;
    this.follows = false;
  }
  /** Shows the line of a match. */
  async toMatch(at) {
    if (!this.has(at)) await this.open(at);
    this.row(this.here)?.element.classList.remove("here");
    this.here = at;
    this.row(at)?.element.classList.add("here");
    this.show(at);
    this.events.changed();
  }
  /** Draws lines again whose matches have changed. */
  redraw(changed) {
    for (const r of this.rows) if (changed(r.at)) this.fill(r);
  }
  /** Returns the position of the first line in view. */
  top() {
    const edge = this.box.getBoundingClientRect().top;
    return (this.rows.find((r) => r.element.getBoundingClientRect().bottom > edge + 4) ?? this.rows.at(-1))?.at ?? "";
  }
  /** Follows the end, or leaves it, as the person has scrolled, and reads lines near an end. */
  scrolled() {
    const b = this.box;
    if (this.loading || b.clientHeight === 0) return;
    const below = b.scrollHeight - b.scrollTop - b.clientHeight;
    const follows = below < 24 && (!this.after || this.follows);
    if (follows !== this.follows) {
      this.follows = follows;
      this.events.changed();
    }
    if (this.follows) void this.tail();
    if (this.before && b.scrollTop < near) void this.more(true);
    else if (this.after && !this.follows && below < near) void this.more(false);
  }
  row(at) {
    return at ? this.rows.find((r) => r.at === at) : void 0;
  }
  reset() {
    this.rows = [];
    this.bytes = 0;
    this.from = this.to = "";
    this.box.replaceChildren();
  }
  async more(before) {
    if (this.loading) return;
    this.loading = true;
    const stop = this.opened.signal;
    try {
      await lasting(stop, async (alive) => {
        const w = await this.ask({ at: before ? this.from : this.to, before, lines: page }, stop);
        if (stop.aborted) return;
        alive();
        this.keeping(() => this.take(w, before));
      });
    } catch (e) {
      if (!stop.aborted) this.events.failed(failure(e));
      return;
    } finally {
      if (!stop.aborted) this.loading = false;
    }
    if (stop.aborted) return;
    this.events.changed();
    this.scrolled();
  }
  /** Reads lines as they are written, while the end is shown. */
  async tail() {
    if (this.tailing || !this.info?.live) return;
    this.tailing = true;
    const stop = this.opened.signal;
    let behind = 0;
    try {
      await lasting(stop, async (alive) => {
        while (!stop.aborted && this.follows && (this.info?.live || this.after) && behind < mostBehind) {
          const at = this.to;
          const w = await this.ask({ at, wait, lines: page }, stop);
          if (stop.aborted || at !== this.to) return;
          alive();
          this.keeping(() => this.take(w, false));
          if (this.follows) this.box.scrollTop = this.box.scrollHeight;
          this.events.changed();
          behind = this.after ? behind + 1 : 0;
          if (w.lines?.length) this.events.grew();
        }
      });
    } catch (e) {
      if (!stop.aborted) this.events.failed(failure(e));
    } finally {
      if (!stop.aborted) this.tailing = false;
    }
    if (behind >= mostBehind && !stop.aborted && this.follows) void this.open("");
  }
  /** Changes the lines, and leaves those in view where they are. */
  keeping(change) {
    const anchor = this.row(this.top())?.element;
    const was = anchor?.getBoundingClientRect().top ?? 0;
    change();
    if (anchor?.isConnected) this.box.scrollTop += anchor.getBoundingClientRect().top - was;
  }
  /** Adds the lines of an answer at an end, and drops lines at the other end. */
  take(w, before) {
    const more = (w.lines ?? []).map((l) => this.draw(l));
    const elements = more.map((r) => r.element);
    for (const r of more) this.bytes += r.bytes;
    if (before) {
      this.rows.unshift(...more);
      this.box.prepend(...elements);
    } else {
      this.rows.push(...more);
      this.box.append(...elements);
    }
    if (before || !this.from) [this.from, this.before] = [w.from, w.before ?? false];
    if (!before || !this.to) [this.to, this.after] = [w.to, w.after ?? false];
    this.info = { ...w, lines: [] };
    while (this.rows.length > 1 && (this.rows.length > most || this.bytes > mostBytes)) {
      const r = before ? this.rows.pop() : this.rows.shift();
      this.bytes -= r.bytes;
      r.element.remove();
      if (before) [this.to, this.after] = [r.at, true];
      else [this.from, this.before] = [this.rows[0].at, true];
    }
  }
  draw(l) {
    const element = document.createElement("div");
    element.className = "l" + (l.at === this.marked ? " linked" : "") + (l.at === this.here ? " here" : "");
    const link = document.createElement("a");
    link.className = "to";
    link.href = this.link(l.at);
    link.tabIndex = -1;
    link.ariaLabel = t("linkToLine");
    link.textContent = "#";
    element.append(link);
    if (l.stamp) element.append(stampOf(l.stamp));
    else if (l.continued) element.classList.add("continued");
    const text = document.createElement("span");
    text.className = "t";
    element.append(text);
    const row = { at: l.at, ...textOf(bytesOf(l.text)), element };
    this.fill(row);
    if (l.bytes) {
      const all = document.createElement("button");
      all.type = "button";
      all.className = "link";
      all.textContent = t("wholeLine", { n: Math.ceil(l.bytes / 1024) });
      all.addEventListener("click", () => void this.wholeLine(row, all));
      element.append(all);
    }
    return row;
  }
  fill(r) {
    fill(r.element.querySelector(".t"), r.text, this.marks.get(r.at) ?? "");
  }
  async wholeLine(row, button) {
    button.disabled = true;
    try {
      const w = await this.ask({ at: row.at, lines: 1, longest: whole }, this.opened.signal);
      const all = textOf(bytesOf(w.lines?.[0]?.text), whole);
      this.bytes += all.bytes - row.bytes;
      Object.assign(row, all);
      this.fill(row);
      button.remove();
      this.follows = false;
      this.events.changed();
    } catch (e) {
      button.disabled = false;
      this.events.failed(failure(e));
    }
  }
};

// pkg/portal/web/src/tasklog.tsx
import { Fragment as Fragment2, jsx as jsx2, jsxs as jsxs2 } from "./library.js";
var mostMatches = 1e4;
var later = 4e3;
var log = "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log";
function wordOf(m) {
  const all = Uint8Array.from(atob(m.text ?? ""), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(all.subarray(m.from, m.to)).toLowerCase();
}
var Search = class {
  constructor(step, news) {
    this.step = step;
    this.news = news;
  }
  step;
  news;
  found = [];
  next = "start";
  running = false;
  /** How much of the log has been searched, from 0 to 1. */
  part = 0;
  stop = new AbortController();
  /** Continues to the present end of the log. */
  async run() {
    if (this.running || this.full()) return;
    this.running = true;
    let more = [];
    try {
      await lasting(this.stop.signal, async (alive) => {
        for (let after = true; after && !this.full(); ) {
          this.news(more);
          more = [];
          const m = await this.step(this.next, this.stop.signal);
          if (this.stop.signal.aborted) return;
          alive();
          more = m.items ?? [];
          this.found.push(...more);
          this.next = m.to;
          this.part = m.bytes > 0 ? m.searched / m.bytes : 1;
          after = m.after ?? false;
        }
      });
    } finally {
      this.running = false;
    }
    if (!this.stop.signal.aborted) this.news(more);
  }
  full() {
    return this.found.length >= mostMatches;
  }
  end() {
    this.stop.abort();
  }
};
function TaskLog({ d, user, name, role, index, unplaced }) {
  const query = place.value.query;
  const at = query.get("at") ?? "";
  const previous = query.get("previous") === "true";
  const box = useRef(null);
  const pager = useRef(null);
  const field = useRef(null);
  const search = useRef(null);
  const error = useSignal(null);
  const waiting = useSignal(false);
  const round = useSignal(0);
  const word = useSignal("");
  const exact = useSignal(false);
  const here = useSignal(-1);
  const path = { user, name, role, index: String(index) };
  const task = `${role}[${index}]`;
  const change = () => void round.value++;
  const failed = (e) => {
    error.value = null;
    waiting.value = false;
    if (e?.code === "NoPositionsError") unplaced();
    else if (e?.code === "NoTaskLogError" && !d.completed) {
      waiting.value = true;
      retry.current = setTimeout(() => void pager.current?.open(place.value.query.get("at") ?? ""), later);
    } else error.value = e;
  };
  const retry = useRef(0);
  useEffect(() => {
    const link = (to) => address(place.value.path, { ...Object.fromEntries(place.value.query), task, at: to });
    const ask = (q, signal2) => call(log, { path, query: { ...q, previous }, signal: signal2 });
    pager.current = new Pager(box.current, ask, link, { changed: change, failed, grew: () => void search.current?.run().catch(() => {
    }) });
    return () => {
      clearTimeout(retry.current);
      pager.current?.close();
      search.current?.end();
      lost.value = null;
    };
  }, [previous]);
  useEffect(() => {
    const p2 = pager.current;
    if (p2.has(at)) {
      if (p2.marked !== at) p2.mark(at);
    } else void p2.open(at);
  }, [at, previous]);
  const jump = (to) => {
    if (place.value.query.get("at") === to || !to && !place.value.query.get("at")) void pager.current?.open(to);
    else setQuery({ at: to || void 0 });
  };
  const toMatch = (i) => {
    const found2 = search.current?.found ?? [];
    if (found2.length === 0) return;
    here.value = (i + found2.length) % found2.length;
    void pager.current?.toMatch(found2[here.value].at);
  };
  const nearest = (s) => {
    const from = offsetOf(pager.current?.top() || ".0");
    const i = s.found.findIndex((m) => offsetOf(m.at) >= from);
    if (i >= 0) toMatch(i);
    else if (!s.running) toMatch(0);
  };
  const seek = () => {
    search.current?.end();
    search.current = null;
    const p2 = pager.current;
    const old = p2.marks;
    p2.marks = /* @__PURE__ */ new Map();
    p2.redraw((x) => old.has(x));
    here.value = -1;
    error.value = null;
    change();
    if (!word.value) return;
    const match = exact.value ? word.value : "(?i)" + word.value.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
    const s = new Search(
      (from, signal2) => call("GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log/matches", { path, query: { from: from === "start" && p2.info ? p2.info.start : from, match, previous }, signal: signal2 }),
      (more) => {
        const fresh = new Set(more.map((m) => m.at));
        for (const m of more) p2.marks.set(m.at, wordOf(m));
        p2.redraw((x) => fresh.has(x));
        if (here.value < 0) nearest(s);
        change();
      }
    );
    search.current = s;
    void s.run().catch((e) => {
      if (search.current === s) error.value = failure(e);
    });
  };
  const timer = useRef(0);
  useEffect(() => {
    clearTimeout(timer.current);
    timer.current = setTimeout(seek, 300);
    return () => clearTimeout(timer.current);
  }, [word.value, exact.value, previous]);
  useEffect(() => {
    const keys2 = (e) => {
      if ((e.ctrlKey || e.metaKey) && e.key === "f" && !e.shiftKey) {
        e.preventDefault();
        field.current?.select();
      }
    };
    addEventListener("keydown", keys2);
    return () => removeEventListener("keydown", keys2);
  }, []);
  const keys = (e) => {
    const act = { Home: () => jump("start"), End: () => jump(""), Enter: () => setQuery({ at: pager.current?.top() }) };
    if (word.value) Object.assign(act, { n: () => toMatch(here.value + 1), N: () => toMatch(here.value - 1) });
    if (e.target !== e.currentTarget || e.ctrlKey || e.metaKey || e.altKey || !act[e.key]) return;
    e.preventDefault();
    e.stopPropagation();
    act[e.key]();
  };
  const toLink = (e) => {
    const a = e.target.closest("a.to");
    if (!a || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    setQuery({ task, at: new URL(a.href).searchParams.get("at") ?? void 0 });
  };
  void round.value;
  const p = pager.current;
  const info = p?.info;
  const found = search.current?.found.length ?? 0;
  const searching = search.current?.running ?? false;
  const said = here.value >= 0 ? t("matches", { at: here.value + 1, n: found }) : found ? t("matchesSoFar", { n: found }) : searching ? "" : t("noMatches");
  const count = [said + (search.current?.full() ? "+" : ""), searching ? `${Math.floor(100 * search.current.part)}%` : ""].filter(Boolean).join(" · ");
  const begun = (d.taskList ?? []).find((x) => x.role === role && x.index === index && x.run);
  const newer = info && begun && !previous && (d.retries > info.attempt || d.retries === info.attempt && begun.id > info.taskAttempt);
  const size = (n) => n < 1 << 20 ? `${Math.ceil(n / 1024)} KiB` : `${(n / (1 << 20)).toFixed(n < 10 << 20 ? 1 : 0)} MiB`;
  return /* @__PURE__ */ jsxs2("div", { class: "logs", children: [
    /* @__PURE__ */ jsxs2("div", { class: "filters", children: [
      /* @__PURE__ */ jsx2(TaskChoice, { d, task }),
      /* @__PURE__ */ jsxs2("label", { class: "search", children: [
        /* @__PURE__ */ jsx2(Icon, { name: "search" }),
        /* @__PURE__ */ jsx2(
          "input",
          {
            ref: field,
            type: "search",
            placeholder: t("findInLog"),
            "aria-label": t("findInLog"),
            onInput: (e) => word.value = e.currentTarget.value,
            onKeyDown: (e) => {
              if (e.key === "Enter" && search.current) {
                if (here.value < 0) nearest(search.current);
                else toMatch(here.value + (e.shiftKey ? -1 : 1));
              }
              if (e.key === "Escape") e.currentTarget.blur();
            }
          }
        ),
        word.value ? /* @__PURE__ */ jsx2("span", { class: "faint hits", role: "status", children: count }) : null
      ] }),
      /* @__PURE__ */ jsx2("button", { type: "button", class: "square", "aria-pressed": exact.value, title: t("regexp"), "aria-label": t("regexp"), onClick: () => exact.value = !exact.value, children: /* @__PURE__ */ jsx2("code", { children: ".*" }) }),
      word.value ? /* @__PURE__ */ jsxs2(Fragment2, { children: [
        /* @__PURE__ */ jsx2("button", { type: "button", class: "square", title: t("before"), "aria-label": t("before"), onClick: () => toMatch(here.value - 1), children: /* @__PURE__ */ jsx2(Icon, { name: "up" }) }),
        /* @__PURE__ */ jsx2("button", { type: "button", class: "square", title: t("next"), "aria-label": t("next"), onClick: () => toMatch(here.value + 1), children: /* @__PURE__ */ jsx2(Icon, { name: "drop" }) })
      ] }) : null,
      /* @__PURE__ */ jsx2("span", { class: "grow" }),
      /* @__PURE__ */ jsx2(Ticks, {}),
      /* @__PURE__ */ jsxs2("a", { class: "button", download: true, href: addressOf("GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log/text", { path, query: { previous, of: info?.start } }), children: [
        /* @__PURE__ */ jsx2(Icon, { name: "down" }),
        " ",
        t("download")
      ] })
    ] }),
    error.value ? /* @__PURE__ */ jsx2(Problem, { of: error.value, again: () => void p?.open(error.value?.code === "LogGoneError" ? "" : at) }) : null,
    info?.dropped ? /* @__PURE__ */ jsx2("p", { class: "note", children: t("logDropped", { size: size(info.dropped), limit: size(info.limit) }) }) : null,
    info?.gaps ? /* @__PURE__ */ jsx2("p", { class: "note", children: t("logGaps") }) : null,
    newer ? /* @__PURE__ */ jsxs2("p", { class: "note", children: [
      t("newerAttempt"),
      " ",
      /* @__PURE__ */ jsx2("button", { type: "button", class: "link", onClick: () => jump(""), children: t("openIt") })
    ] }) : null,
    /* @__PURE__ */ jsxs2("p", { class: "places faint small", children: [
      /* @__PURE__ */ jsx2("button", { type: "button", class: "link", onClick: () => jump("start"), children: t("toStart") }),
      /* @__PURE__ */ jsx2("button", { type: "button", class: "link", onClick: () => jump(""), children: t("toEnd") }),
      /* @__PURE__ */ jsxs2("label", { children: [
        t("toTime"),
        " ",
        /* @__PURE__ */ jsx2(
          "input",
          {
            type: "datetime-local",
            step: 1,
            onChange: (e) => {
              const v = e.currentTarget.value;
              if (v) jump((v.length === 16 ? v + ":00" : v) + "Z");
            }
          }
        )
      ] }),
      info ? /* @__PURE__ */ jsx2("span", { children: t("logOf", { n: info.attempt, size: size(info.bytes) }) }) : null
    ] }),
    /* @__PURE__ */ jsxs2("div", { class: "screen-frame", children: [
      /* @__PURE__ */ jsx2("div", { ref: box, class: screenClass() + " paged", tabIndex: 0, role: "log", "aria-label": t("logs"), onScroll: () => pager.current?.scrolled(), onKeyDown: keys, onClick: toLink }),
      !p?.info || p.follows ? null : /* @__PURE__ */ jsxs2("button", { type: "button", class: "to-end", onClick: () => jump(""), children: [
        /* @__PURE__ */ jsx2(Icon, { name: "drop" }),
        " ",
        t(info?.live ? "follow" : "toEnd")
      ] })
    ] }),
    /* @__PURE__ */ jsx2("p", { class: "faint small", children: waiting.value ? t("emptyLog") : !info ? t("loading") : p.rows.length === 0 ? t("emptyLog") : p.after ? "" : info.live ? p.follows ? t("logFollows") : "" : t("logEnded") })
  ] });
}

// pkg/portal/web/src/logs.tsx
import { Fragment as Fragment3, jsx as jsx3, jsxs as jsxs3 } from "./library.js";
var tail = 1e3;
var most2 = 2e4;
var mostBytes2 = 4 << 20;
var burst = 1e3;
var chunk = 250;
function read(l) {
  return { task: l.task, stamp: l.stamp ?? "", ...textOf(bytesOf(l.text)) };
}
var Screen = class {
  constructor(box, several) {
    this.box = box;
    this.several = several;
  }
  box;
  several;
  lines = [];
  dropped = false;
  word = "";
  chunks = [];
  bytes = 0;
  add(more) {
    for (const l of more) {
      let last = this.chunks.at(-1);
      if (!last || last.childElementCount >= chunk) {
        last = document.createElement("div");
        last.className = "chunk";
        this.box.append(last);
        this.chunks.push(last);
      }
      last.append(this.draw(l));
      this.bytes += l.bytes;
    }
    this.lines.push(...more);
    while (this.chunks.length > 1 && (this.lines.length > most2 + chunk || this.bytes > mostBytes2)) {
      const first = this.chunks.shift();
      for (const l of this.lines.splice(0, first.childElementCount)) this.bytes -= l.bytes;
      first.remove();
      this.dropped = true;
    }
  }
  clear() {
    this.lines = [];
    this.chunks = [];
    this.bytes = 0;
    this.dropped = false;
    this.box.replaceChildren();
  }
  draw(l) {
    const row = document.createElement("div");
    row.className = "l";
    if (l.stamp) row.append(stampOf(l.stamp));
    if (this.several) {
      const task = document.createElement("span");
      task.className = "of";
      task.textContent = l.task;
      row.append(task);
    }
    const text = document.createElement("span");
    text.className = "t";
    fill(text, l.text, this.word);
    row.append(text);
    return row;
  }
  find(word) {
    const before = this.word;
    this.word = word.toLowerCase();
    const rows = this.box.querySelectorAll(".l");
    this.lines.forEach((l, i) => {
      const lower = l.text.toLowerCase();
      if (this.word && lower.includes(this.word) || before && lower.includes(before)) fill(rows[i].lastElementChild, l.text, this.word);
    });
  }
  marks() {
    return [...this.box.querySelectorAll("mark")];
  }
};
function Logs(of) {
  const tasks = of.d.taskList ?? [];
  const asked = place.value.query.get("task") ?? "";
  const m = /^(.*)\[(\d+)\]$/.exec(asked);
  const one = m ? { role: m[1], index: Number(m[2]) } : tasks.length === 1 ? tasks[0] : null;
  const key = one ? `${one.role}[${one.index}]` : "";
  const unplaced = useSignal2("");
  if (one && unplaced.value !== key) return /* @__PURE__ */ jsx3(TaskLog, { ...of, role: one.role, index: one.index, unplaced: () => unplaced.value = key }, key);
  return /* @__PURE__ */ jsx3(Stream, { ...of, unplaced: unplaced.value !== "" && unplaced.value === key });
}
function Stream({ d, user, name, unplaced }) {
  const query = place.value.query;
  const task = query.get("task") ?? "";
  const previous = query.get("previous") === "true";
  const whole2 = query.get("all") === "true";
  const box = useRef2(null);
  const screen = useRef2(null);
  const error = useSignal2(null);
  const note = useSignal2("");
  const ended = useSignal2(false);
  const count = useSignal2(0);
  const stick = useSignal2(true);
  const word = useSignal2("");
  const at = useSignal2(0);
  const found = useSignal2(0);
  const busy = useSignal2(false);
  const field = useRef2(null);
  const m = /^(.*)\[(\d+)\]$/.exec(task);
  const select = m ? { role: m[1], task: Number(m[2]) } : {};
  const path = { user, name };
  const tasks = d.taskList ?? [];
  const several = !m && tasks.length !== 1;
  useEffect2(() => {
    const stop = new AbortController();
    const to = new Screen(box.current, several);
    screen.current = to;
    to.clear();
    error.value = null;
    note.value = "";
    ended.value = false;
    count.value = 0;
    to.word = word.value.toLowerCase();
    let waiting = [];
    let drawing = 0;
    const draw = () => {
      drawing = 0;
      to.add(waiting);
      waiting = [];
      count.value = to.lines.length;
      if (to.word) found.value = to.marks().length;
      if (stick.value && box.current) box.current.scrollTop = box.current.scrollHeight;
    };
    let first = true;
    lasting(stop.signal, (alive) => {
      if (!first) {
        waiting = [];
        to.clear();
      }
      first = false;
      return frames("GET /api/v3/jobs/{user}/{name}/logs", { path, query: { ...select, previous, follow: true, tail: whole2 ? void 0 : tail } }, stop.signal, (f) => {
        alive();
        if (f.line) {
          waiting.push(read(f.line));
          drawing ||= requestAnimationFrame(draw);
          if (waiting.length >= burst) {
            cancelAnimationFrame(drawing);
            draw();
          }
        }
        if (f.note) note.value = f.note;
        if (f.problem) lost.value = new Failure(503, "UnavailableError", f.problem);
        if (f.back) lost.value = null;
      });
    }).then(() => ended.value = true).catch((e) => {
      if (!stop.signal.aborted) error.value = failure(e);
    });
    return () => {
      stop.abort();
      cancelAnimationFrame(drawing);
      lost.value = null;
    };
  }, [task, previous, whole2, several]);
  const show = (i) => {
    const all = screen.current?.marks() ?? [];
    found.value = all.length;
    for (const x of all) x.classList.remove("here");
    if (all.length === 0) return;
    at.value = (i + all.length) % all.length;
    stick.value = false;
    all[at.value].classList.add("here");
    const mark = all[at.value].getBoundingClientRect();
    const frame = box.current.getBoundingClientRect();
    box.current.scrollTop += mark.top - frame.top - frame.height / 2;
  };
  const timer = useRef2(0);
  const search = (text) => {
    word.value = text;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      screen.current?.find(text);
      if (text) show(0);
      else found.value = 0;
    }, 150);
  };
  useEffect2(() => {
    const keys = (e) => {
      if ((e.ctrlKey || e.metaKey) && e.key === "f" && !e.shiftKey) {
        e.preventDefault();
        field.current?.select();
      }
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  const download = async () => {
    busy.value = true;
    const stop = new AbortController();
    const parts = [];
    try {
      await frames("GET /api/v3/jobs/{user}/{name}/logs", { path, query: { ...select, previous } }, stop.signal, (f) => {
        if (!f.line) return;
        if (several) parts.push(f.line.task + " ");
        parts.push(bytesOf(f.line.text), "\n");
      });
      save(`${name}${task ? "-" + task.replace(/[[\]]/g, "-").replace(/-$/, "") : ""}.log`, parts, "text/plain");
    } catch (e) {
      error.value = failure(e);
    } finally {
      busy.value = false;
    }
  };
  return /* @__PURE__ */ jsxs3("div", { class: "logs", children: [
    /* @__PURE__ */ jsxs3("div", { class: "filters", children: [
      /* @__PURE__ */ jsx3(TaskChoice, { d, task }),
      /* @__PURE__ */ jsxs3("label", { class: "search", children: [
        /* @__PURE__ */ jsx3(Icon, { name: "search" }),
        /* @__PURE__ */ jsx3(
          "input",
          {
            ref: field,
            type: "search",
            placeholder: t("find"),
            "aria-label": t("find"),
            onInput: (e) => search(e.currentTarget.value),
            onKeyDown: (e) => {
              if (e.key === "Enter") show(at.value + (e.shiftKey ? -1 : 1));
              if (e.key === "Escape") e.currentTarget.blur();
            }
          }
        ),
        word.value ? /* @__PURE__ */ jsx3("span", { class: "faint hits", children: found.value ? t("matches", { at: at.value + 1, n: found.value }) : t("noMatches") }) : null
      ] }),
      word.value ? /* @__PURE__ */ jsxs3(Fragment3, { children: [
        /* @__PURE__ */ jsx3("button", { type: "button", class: "square", title: t("before"), "aria-label": t("before"), onClick: () => show(at.value - 1), children: /* @__PURE__ */ jsx3(Icon, { name: "up" }) }),
        /* @__PURE__ */ jsx3("button", { type: "button", class: "square", title: t("next"), "aria-label": t("next"), onClick: () => show(at.value + 1), children: /* @__PURE__ */ jsx3(Icon, { name: "drop" }) })
      ] }) : null,
      /* @__PURE__ */ jsx3("span", { class: "grow" }),
      /* @__PURE__ */ jsx3(Ticks, {}),
      /* @__PURE__ */ jsxs3("button", { type: "button", disabled: busy.value, onClick: () => void download(), children: [
        /* @__PURE__ */ jsx3(Icon, { name: "down" }),
        " ",
        t("download")
      ] })
    ] }),
    error.value ? /* @__PURE__ */ jsx3(Problem, { of: error.value }) : null,
    note.value ? /* @__PURE__ */ jsx3("p", { class: "note", children: note.value }) : null,
    unplaced ? /* @__PURE__ */ jsx3("p", { class: "note", children: t(query.get("at") ? "linkWithoutPositions" : "noPositions") }) : null,
    /* @__PURE__ */ jsxs3("p", { class: "faint small", children: [
      screen.current?.dropped ? t("tooLong", { n: most2 }) : whole2 ? t("lines", { n: count.value }) : t("showingLast", { n: tail }),
      " ",
      /* @__PURE__ */ jsx3("button", { type: "button", class: "link", onClick: () => setQuery({ all: whole2 ? void 0 : "true" }), children: whole2 ? t("newest") : t("fromStart") })
    ] }),
    /* @__PURE__ */ jsxs3("div", { class: "screen-frame", children: [
      /* @__PURE__ */ jsx3(
        "div",
        {
          ref: box,
          class: screenClass(),
          tabIndex: 0,
          role: "log",
          "aria-label": t("logs"),
          onScroll: (e) => {
            const b = e.currentTarget;
            stick.value = b.scrollHeight - b.scrollTop - b.clientHeight < 24;
          }
        }
      ),
      stick.value ? null : /* @__PURE__ */ jsxs3(
        "button",
        {
          type: "button",
          class: "to-end",
          onClick: () => {
            stick.value = true;
            box.current.scrollTop = box.current.scrollHeight;
          },
          children: [
            /* @__PURE__ */ jsx3(Icon, { name: "drop" }),
            " ",
            t("follow")
          ]
        }
      )
    ] }),
    /* @__PURE__ */ jsx3("p", { class: "faint small", children: ended.value ? count.value ? t("logEnded") : t("emptyLog") : count.value ? t("logFollows") : t("emptyLog") })
  ] });
}
export {
  Logs
};
