import {
  columns,
  csv,
  everything,
  list
} from "./shared-5.js";
import {
  Palette,
  all,
  curl,
  help,
  listen,
  quoted,
  useKeys
} from "./shared-3.js";
import {
  changed,
  filled,
  load,
  mask,
  masked,
  parameters,
  revealed
} from "./shared-4.js";
import {
  begin,
  me,
  ownVCs,
  pages,
  refused,
  signOut
} from "./shared-6.js";
import {
  Ago,
  Asking,
  Bar,
  Failure,
  Icon,
  Loading,
  Lost,
  Menu,
  Problem,
  State,
  Toasts,
  address,
  addressOf,
  ask,
  base,
  call,
  copy,
  duration,
  failure,
  frames,
  go,
  language,
  languages,
  lasting,
  lost,
  maybe,
  now,
  place,
  save,
  send,
  setQuery,
  speak,
  start,
  t,
  toSignIn,
  toast,
  useAct,
  useRead,
  watchJobs,
  watchStatus
} from "./shared.js";

// pkg/portal/web/src/main.tsx
import { render } from "./library.js";
import { useSignal as useSignal16 } from "./library.js";
import { useEffect as useEffect17, useRef as useRef13 } from "./library.js";

// pkg/portal/web/src/home.tsx
import { useEffect as useEffect4, useMemo as useMemo4 } from "./library.js";

// pkg/portal/web/src/jobs.tsx
import { useSignal } from "./library.js";
import { useEffect, useMemo, useRef } from "./library.js";
import { Fragment, jsx, jsxs } from "./library.js";
var size = 50;
var choices = {
  all: [],
  active: ["waiting", "queued", "starting", "barrier", "running", "stopping", "retry"],
  running: ["running", "starting", "barrier"],
  waiting: ["waiting", "queued", "retry"],
  succeeded: ["succeeded"],
  failed: ["failed"],
  stopped: ["stopped"]
};
function ran(r) {
  if (!r.started) return "";
  return duration((r.completed ? Date.parse(r.completed) : now.value) - Date.parse(r.started));
}
function Row({ r, chosen: chosen2, owner }) {
  const row = useRef(null);
  useEffect(() => {
    if (chosen2) row.current?.scrollIntoView({ block: "nearest" });
  }, [chosen2]);
  return /* @__PURE__ */ jsxs("tr", { ref: row, class: chosen2 ? "chosen" : "", "data-job": r.user + "/" + r.name, children: [
    /* @__PURE__ */ jsx("td", { class: "c-state", children: /* @__PURE__ */ jsx(State, { state: r.state, position: r.position, deleted: r.deleted }) }),
    /* @__PURE__ */ jsxs("td", { class: "c-name", children: [
      /* @__PURE__ */ jsx("a", { class: "whole", href: address(["jobs", r.user, r.name]), title: r.name, children: r.name }),
      r.tags?.map((tag) => /* @__PURE__ */ jsx("span", { class: "tag", children: tag }, tag))
    ] }),
    owner ? /* @__PURE__ */ jsx("td", { class: "c-owner", children: r.user }) : null,
    /* @__PURE__ */ jsx("td", { class: "c-vc", children: r.virtualCluster }),
    /* @__PURE__ */ jsx("td", { class: "num c-gpus", children: r.gpus > 0 ? r.gpus : /* @__PURE__ */ jsx("span", { class: "faint", children: r.gpus < 0 ? "?" : "–" }) }),
    /* @__PURE__ */ jsx("td", { class: "num c-tasks", children: r.tasks }),
    /* @__PURE__ */ jsx("td", { class: "num c-duration", children: ran(r) }),
    /* @__PURE__ */ jsx("td", { class: "c-time", children: /* @__PURE__ */ jsx(Ago, { time: r.submitted }) })
  ] });
}
function Head({ owner }) {
  return /* @__PURE__ */ jsx("thead", { children: /* @__PURE__ */ jsxs("tr", { children: [
    /* @__PURE__ */ jsx("th", { class: "c-state", children: t("state") }),
    /* @__PURE__ */ jsx("th", { class: "c-name", children: t("name") }),
    owner ? /* @__PURE__ */ jsx("th", { class: "c-owner", children: t("owner") }) : null,
    /* @__PURE__ */ jsx("th", { class: "c-vc", children: t("vc") }),
    /* @__PURE__ */ jsx("th", { class: "num c-gpus", children: t("gpus") }),
    /* @__PURE__ */ jsx("th", { class: "num c-tasks", children: t("tasks") }),
    /* @__PURE__ */ jsx("th", { class: "num c-duration", children: t("duration") }),
    /* @__PURE__ */ jsx("th", { class: "c-time", children: t("submitted") })
  ] }) });
}
function filterOf(q) {
  const choice = q.get("state") ?? "all";
  return { choice, state: Object.hasOwn(choices, choice) ? choices[choice] : [choice], user: q.get("user") ?? void 0, vc: q.get("vc") ?? void 0, keyword: q.get("keyword") ?? void 0 };
}
function Jobs() {
  const q = place.value.query.toString();
  const { choice, ...filter } = filterOf(place.value.query);
  const jobs = useMemo(() => list(filter, size), [q]);
  const at = useSignal(-1);
  const busy = useSignal(false);
  const search = useRef(null);
  useEffect(() => {
    document.title = t("jobs") + " – paictl";
    at.value = -1;
    return () => {
      jobs.end();
      lost.value = null;
    };
  }, [jobs]);
  useEffect(() => {
    const field = search.current;
    if (document.activeElement !== field) field.value = filter.keyword ?? "";
  }, [filter.keyword]);
  const kept = useRef(null);
  if (jobs.rows.value) kept.current = jobs.rows.value;
  const rows = jobs.rows.value ?? (jobs.error.value ? null : kept.current);
  const move = (by) => at.value = Math.max(0, Math.min((rows?.length ?? 0) - 1, at.value + by));
  useKeys({
    "/": () => search.current?.focus(),
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => {
      const r = rows?.[at.value];
      if (r) go(address(["jobs", r.user, r.name]));
    }
  });
  const timer = useRef(0);
  const typed = (text2) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ keyword: text2 || void 0 }), 250);
  };
  const download = async () => {
    busy.value = true;
    try {
      save("jobs.csv", [csv(await everything(filter), columns)], "text/csv;charset=utf-8");
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const more = async () => {
    busy.value = true;
    try {
      await jobs.older();
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const command2 = ["paictl job list"];
  if (!filter.user) command2.push("--all-users");
  else if (filter.user !== me.value?.name) command2.push("--user " + quoted(filter.user));
  if (filter.vc) command2.push("--vc " + quoted(filter.vc));
  if (filter.state?.length) command2.push("--state " + quoted(filter.state.join(",")));
  if (filter.keyword) command2.push("--keyword " + quoted(filter.keyword));
  const mine = filter.user === me.value?.name;
  const filtered = q !== "";
  const vcs = [.../* @__PURE__ */ new Set([...ownVCs(), ...filter.vc ? [filter.vc] : []])];
  return /* @__PURE__ */ jsxs("section", { class: "page", children: [
    /* @__PURE__ */ jsxs("header", { class: "top", children: [
      /* @__PURE__ */ jsx("h1", { children: t("jobs") }),
      /* @__PURE__ */ jsx("span", { class: "grow" }),
      /* @__PURE__ */ jsx(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2.join(" ")) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/jobs", { query: filter })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      ),
      /* @__PURE__ */ jsxs("button", { type: "button", title: t("csvMore"), disabled: busy.value, onClick: () => void download(), children: [
        /* @__PURE__ */ jsx(Icon, { name: "down" }),
        " ",
        t("csv")
      ] }),
      /* @__PURE__ */ jsxs("a", { class: "button primary", href: address(["submit"]), children: [
        /* @__PURE__ */ jsx(Icon, { name: "plus" }),
        " ",
        t("newJob")
      ] })
    ] }),
    /* @__PURE__ */ jsxs("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs("label", { class: "search", children: [
        /* @__PURE__ */ jsx(Icon, { name: "search" }),
        /* @__PURE__ */ jsx("input", { ref: search, type: "search", placeholder: t("search"), "aria-label": t("search"), defaultValue: filter.keyword ?? "", onInput: (e) => typed(e.currentTarget.value), onKeyDown: (e) => e.key === "Escape" && e.currentTarget.blur() }),
        /* @__PURE__ */ jsx("kbd", { children: "/" })
      ] }),
      /* @__PURE__ */ jsxs("div", { class: "segments", role: "group", "aria-label": t("state"), children: [
        Object.keys(choices).map((name) => /* @__PURE__ */ jsx("button", { type: "button", "aria-pressed": choice === name, onClick: () => setQuery({ state: name === "all" ? void 0 : name }), children: maybe("state." + name, name) }, name)),
        Object.hasOwn(choices, choice) ? null : /* @__PURE__ */ jsx("button", { type: "button", "aria-pressed": "true", onClick: () => setQuery({ state: void 0 }), children: maybe("state." + choice, choice) })
      ] }),
      /* @__PURE__ */ jsxs("div", { class: "segments", role: "group", "aria-label": t("owner"), children: [
        /* @__PURE__ */ jsx("button", { type: "button", "aria-pressed": !filter.user, onClick: () => setQuery({ user: void 0 }), children: t("everyone") }),
        /* @__PURE__ */ jsx("button", { type: "button", "aria-pressed": mine, onClick: () => setQuery({ user: me.value?.name }), children: t("mine") }),
        filter.user && !mine ? /* @__PURE__ */ jsxs("button", { type: "button", "aria-pressed": "true", onClick: () => setQuery({ user: void 0 }), children: [
          filter.user,
          " ",
          /* @__PURE__ */ jsx(Icon, { name: "close" })
        ] }) : null
      ] }),
      vcs.length > 0 ? /* @__PURE__ */ jsxs("select", { "aria-label": t("vc"), value: filter.vc ?? "", onChange: (e) => setQuery({ vc: e.currentTarget.value || void 0 }), children: [
        /* @__PURE__ */ jsx("option", { value: "", children: t("anyVC") }),
        vcs.map((v) => /* @__PURE__ */ jsx("option", { value: v, children: v }, v))
      ] }) : null
    ] }),
    jobs.error.value ? /* @__PURE__ */ jsx(Problem, { of: jobs.error.value, again: () => go(location.pathname + location.search, true) }) : null,
    jobs.note.value ? /* @__PURE__ */ jsx("p", { class: "note", children: jobs.note.value }) : null,
    !rows ? jobs.error.value ? null : /* @__PURE__ */ jsx(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsxs("div", { class: "empty", children: [
      /* @__PURE__ */ jsx("p", { children: filtered ? t("noMatch") : t("noJobs") }),
      filtered ? /* @__PURE__ */ jsx("button", { type: "button", onClick: () => go(address(["jobs"])), children: t("clearFilters") }) : /* @__PURE__ */ jsx("p", { class: "faint", children: t("noJobsHint") })
    ] }) : /* @__PURE__ */ jsxs(Fragment, { children: [
      /* @__PURE__ */ jsxs("table", { class: jobs.rows.value ? "rows jobs" : "rows jobs old", "aria-busy": !jobs.rows.value, children: [
        /* @__PURE__ */ jsx(Head, { owner: true }),
        /* @__PURE__ */ jsx("tbody", { children: rows.map((r, i) => /* @__PURE__ */ jsx(Row, { r, chosen: i === at.value, owner: true }, r.uid)) })
      ] }),
      /* @__PURE__ */ jsxs("footer", { class: "under", children: [
        /* @__PURE__ */ jsx("span", { class: "faint", children: t(jobs.next.value ? "shownMore" : "shown", { n: rows.length }) }),
        jobs.next.value ? /* @__PURE__ */ jsx("button", { type: "button", disabled: busy.value, onClick: () => void more(), children: t("older") }) : null
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/cluster.ts
import { signal } from "./library.js";
import { useEffect as useEffect2, useMemo as useMemo2 } from "./library.js";
function merge(list2, news, gone, key2) {
  if (!news && !gone) return list2 ?? [];
  const known = new Map((list2 ?? []).map((x) => [key2(x), x]));
  for (const x of news ?? []) known.set(key2(x), x);
  for (const k of gone ?? []) known.delete(k);
  return [...known.values()];
}
function apply(c, d) {
  return {
    ...c,
    at: d.at,
    verdict: d.verdict ?? c.verdict,
    counts: d.counts ?? c.counts,
    sources: d.sources ?? c.sources,
    virtualClusters: d.virtualClusters ?? c.virtualClusters,
    services: d.services ?? c.services,
    events: d.events ?? c.events,
    alerts: d.alerts ?? c.alerts,
    machines: merge(c.machines, d.machines, d.goneMachines, (m) => m.name),
    jobs: merge(c.jobs, d.jobs, d.goneJobs, (j) => j.uid)
  };
}
function useCluster(...parts) {
  const out = useMemo2(() => ({ cluster: signal(null), error: signal(null) }), []);
  useEffect2(() => {
    const stop2 = new AbortController();
    watchStatus(
      parts,
      stop2.signal,
      (c) => out.cluster.value = c,
      (d) => out.cluster.value && (out.cluster.value = apply(out.cluster.value, d))
    ).catch((e) => {
      if (!stop2.signal.aborted) out.error.value = failure(e);
    });
    return () => {
      stop2.abort();
      lost.value = null;
    };
  }, []);
  return out;
}
function source(c, name) {
  return c.sources?.find((s) => s.name === name);
}
function broken(g) {
  return g.health === "sick" || g.health === "missing";
}
function down(m) {
  return m.state !== "Ready" || !!m.cordoned;
}
function troubled(m) {
  return m.state !== "Ready" || !!m.pressure?.length || (m.gpus ?? []).some(broken);
}
var names = new Intl.Collator("en", { numeric: true });
function byName(a, b) {
  return names.compare(a.name, b.name);
}

// pkg/portal/web/src/map.tsx
import { useSignal as useSignal2 } from "./library.js";
import { useEffect as useEffect3, useMemo as useMemo3, useRef as useRef2 } from "./library.js";
import { jsx as jsx2, jsxs as jsxs2 } from "./library.js";
var ways = ["use", "owner", "vc", "health"];
var steps = [0, 5, 25, 50, 75, 90];
var categories = 10;
function shade(g, m, by, groups) {
  if (by === "health") {
    if (broken(g)) return "bad";
    if (g.health === "ignored") return "ignored";
    return g.health === "healthy" ? down(m) ? "down" : "good" : "unknown";
  }
  if (broken(g)) return "bad";
  const o = g.owner;
  if (!o) return down(m) ? "down" : "free";
  switch (by) {
    case "use":
      return g.use ? "use-" + steps.findLastIndex((s) => g.use.utilisation >= s) : "held";
    case "owner":
      if (o.user && o.user === me.value?.name) return "mine";
      return o.user ? category(groups.indexOf(o.user)) : "held";
    case "vc":
      return o.virtualCluster ? category(groups.indexOf(o.virtualCluster)) : "held";
  }
}
function category(i) {
  return i < categories ? "cat-" + i : "other";
}
function holders(machines2, by) {
  if (by !== "owner" && by !== "vc") return [];
  const n = /* @__PURE__ */ new Map();
  for (const m of machines2)
    for (const g of m.gpus ?? []) {
      const name = by === "vc" ? g.owner?.virtualCluster : g.owner?.user;
      if (name && !(by === "owner" && name === me.value?.name)) n.set(name, (n.get(name) ?? 0) + 1);
    }
  const most3 = [...n].sort((a, b) => b[1] - a[1] || byName({ name: a[0] }, { name: b[0] }));
  return most3.map(([name]) => name);
}
function explain(m, g) {
  const parts = [`${m.name} / GPU ${g.index}`];
  if (g.model) parts.push(g.model);
  if (g.health !== "healthy") parts.push(maybe("gpu." + g.health, g.health) + (g.reason ? ": " + g.reason : ""));
  const o = g.owner;
  if (!o) parts.push(down(m) ? t("mapDown") : t("mapFree"));
  else if (o.job) parts.push(o.job + (o.task ? " " + o.task : ""));
  else parts.push(o.pod ? o.pod : t("mapSomeone"));
  if (o?.virtualCluster) parts.push(o.virtualCluster + (o.opportunistic ? " (" + t("mapOpportunistic") + ")" : ""));
  if (g.use) {
    parts.push(t("mapUse", { n: Math.round(g.use.utilisation) }));
    if (g.memory) parts.push(t("mapMemory", { used: Math.round(g.use.memoryUsed / 102.4) / 10, of: Math.round(g.memory / 1024) }));
    if (g.use.temperature) parts.push(Math.round(g.use.temperature) + " °C");
    if (g.use.power) parts.push(Math.round(g.use.power) + " W");
  }
  return parts.join(" · ");
}
var sizes = [44, 38, 32, 28, 24, 20, 17, 14, 12, 10, 8, 7, 6, 5];
var named = 10;
function place2(machines2, width2, height2, largest) {
  const most3 = Math.max(1, ...machines2.map((m) => m.gpus?.length ?? 0));
  const columns5 = Math.min(most3, 8);
  const rows = Math.ceil(most3 / columns5);
  const longest = Math.max(0, ...machines2.map((m) => m.name.length));
  let out;
  for (const cell of sizes) {
    if (cell > largest) continue;
    const gap = cell >= 24 ? 4 : cell >= 12 ? 3 : cell >= 7 ? 2 : 1;
    const font = cell >= 28 ? 14 : cell >= 14 ? 11 : 9;
    const label = cell >= named ? font + 5 : 0;
    const margin = cell >= 12 ? cell : 9;
    const blockWidth = Math.max(columns5 * (cell + gap) - gap, label ? Math.min(longest, 16) * font * 0.55 : 0) + margin;
    const blockHeight = label + rows * (cell + gap) - gap + margin;
    const perRow = Math.max(1, Math.floor((width2 + margin) / blockWidth));
    const full = Math.max(1, Math.ceil(machines2.length / perRow)) * blockHeight - margin;
    out = { cell, gap, columns: columns5, label, font, width: width2, height: full + 1, blockWidth, blockHeight, perRow, blocks: [] };
    if (full <= height2 && columns5 * (cell + gap) <= width2) break;
  }
  const l = out;
  l.blocks = machines2.map((m, i) => ({ m, x: i % l.perRow * l.blockWidth, y: Math.floor(i / l.perRow) * l.blockHeight }));
  return l;
}
function palette(at) {
  const style = getComputedStyle(at);
  const known = /* @__PURE__ */ new Map();
  return (key2) => {
    let colour = known.get(key2);
    if (colour === void 0) known.set(key2, colour = style.getPropertyValue("--map-" + key2).trim() || "#888");
    return colour;
  };
}
function draw(canvas, l, by, groups) {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.round(l.width * ratio), Math.round(l.height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const c = canvas.getContext("2d");
  const colour = palette(canvas);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, l.width, l.height);
  c.font = `${l.font}px ${getComputedStyle(canvas).fontFamily}`;
  c.textBaseline = "top";
  const radius = l.cell >= 28 ? 5 : l.cell >= 12 ? 3 : l.cell >= 9 ? 2 : 0;
  const shapes = /* @__PURE__ */ new Map();
  const shape = (key2) => {
    let path = shapes.get(key2);
    if (!path) shapes.set(key2, path = new Path2D());
    return path;
  };
  for (const b of l.blocks) {
    if (l.label) {
      c.fillStyle = colour(down(b.m) ? "name-down" : "name");
      c.fillText(b.m.name, b.x, b.y, l.blockWidth - 8);
    }
    const gpus = b.m.gpus ?? [];
    if (gpus.length === 0) {
      c.strokeStyle = colour(down(b.m) ? "down" : "line");
      c.strokeRect(b.x + 0.5, b.y + l.label + 0.5, l.columns * (l.cell + l.gap) - l.gap - 1, l.cell - 1);
    }
    gpus.forEach((g, i) => {
      const [x, y] = corner(l, b, i);
      const path = shape(shade(g, b.m, by, groups));
      if (radius) path.roundRect(x, y, l.cell, l.cell, radius);
      else path.rect(x, y, l.cell, l.cell);
      if (broken(g)) cross(shape("cross"), x, y, l.cell);
    });
  }
  for (const [key2, path] of shapes) {
    if (key2 === "cross") continue;
    c.fillStyle = colour(key2);
    c.fill(path);
    if (key2 !== "free") continue;
    c.strokeStyle = colour("line");
    c.stroke(path);
  }
  const crosses = shapes.get("cross");
  if (!crosses) return;
  c.strokeStyle = colour("cross");
  c.stroke(crosses);
}
function corner(l, b, i) {
  return [b.x + i % l.columns * (l.cell + l.gap), b.y + l.label + Math.floor(i / l.columns) * (l.cell + l.gap)];
}
function cross(path, x, y, size3) {
  const m = size3 * 0.28;
  path.moveTo(x + m, y + m);
  path.lineTo(x + size3 - m, y + size3 - m);
  path.moveTo(x + size3 - m, y + m);
  path.lineTo(x + m, y + size3 - m);
}
function hit(l, x, y) {
  const column = Math.floor(x / l.blockWidth);
  const b = column < l.perRow ? l.blocks[Math.floor(y / l.blockHeight) * l.perRow + column] : void 0;
  if (!b) return null;
  const [i, k] = [Math.floor((x - b.x) / (l.cell + l.gap)), Math.floor((y - b.y - l.label) / (l.cell + l.gap))];
  if (i >= l.columns) return null;
  const gpu = Math.max(0, k) * l.columns + i;
  return gpu < Math.max(1, b.m.gpus?.length ?? 0) ? { machine: b.m.name, gpu } : null;
}
function GPUMap({ machines: machines2, by, fit, largest = 20, open }) {
  const canvas = useRef2(null);
  const frame = useRef2(null);
  const width2 = useSignal2(0);
  const at = useSignal2(null);
  const tip = useSignal2(null);
  const theme2 = useSignal2(0);
  useEffect3(() => {
    const box = frame.current;
    const sizes2 = new ResizeObserver(() => width2.value = box.clientWidth);
    sizes2.observe(box);
    const redraw = () => theme2.value++;
    const themes = new MutationObserver(redraw);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", redraw);
    return () => {
      sizes2.disconnect();
      themes.disconnect();
      system.removeEventListener("change", redraw);
    };
  }, []);
  const sorted = useMemo3(() => [...machines2].sort(byName), [machines2]);
  const groups = useMemo3(() => holders(sorted, by), [sorted, by]);
  const l = useMemo3(() => place2(sorted, width2.value, fit, largest), [sorted, width2.value, fit, largest]);
  useEffect3(() => {
    if (!width2.value) return;
    const id = requestAnimationFrame(() => canvas.current && draw(canvas.current, l, by, groups));
    return () => cancelAnimationFrame(id);
  }, [l, by, groups, theme2.value]);
  const block = at.value ? l.blocks.find((b) => b.m.name === at.value.machine) : void 0;
  const m = block?.m;
  const g = m?.gpus?.[at.value.gpu];
  const words2 = m ? g ? explain(m, g) : `${m.name} · ${t("noGPUs")}` : "";
  const [left, top] = block ? corner(l, block, at.value.gpu) : [0, 0];
  const move = (e) => {
    const box = canvas.current.getBoundingClientRect();
    const [x, y] = [e.clientX - box.left, e.clientY - box.top];
    const s = hit(l, x, y);
    if (s?.machine !== at.value?.machine || s?.gpu !== at.value?.gpu) at.value = s;
    tip.value = s ? { x: Math.min(x, l.width - 180), y } : null;
  };
  const keys2 = (e) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [l.perRow, 0], ArrowUp: [-l.perRow, 0] };
    const by2 = step[e.key];
    if (e.key === "Enter" && at.value) {
      open?.(at.value.machine);
    } else if (by2 && sorted.length) {
      let i = Math.max(0, sorted.findIndex((x) => x.name === at.value?.machine));
      let k = at.value ? at.value.gpu + by2[1] : 0;
      const count = (j) => Math.max(1, sorted[j].gpus?.length ?? 0);
      if (k < 0 && i > 0) k = count(--i) - 1;
      else if (k >= count(i) && i < sorted.length - 1) [i, k] = [i + 1, 0];
      const to = i + by2[0];
      if (to >= 0 && to < sorted.length) i = to;
      at.value = { machine: sorted[i].name, gpu: Math.max(0, Math.min(k, count(i) - 1)) };
      tip.value = null;
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return /* @__PURE__ */ jsxs2("div", { class: "map", ref: frame, children: [
    /* @__PURE__ */ jsx2(
      "canvas",
      {
        ref: canvas,
        tabIndex: 0,
        role: "img",
        "aria-label": t("mapLabel", { n: sorted.length }),
        style: { width: l.width + "px", height: l.height + "px" },
        onPointerMove: move,
        onPointerLeave: () => {
          at.value = null;
          tip.value = null;
        },
        onClick: () => at.value && open?.(at.value.machine),
        onKeyDown: keys2
      }
    ),
    block ? /* @__PURE__ */ jsx2("i", { class: "map-at", style: { left: left - 3 + "px", top: top - 3 + "px", width: l.cell + 6 + "px", height: l.cell + 6 + "px" } }) : null,
    tip.value && words2 ? /* @__PURE__ */ jsx2("div", { class: "tip", style: { left: tip.value.x + 14 + "px", top: tip.value.y + 16 + "px" }, children: words2.split(" · ").map((line) => /* @__PURE__ */ jsx2("div", { children: line }, line)) }) : null,
    /* @__PURE__ */ jsx2("p", { class: "map-words small", "aria-live": "polite", children: tip.value ? "" : words2 })
  ] });
}
function Legend({ machines: machines2, by }) {
  const groups = holders(machines2, by);
  const n = /* @__PURE__ */ new Map();
  for (const m of machines2) for (const g of m.gpus ?? []) {
    const key2 = shade(g, m, by, groups);
    n.set(key2, (n.get(key2) ?? 0) + 1);
  }
  const fixed = [
    ["free", t("mapFree")],
    ["mine", me.value?.name ?? ""],
    ["good", t("gpu.healthy")],
    ["other", t("mapOthers", { n: groups.length - categories })],
    ["held", by === "use" ? t("mapNoUse") : t("mapSomeone")],
    ["unknown", t("gpu.unknown")],
    ["ignored", t("gpu.ignored")],
    ["down", t("mapDown")],
    ["bad", t("mapBroken")]
  ];
  const named2 = groups.slice(0, categories).map((name, i) => ["cat-" + i, name]);
  const used = steps.map((s, i) => ["use-" + i, i === steps.length - 1 ? `≥ ${s} %` : i === 0 ? `< ${steps[1]} %` : `${s}–${steps[i + 1]} %`]);
  const all2 = [...fixed.slice(0, 3), ...by === "use" ? used : named2, ...fixed.slice(3)];
  return /* @__PURE__ */ jsx2("ul", { class: "legend small", children: all2.map(
    ([key2, text2]) => n.get(key2) ? /* @__PURE__ */ jsxs2("li", { children: [
      /* @__PURE__ */ jsx2("i", { class: "swatch m-" + key2 }),
      " ",
      text2,
      " ",
      /* @__PURE__ */ jsx2("span", { class: "faint", children: n.get(key2) })
    ] }, key2) : null
  ) });
}

// pkg/portal/web/src/home.tsx
import { Fragment as Fragment2, jsx as jsx3, jsxs as jsxs3 } from "./library.js";
var refresh = 15e3;
function VC({ v }) {
  const onlyCPU = v.guaranteed === 0 && v.cpuCells !== void 0;
  const { guaranteed, used, free, bad, opportunistic } = onlyCPU ? v.cpuCells : v;
  const largest = Math.max(0, ...(v.freeByLevel ?? []).filter((l) => l.count > 0).map((l) => l.gpus));
  return /* @__PURE__ */ jsxs3("article", { class: "vc", children: [
    /* @__PURE__ */ jsxs3("header", { children: [
      /* @__PURE__ */ jsx3("a", { href: address(["jobs"], { vc: v.name, state: "active" }), children: v.name }),
      /* @__PURE__ */ jsx3("span", { class: v.waitingGangs ? "waits" : "faint", children: v.waitingGangs ? t("waitingJobs", { n: v.waitingGangs }) : t("nobodyWaits") })
    ] }),
    /* @__PURE__ */ jsxs3("p", { class: "amount", children: [
      /* @__PURE__ */ jsx3("b", { children: t("free", { n: free }) }),
      " ",
      /* @__PURE__ */ jsx3("span", { class: "faint", children: t(onlyCPU ? "ofCPU" : "ofTotal", { n: guaranteed }) })
    ] }),
    /* @__PURE__ */ jsx3(
      Bar,
      {
        total: guaranteed,
        label: t("usage", { used, free, bad }),
        parts: [
          { n: used, class: "used" },
          { n: Math.max(0, guaranteed - used - free - bad), class: "lent" },
          { n: bad, class: "bad" }
        ]
      }
    ),
    /* @__PURE__ */ jsxs3("p", { class: "faint small", children: [
      onlyCPU ? null : largest > 0 ? t("largest", { n: largest }) : v.freeByLevel ? t("largestNone") : null,
      bad > 0 ? /* @__PURE__ */ jsxs3("span", { class: "broken", children: [
        " ",
        t("broken", { n: bad })
      ] }) : null,
      opportunistic > 0 ? /* @__PURE__ */ jsxs3("span", { children: [
        " ",
        t("opportunistic", { n: opportunistic })
      ] }) : null
    ] })
  ] });
}
function Map2({ machines: machines2 }) {
  const those = machines2.filter((m) => m.gpus?.length);
  if (those.length === 0) return null;
  return /* @__PURE__ */ jsxs3(Fragment2, { children: [
    /* @__PURE__ */ jsxs3("header", { class: "part", children: [
      /* @__PURE__ */ jsx3("h2", { children: t("gpuMap") }),
      /* @__PURE__ */ jsx3("a", { href: address(["machines"]), children: t("machines") })
    ] }),
    /* @__PURE__ */ jsx3(GPUMap, { machines: those, by: "owner", fit: 260, largest: 14, open: (name) => go(address(["machines"], { machine: name })) }),
    /* @__PURE__ */ jsx3(Legend, { machines: those, by: "owner" })
  ] });
}
function VCs() {
  const { value: all2, error } = useRead("", (signal5) => call("GET /api/v3/virtual-clusters", { signal: signal5 }), refresh);
  const items = all2.value?.items ?? [];
  return /* @__PURE__ */ jsxs3(Fragment2, { children: [
    error.value ? /* @__PURE__ */ jsx3(Problem, { of: error.value }) : null,
    all2.value?.note ? /* @__PURE__ */ jsx3("p", { class: "note", children: all2.value.note }) : null,
    all2.value?.problem ? /* @__PURE__ */ jsx3("p", { class: "note", children: all2.value.problem }) : null,
    !all2.value && !error.value ? /* @__PURE__ */ jsx3(Loading, {}) : null,
    all2.value && items.length === 0 ? /* @__PURE__ */ jsx3("p", { class: "empty", children: t("noVCs") }) : null,
    /* @__PURE__ */ jsx3("div", { class: "vcs", children: items.map((v) => /* @__PURE__ */ jsx3(VC, { v }, v.name)) })
  ] });
}
var size2 = 15;
function Home() {
  const user = me.value.name;
  const jobs = useMemo4(() => list({ user }, size2), [user]);
  const { cluster } = useCluster("machines");
  useEffect4(() => {
    document.title = "paictl";
    return () => {
      jobs.end();
      lost.value = null;
    };
  }, [jobs]);
  const rows = jobs.rows.value?.slice(0, size2);
  return /* @__PURE__ */ jsxs3("section", { class: "page", children: [
    /* @__PURE__ */ jsxs3("header", { class: "top", children: [
      /* @__PURE__ */ jsx3("h1", { children: t("hello", { name: me.value.displayName || user }) }),
      /* @__PURE__ */ jsx3("span", { class: "grow" }),
      /* @__PURE__ */ jsx3(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl job list") },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/jobs", { query: { user } })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      ),
      /* @__PURE__ */ jsxs3("a", { class: "button primary", href: address(["submit"]), children: [
        /* @__PURE__ */ jsx3(Icon, { name: "plus" }),
        " ",
        t("newJob")
      ] })
    ] }),
    /* @__PURE__ */ jsxs3("div", { class: "two", children: [
      /* @__PURE__ */ jsxs3("section", { children: [
        /* @__PURE__ */ jsxs3("header", { class: "part", children: [
          /* @__PURE__ */ jsx3("h2", { children: t("myJobs") }),
          /* @__PURE__ */ jsx3("a", { href: address(["jobs"], { user }), children: t("allMine") })
        ] }),
        jobs.error.value ? /* @__PURE__ */ jsx3(Problem, { of: jobs.error.value }) : null,
        !rows ? jobs.error.value ? null : /* @__PURE__ */ jsx3(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsxs3("div", { class: "empty", children: [
          /* @__PURE__ */ jsx3("p", { children: t("noJobs") }),
          /* @__PURE__ */ jsx3("p", { class: "faint", children: t("noJobsHint") })
        ] }) : /* @__PURE__ */ jsxs3("table", { class: "rows jobs", children: [
          /* @__PURE__ */ jsx3(Head, {}),
          /* @__PURE__ */ jsx3("tbody", { children: rows.map((r) => /* @__PURE__ */ jsx3(Row, { r }, r.uid)) })
        ] })
      ] }),
      /* @__PURE__ */ jsxs3("section", { children: [
        /* @__PURE__ */ jsx3("header", { class: "part", children: /* @__PURE__ */ jsx3("h2", { children: t("vcs") }) }),
        /* @__PURE__ */ jsx3(VCs, {}),
        /* @__PURE__ */ jsx3(Map2, { machines: cluster.value?.machines ?? [] })
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/job.tsx
import { useSignal as useSignal8 } from "./library.js";
import { useEffect as useEffect9 } from "./library.js";

// pkg/portal/web/src/later.tsx
import { signal as signal2, useSignal as useSignal3 } from "./library.js";
import { useEffect as useEffect5 } from "./library.js";
import { jsx as jsx4 } from "./library.js";
function later(file) {
  const loaded = signal2(null);
  return (props) => {
    const error = useSignal3(null);
    const load2 = () => {
      error.value = null;
      file().then(
        (Page2) => loaded.value = { Page: Page2 },
        (e) => error.value = e
      );
    };
    useEffect5(() => {
      if (!loaded.value) load2();
    }, []);
    if (error.value) return /* @__PURE__ */ jsx4(Problem, { of: error.value, again: load2 });
    return loaded.value ? /* @__PURE__ */ jsx4(loaded.value.Page, { ...props }) : /* @__PURE__ */ jsx4(Loading, {});
  };
}

// pkg/portal/web/src/jobedit.tsx
import { useSignal as useSignal4 } from "./library.js";
import { useEffect as useEffect6, useRef as useRef3 } from "./library.js";
import { jsx as jsx5, jsxs as jsxs4 } from "./library.js";
function Tags({ d, change, changed: changed2 }) {
  const adding = useSignal4(false);
  const busy = useSignal4(false);
  const field = useRef3(null);
  useEffect6(() => field.current?.focus(), [adding.value]);
  const path = { user: d.user, name: d.name };
  const act = async (route, tag) => {
    busy.value = true;
    try {
      await call(route, { path, body: { tags: [tag] } });
      adding.value = false;
      changed2();
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  return /* @__PURE__ */ jsxs4("span", { class: "tags", children: [
    (d.tags ?? []).map((tag) => /* @__PURE__ */ jsxs4("span", { class: "tag", children: [
      tag,
      change ? /* @__PURE__ */ jsx5("button", { type: "button", class: "bare", disabled: busy.value, "aria-label": t("removeTag", { tag }), title: t("removeTag", { tag }), onClick: () => void act("DELETE /api/v3/jobs/{user}/{name}/tags", tag), children: /* @__PURE__ */ jsx5(Icon, { name: "close" }) }) : null
    ] }, tag)),
    !change ? null : adding.value ? /* @__PURE__ */ jsx5(
      "form",
      {
        onSubmit: (e) => {
          e.preventDefault();
          const tag = String(new FormData(e.currentTarget).get("tag") ?? "").trim();
          if (tag) void act("PUT /api/v3/jobs/{user}/{name}/tags", tag);
        },
        children: /* @__PURE__ */ jsx5("input", { ref: field, name: "tag", disabled: busy.value, "aria-label": t("addTag"), placeholder: t("addTag"), onKeyDown: (e) => e.key === "Escape" && (adding.value = false) })
      }
    ) : /* @__PURE__ */ jsx5("button", { type: "button", class: "bare", "aria-label": t("addTag"), title: t("addTag"), onClick: () => adding.value = true, children: /* @__PURE__ */ jsx5(Icon, { name: "plus" }) })
  ] });
}
function Scale({ d, end }) {
  const dialog = useRef3(null);
  const roles = d.roles ?? [];
  const role = useSignal4(roles[0]?.name ?? "");
  const { busy, error, act } = useAct();
  useEffect6(() => dialog.current.showModal(), []);
  const now2 = roles.find((r) => r.name === role.value)?.tasks ?? 1;
  const send3 = (tasks) => act(async () => {
    const out = await call("POST /api/v3/jobs/{user}/{name}/scale", { path: { user: d.user, name: d.name }, body: { role: role.value, tasks } });
    toast(t("scaled", { role: role.value, before: out.before, tasks }));
    end();
  });
  return /* @__PURE__ */ jsx5("dialog", { ref: dialog, onClose: end, onClick: (e) => e.target === dialog.current && end(), "aria-labelledby": "scale", children: /* @__PURE__ */ jsxs4(
    "form",
    {
      class: "dialog fields",
      onSubmit: (e) => {
        e.preventDefault();
        void send3(Number(new FormData(e.currentTarget).get("tasks")));
      },
      children: [
        /* @__PURE__ */ jsx5("h2", { id: "scale", children: t("scale") }),
        /* @__PURE__ */ jsx5("p", { children: t("scaleMore") }),
        roles.length > 1 ? /* @__PURE__ */ jsxs4("label", { children: [
          t("role"),
          /* @__PURE__ */ jsx5("select", { value: role.value, onChange: (e) => role.value = e.currentTarget.value, children: roles.map((r) => /* @__PURE__ */ jsx5("option", { value: r.name, children: r.name }, r.name)) })
        ] }) : null,
        /* @__PURE__ */ jsxs4("label", { children: [
          t("tasks"),
          /* @__PURE__ */ jsx5("input", { name: "tasks", type: "number", min: "1", max: "10000", required: true, defaultValue: String(now2) }, role.value)
        ] }),
        error.value ? /* @__PURE__ */ jsx5(Problem, { of: error.value }) : null,
        /* @__PURE__ */ jsxs4("div", { class: "buttons", children: [
          /* @__PURE__ */ jsx5("button", { type: "button", onClick: end, children: t("cancel") }),
          /* @__PURE__ */ jsx5("button", { type: "submit", class: "primary", disabled: busy.value, children: t("scale") })
        ] })
      ]
    }
  ) });
}

// pkg/portal/web/src/metrics.tsx
import { useSignal as useSignal5 } from "./library.js";
import { useEffect as useEffect7, useRef as useRef4 } from "./library.js";
import { Fragment as Fragment3, jsx as jsx6, jsxs as jsxs5 } from "./library.js";
var spans = ["1h", "6h", "1d", "7d", "all"];
var every = 3e4;
function Metrics(s) {
  const since = s.span === "all" ? s.all : s.span;
  const query = { since: since || void 0, task: s.task || void 0 };
  const { value, error, busy, again } = useRead(JSON.stringify([s.id, query]), (signal5) => s.read(query, signal5), s.live ? every : 0);
  const r = value.value;
  const command2 = s.command + (query.task ? ` --task ${quoted(query.task)}` : "") + (since ? ` --since ${since}` : "");
  return /* @__PURE__ */ jsxs5("section", { class: "metrics", "aria-busy": busy.value, children: [
    /* @__PURE__ */ jsxs5("div", { class: "filters", children: [
      /* @__PURE__ */ jsx6("div", { class: "segments", role: "group", "aria-label": t("timeSpan"), children: spans.map((x) => /* @__PURE__ */ jsx6("button", { type: "button", "aria-pressed": x === s.span, onClick: () => s.choose(x), children: t(x === "all" && s.all ? "span.30d" : `span.${x}`) }, x)) }),
      s.children,
      /* @__PURE__ */ jsx6(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(s.curl(query)) }
          ]
        }
      )
    ] }),
    error.value ? /* @__PURE__ */ jsx6(Problem, { of: error.value, again }) : null,
    !r && !error.value ? /* @__PURE__ */ jsx6(Loading, {}) : null,
    r?.note ? /* @__PURE__ */ jsx6("p", { class: "empty", children: r.note }) : null,
    r?.findings?.length ? /* @__PURE__ */ jsx6("ul", { class: "metric-findings", "aria-label": t("findings"), children: r.findings.map((f) => /* @__PURE__ */ jsx6("li", { children: f.text }, f.kind)) }) : null,
    r?.charts?.length ? /* @__PURE__ */ jsxs5(Fragment3, { children: [
      /* @__PURE__ */ jsx6("div", { class: "plots", children: r.charts.map((c) => /* @__PURE__ */ jsx6(Plot, { c, r, height: s.height ?? 150 }, c.name)) }),
      /* @__PURE__ */ jsxs5("details", { children: [
        /* @__PURE__ */ jsx6("summary", { children: t("asTable") }),
        /* @__PURE__ */ jsx6(Table, { r })
      ] })
    ] }) : null
  ] });
}
function Opened({ label, children }) {
  const open = useSignal5(false);
  return /* @__PURE__ */ jsxs5("details", { onToggle: (e) => e.currentTarget.open && (open.value = true), children: [
    /* @__PURE__ */ jsx6("summary", { children: label }),
    open.value ? children() : null
  ] });
}
function nameOf(c, s) {
  const name = s.task || s.gpu ? s.name : maybe("series." + s.name, s.name || titleOf(c));
  return c.folded ? t("foldedOf", { name, n: c.folded > 0 ? c.folded : t("manyThings") }) : name;
}
function titleOf(c) {
  return maybe("metric." + c.name, c.title);
}
var unit = { watts: " W", celsius: " °C" };
function valueOf(v, of) {
  const format = (n, digits) => new Intl.NumberFormat(language.value, { maximumFractionDigits: digits }).format(n);
  if (of === "percent") return format(v, 0) + " %";
  if (of === "seconds") return v < 3600 ? format(v / 60, 0) + " min" : format(v / 3600, 1) + " h";
  if (of === "bytes" || of === "bytes/s") {
    const names2 = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let i = 0;
    while (v >= 1e3 && i < names2.length - 1) {
      v /= 1024;
      i++;
    }
    return `${format(v, v < 10 ? 1 : 0)} ${names2[i]}${of === "bytes" ? "" : "/s"}`;
  }
  return format(v, 2) + (unit[of ?? ""] ?? "");
}
function timeOf(seconds, whole) {
  const style = whole > 2 * 86400 ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(language.value, style).format(seconds * 1e3);
}
function sums(values) {
  const known = (values ?? []).filter((v) => v !== null);
  if (known.length === 0) return null;
  return { low: Math.min(...known), mean: known.reduce((a, b) => a + b, 0) / known.length, high: Math.max(...known) };
}
function limitOf(c) {
  const limit = c.series?.[0]?.limit;
  const high = Math.max(...(c.series ?? []).map((s) => sums(s.values)?.high ?? 0));
  return limit !== void 0 && (c.series ?? []).every((s) => s.limit === limit) && high > limit / 10 ? limit : void 0;
}
function Plot({ c, r, height: height2 }) {
  const box = useRef4(null);
  const chart = useRef4(null);
  const at = useSignal5(null);
  const failed = useSignal5(false);
  const series = c.series ?? [];
  const figures = { since: Date.parse(r.since) / 1e3, step: r.step, lines: series.map((s) => s.values ?? []), limit: limitOf(c), top: c.unit === "percent" ? 100 : void 0 };
  const latest = useRef4(figures);
  latest.current = figures;
  const title = titleOf(c);
  useEffect7(() => {
    let gone = false;
    load("chart").then(
      (m) => {
        if (gone) return;
        chart.current = m.draw(box.current, latest.current, {
          label: t("chartOver", { title }),
          height: height2,
          binary: c.unit === "bytes" || c.unit === "bytes/s",
          value: (v) => valueOf(v, c.unit),
          time: timeOf,
          pointed: (i) => at.value = i
        });
      },
      () => failed.value = true
    );
    return () => {
      gone = true;
      chart.current?.end();
      chart.current = null;
    };
  }, [language.value]);
  useEffect7(() => chart.current?.set(figures), [r]);
  const place3 = at.value;
  return /* @__PURE__ */ jsxs5("figure", { class: "plot", children: [
    /* @__PURE__ */ jsxs5("figcaption", { children: [
      /* @__PURE__ */ jsx6("h3", { children: title }),
      place3 !== null && r.charts ? /* @__PURE__ */ jsx6("span", { class: "faint", children: new Date(Date.parse(r.since) + place3 * r.step * 1e3).toLocaleString(language.value, { dateStyle: "short", timeStyle: "short" }) }) : null
    ] }),
    failed.value ? /* @__PURE__ */ jsx6("p", { class: "note", children: t("chartFailed") }) : /* @__PURE__ */ jsx6("div", { ref: box }),
    /* @__PURE__ */ jsxs5("ul", { class: "lines", children: [
      series.map((s, i) => {
        const v = place3 === null ? sums(s.values)?.mean : s.values?.[place3];
        return /* @__PURE__ */ jsxs5("li", { children: [
          /* @__PURE__ */ jsx6("i", { class: `line-${i % 8}` }),
          " ",
          nameOf(c, s),
          " ",
          /* @__PURE__ */ jsx6("b", { children: v === void 0 || v === null ? "–" : valueOf(v, c.unit) })
        ] }, s.name);
      }),
      figures.limit !== void 0 ? /* @__PURE__ */ jsxs5("li", { children: [
        /* @__PURE__ */ jsx6("i", { class: "line-limit" }),
        " ",
        t("limit"),
        " ",
        /* @__PURE__ */ jsx6("b", { children: valueOf(figures.limit, c.unit) })
      ] }) : null
    ] })
  ] });
}
function Table({ r }) {
  return /* @__PURE__ */ jsx6("div", { class: "scrolls", tabIndex: 0, role: "region", "aria-label": t("asTable"), children: /* @__PURE__ */ jsxs5("table", { class: "rows", children: [
    /* @__PURE__ */ jsx6("thead", { children: /* @__PURE__ */ jsxs5("tr", { children: [
      /* @__PURE__ */ jsx6("th", { children: t("metric") }),
      /* @__PURE__ */ jsx6("th", { children: t("metricOf") }),
      /* @__PURE__ */ jsx6("th", { class: "num", children: t("series.lowest") }),
      /* @__PURE__ */ jsx6("th", { class: "num", children: t("series.mean") }),
      /* @__PURE__ */ jsx6("th", { class: "num", children: t("series.highest") }),
      /* @__PURE__ */ jsx6("th", { class: "num", children: t("limit") })
    ] }) }),
    /* @__PURE__ */ jsx6("tbody", { children: (r.charts ?? []).flatMap(
      (c) => (c.series ?? []).map((s) => {
        const of = sums(s.values);
        return of ? /* @__PURE__ */ jsxs5("tr", { children: [
          /* @__PURE__ */ jsx6("td", { children: titleOf(c) }),
          /* @__PURE__ */ jsx6("td", { children: nameOf(c, s) }),
          /* @__PURE__ */ jsx6("td", { class: "num", children: valueOf(of.low, c.unit) }),
          /* @__PURE__ */ jsx6("td", { class: "num", children: valueOf(of.mean, c.unit) }),
          /* @__PURE__ */ jsx6("td", { class: "num", children: valueOf(of.high, c.unit) }),
          /* @__PURE__ */ jsx6("td", { class: "num", children: s.limit === void 0 ? "" : valueOf(s.limit, c.unit) })
        ] }, c.name + s.name) : null;
      })
    ) })
  ] }) });
}

// pkg/portal/web/src/files.tsx
import { useSignal as useSignal6 } from "./library.js";
import { useRef as useRef5 } from "./library.js";
import { jsx as jsx7, jsxs as jsxs6 } from "./library.js";
var listRoute = "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/files";
var readRoute = "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/files/content";
var writeRoute = "PUT /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/files/content";
function sized(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}
function join(folder, name) {
  return folder.endsWith("/") ? folder + name : `${folder}/${name}`;
}
function way(path) {
  const out = [["/", "/"]];
  let at = "";
  for (const name of path.split("/")) if (name) out.push([name, at += "/" + name]);
  return out;
}
function send2(to, file, stop2, sent) {
  return new Promise((done2, fail) => {
    const r = new XMLHttpRequest();
    r.open("PUT", to);
    r.setRequestHeader("Content-Type", "application/octet-stream");
    r.upload.onprogress = (e) => e.total && sent(e.loaded / e.total);
    r.onerror = () => fail(new Failure(0, "NoAnswer", t("noAnswer")));
    r.onabort = () => fail(new Failure(0, "Stopped", t("files.stopped")));
    r.onload = () => {
      if (r.status === 401) toSignIn();
      if (r.status < 300) return done2();
      let e = {};
      try {
        e = JSON.parse(r.responseText);
      } catch {
      }
      fail(new Failure(r.status, e.code ?? "UnknownError", e.message ?? t("status", { status: r.status }), e.remedy, e.request));
    };
    stop2.addEventListener("abort", () => r.abort());
    r.send(file);
  });
}
function ordered(all2) {
  const last = (e) => e.kind === "folder" ? 0 : 1;
  return [...all2].sort((a, b) => last(a) - last(b) || a.name.localeCompare(b.name, void 0, { numeric: true }));
}
function Files({ d, user, name, full }) {
  const running = (d.taskList ?? []).filter((x) => x.phase === "running").map((x) => `${x.role}[${x.index}]`);
  const q = place.value.query;
  const task = q.get("task") || running[0] || "";
  const m = /^(.+)\[(\d+)\]$/.exec(task);
  const asked = q.get("path") ?? "";
  const at = { user, name, role: m?.[1] ?? "", index: m?.[2] ?? "" };
  const { value, error, busy, again } = useRead(m ? `${d.uid} ${task} ${asked}` : null, (signal5) => call(listRoute, { path: at, query: { path: asked }, signal: signal5 }));
  const sending = useSignal6(null);
  const stop2 = useRef5(null);
  const { act, error: failed } = useAct();
  const over = useSignal6(false);
  const input = useRef5(null);
  if (!m) return /* @__PURE__ */ jsx7("p", { class: "empty", children: t("shell.none") });
  const list2 = value.value;
  const folder = list2 ? list2.kind === "folder" ? list2.path : list2.path.slice(0, list2.path.lastIndexOf("/")) || "/" : asked;
  const entries = list2?.kind === "folder" ? ordered(list2.entries ?? []) : list2 ? [{ name: list2.path.slice(list2.path.lastIndexOf("/") + 1), kind: list2.kind, size: list2.size, modified: list2.modified }] : [];
  const content = (path) => addressOf(readRoute, { path: at, query: { path } });
  const open = (path) => setQuery({ path: path || void 0 });
  const upload2 = (files) => {
    const put = () => void act(async () => {
      for (const f of files) {
        stop2.current = new AbortController();
        sending.value = { name: f.name, part: 0 };
        try {
          await send2(addressOf(writeRoute, { path: at, query: { path: join(folder, f.name) } }), f, stop2.current.signal, (part) => sending.value = { name: f.name, part });
        } finally {
          sending.value = null;
        }
        toast(t("files.sent", { name: f.name }));
      }
    }).then(again);
    const replaced = files.filter((f) => entries.some((e) => e.name === f.name)).map((f) => f.name);
    if (replaced.length === 0) return put();
    ask({ title: t("files.replace"), text: replaced.join(", "), yes: t("replace"), danger: true, act: async () => put() });
  };
  return /* @__PURE__ */ jsxs6(
    "section",
    {
      class: over.value ? "files over" : "files",
      "aria-label": t("files"),
      onDragOver: (e) => {
        e.preventDefault();
        over.value = true;
      },
      onDragLeave: () => over.value = false,
      onDrop: (e) => {
        e.preventDefault();
        over.value = false;
        const all2 = [...e.dataTransfer?.files ?? []];
        if (all2.length && list2) upload2(all2);
      },
      children: [
        /* @__PURE__ */ jsxs6("div", { class: "filters", children: [
          /* @__PURE__ */ jsx7("select", { "aria-label": t("task"), value: task, onChange: (e) => setQuery({ task: e.currentTarget.value, path: void 0 }), children: [.../* @__PURE__ */ new Set([...running, task])].map((x) => /* @__PURE__ */ jsx7("option", { value: x, children: x }, x)) }),
          /* @__PURE__ */ jsx7(
            "form",
            {
              class: "path",
              onSubmit: (e) => {
                e.preventDefault();
                open(new FormData(e.currentTarget).get("path"));
              },
              children: /* @__PURE__ */ jsx7("input", { name: "path", defaultValue: list2?.path ?? asked, placeholder: t("files.path"), "aria-label": t("files.path"), spellcheck: false, autocomplete: "off" }, list2?.path ?? asked)
            }
          ),
          /* @__PURE__ */ jsxs6("button", { type: "button", disabled: !list2 || sending.value !== null, onClick: () => input.current?.click(), children: [
            /* @__PURE__ */ jsx7(Icon, { name: "up" }),
            " ",
            t("files.upload")
          ] }),
          /* @__PURE__ */ jsx7(
            "input",
            {
              ref: input,
              type: "file",
              multiple: true,
              hidden: true,
              "aria-label": t("files.upload"),
              onChange: (e) => {
                const all2 = [...e.currentTarget.files ?? []];
                e.currentTarget.value = "";
                if (all2.length) upload2(all2);
              }
            }
          ),
          list2?.kind === "folder" ? /* @__PURE__ */ jsxs6("a", { class: "button", href: content(list2.path), download: true, title: t("files.wholeMore"), children: [
            /* @__PURE__ */ jsx7(Icon, { name: "down" }),
            " ",
            t("files.whole")
          ] }) : null,
          /* @__PURE__ */ jsx7(
            Menu,
            {
              label: t("more"),
              icon: "more",
              items: [
                { label: t("files.copyOut"), icon: "copy", run: () => void copy(`paictl job cp ${quoted(`${full}:${list2?.path ?? asked}`)} . --task ${quoted(task)}`) },
                { label: t("files.copyIn"), icon: "copy", run: () => void copy(`paictl job cp ./FILE ${quoted(`${full}:${folder}`)} --task ${quoted(task)}`) },
                { label: t("refresh"), icon: "retry", run: again }
              ]
            }
          )
        ] }),
        sending.value ? /* @__PURE__ */ jsxs6("p", { class: "note", role: "status", children: [
          t("files.sending", { name: sending.value.name, percent: Math.round(sending.value.part * 100) }),
          " ",
          /* @__PURE__ */ jsx7("button", { type: "button", onClick: () => stop2.current?.abort(), children: t("stop") })
        ] }) : null,
        failed.value ? /* @__PURE__ */ jsx7(Problem, { of: failed.value }) : null,
        list2 ? /* @__PURE__ */ jsx7("nav", { class: "crumbs path", "aria-label": t("files.path"), children: way(folder).map(([label, path]) => /* @__PURE__ */ jsx7("button", { type: "button", class: "bare", onClick: () => open(path), children: label }, path)) }) : null,
        error.value ? /* @__PURE__ */ jsx7(Problem, { of: error.value, again }) : busy.value && !list2 ? /* @__PURE__ */ jsx7(Loading, {}) : null,
        list2 && !error.value ? entries.length === 0 ? /* @__PURE__ */ jsx7("p", { class: "empty", children: t("files.empty") }) : /* @__PURE__ */ jsxs6("table", { class: "rows", children: [
          /* @__PURE__ */ jsx7("thead", { children: /* @__PURE__ */ jsxs6("tr", { children: [
            /* @__PURE__ */ jsx7("th", { children: t("name") }),
            /* @__PURE__ */ jsx7("th", { class: "num", children: t("files.size") }),
            /* @__PURE__ */ jsx7("th", { class: "c-time", children: t("files.modified") })
          ] }) }),
          /* @__PURE__ */ jsx7("tbody", { children: entries.map((e) => /* @__PURE__ */ jsxs6("tr", { "data-file": e.name, children: [
            /* @__PURE__ */ jsxs6("td", { class: "c-name", children: [
              e.kind === "folder" ? /* @__PURE__ */ jsxs6("button", { type: "button", class: "bare", onClick: () => open(join(folder, e.name)), children: [
                /* @__PURE__ */ jsx7(Icon, { name: "folder" }),
                " ",
                e.name
              ] }) : e.kind === "file" ? /* @__PURE__ */ jsxs6("a", { href: content(join(folder, e.name)), download: e.name, children: [
                /* @__PURE__ */ jsx7(Icon, { name: "file" }),
                " ",
                e.name
              ] }) : /* @__PURE__ */ jsx7("span", { class: "faint", children: e.name }),
              e.link ? /* @__PURE__ */ jsxs6("span", { class: "faint", children: [
                " → ",
                e.link
              ] }) : null
            ] }),
            /* @__PURE__ */ jsx7("td", { class: "num", children: e.kind === "file" ? sized(e.size ?? 0) : "" }),
            /* @__PURE__ */ jsx7("td", { class: "c-time", children: e.modified ? /* @__PURE__ */ jsx7(Ago, { time: e.modified }) : null })
          ] }, e.name)) })
        ] }) : null,
        list2?.more ? /* @__PURE__ */ jsx7("p", { class: "note", children: t("files.more") }) : null
      ]
    }
  );
}

// pkg/portal/web/src/terminal.tsx
import { useSignal as useSignal7 } from "./library.js";
import { useEffect as useEffect8, useRef as useRef6 } from "./library.js";
import { jsx as jsx8, jsxs as jsxs7 } from "./library.js";
var stdin = 0;
var stdout = 1;
var stderr = 2;
var status = 3;
var resize = 4;
var command = ["sh", "-c", 'test -z "$1" || export TERM="$1"; command -v bash >/dev/null && exec bash; exec sh', "sh", "xterm-256color"];
var most = 8 << 20;
var alive = 25e3;
function ending(text2) {
  try {
    const s = JSON.parse(text2);
    if (s.status === "Success") return { code: 0 };
    const code = s.details?.causes?.find((c) => c.reason === "ExitCode")?.message;
    return code !== void 0 && /^\d+$/.test(code) ? { code: Number(code) } : { why: s.message };
  } catch {
    return { why: text2 };
  }
}
async function connect(user, name, task, screen, opened, ended, stop2) {
  const path = { user, name, ...task };
  const ticket = await call("POST /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec/ticket", { path, signal: stop2 });
  const to = new URL(addressOf("GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec", { path }), location.href);
  to.protocol = to.protocol === "http:" ? "ws:" : "wss:";
  for (const word of command) to.searchParams.append("command", word);
  for (const what of ["tty", "stdin", "stdout"]) to.searchParams.set(what, "true");
  const socket = new WebSocket(to, ["v5.channel.k8s.io", ticket.protocol]);
  socket.binaryType = "arraybuffer";
  let end = {};
  let waits = 0;
  let skipped = 0;
  let timer = 0;
  const drawn = (n) => {
    waits -= n;
    if (skipped > 0 && waits < most / 2) {
      screen.write(`\r
\x1B[7m${t("shell.skipped", { n: skipped })}\x1B[0m\r
`);
      skipped = 0;
    }
  };
  const send3 = (channel, data) => {
    if (socket.readyState !== WebSocket.OPEN) return;
    const message = new Uint8Array(data.length + 1);
    message[0] = channel;
    message.set(data, 1);
    socket.send(message);
  };
  const size3 = () => send3(resize, new TextEncoder().encode(JSON.stringify({ Width: screen.size().columns, Height: screen.size().rows })));
  socket.onopen = () => {
    size3();
    timer = setInterval(size3, alive);
    opened(send3);
  };
  socket.onmessage = (e) => {
    const all2 = new Uint8Array(e.data);
    const data = all2.subarray(1);
    if ((all2[0] === stdout || all2[0] === stderr) && data.length) {
      if (waits + data.length > most) {
        skipped += data.length;
        return;
      }
      waits += data.length;
      screen.write(data, () => drawn(data.length));
    } else if (all2[0] === status && data.length) end = ending(new TextDecoder().decode(data));
  };
  socket.onclose = () => {
    clearInterval(timer);
    ended(end);
  };
  stop2.addEventListener("abort", () => socket.close());
}
var keys = [
  ["Esc", "\x1B"],
  ["Tab", "	"],
  ["Ctrl C", ""],
  ["Ctrl D", ""],
  ["↑", "\x1B[A"],
  ["↓", "\x1B[B"]
];
function Shell({ d, user, name, shown }) {
  const running = (d.taskList ?? []).filter((x) => x.phase === "running").map((x) => `${x.role}[${x.index}]`);
  const asked = place.value.query.get("task") ?? "";
  const chosen2 = useSignal7("");
  if (shown && asked && asked !== chosen2.peek()) chosen2.value = asked;
  const task = chosen2.value || running[0] || "";
  const round2 = useSignal7(0);
  const state = useSignal7("opening");
  const end = useSignal7({});
  const error = useSignal7(null);
  const unloaded = useSignal7(false);
  const box = useRef6(null);
  const frame = useRef6(null);
  const screen = useRef6(null);
  const opened = running.length > 0 || state.value !== "opening";
  useEffect8(() => {
    const m = /^(.+)\[(\d+)\]$/.exec(task);
    if (!m || !box.current) return;
    const stop2 = new AbortController();
    chosen2.value = task;
    state.value = "opening";
    end.value = {};
    error.value = null;
    let send3 = (_channel, _data) => {
    };
    const begin3 = async () => {
      const file = await load("terminal").catch(() => null);
      if (stop2.signal.aborted) return;
      if (!file) {
        unloaded.value = true;
        return;
      }
      const s = file.open(box.current, {
        label: t("openShell", { task }),
        typed: (data) => send3(stdin, data),
        resized: (columns5, rows) => send3(resize, new TextEncoder().encode(JSON.stringify({ Width: columns5, Height: rows }))),
        copied: (text2) => void copy(text2),
        left: () => frame.current?.querySelector("select")?.focus()
      });
      screen.current = s;
      stop2.signal.addEventListener("abort", () => s.end());
      await connect(
        user,
        name,
        { role: m[1], index: m[2] },
        s,
        (to) => {
          send3 = to;
          state.value = "open";
          s.focus();
        },
        (e) => {
          if (stop2.signal.aborted) return;
          end.value = e;
          state.value = "ended";
        },
        stop2.signal
      );
    };
    begin3().catch((e) => {
      if (stop2.signal.aborted) return;
      error.value = failure(e);
      state.value = "ended";
    });
    return () => {
      stop2.abort();
      screen.current = null;
    };
  }, [task, round2.value, opened]);
  useEffect8(() => {
    const leaves = (e) => {
      if (state.value === "open") e.preventDefault();
    };
    const view2 = window.visualViewport;
    const fit = () => {
      if (frame.current) frame.current.style.maxHeight = view2 && innerWidth <= 720 ? `${view2.height}px` : "";
    };
    fit();
    view2?.addEventListener("resize", fit);
    addEventListener("beforeunload", leaves);
    return () => {
      view2?.removeEventListener("resize", fit);
      removeEventListener("beforeunload", leaves);
    };
  }, []);
  if (!opened) return shown ? /* @__PURE__ */ jsx8("p", { class: "empty", children: t("shell.none") }) : null;
  const paste = async () => {
    try {
      screen.current?.paste(await navigator.clipboard.readText());
    } catch {
      toast(t("pasteKeys"));
    }
    screen.current?.focus();
  };
  const says2 = () => {
    if (state.value === "opening") return t("shell.opening");
    if (state.value === "open") return t("shell.open");
    if (end.value.code !== void 0) return t("shell.ended", { code: end.value.code });
    return end.value.why || t("shell.cut");
  };
  return /* @__PURE__ */ jsxs7("section", { class: "shell", ref: frame, hidden: !shown, "aria-label": t("shell"), children: [
    /* @__PURE__ */ jsxs7("div", { class: "filters", children: [
      /* @__PURE__ */ jsx8("a", { class: "button square back", href: address(place.value.path), title: t("backToJob"), "aria-label": t("backToJob"), children: /* @__PURE__ */ jsx8(Icon, { name: "back" }) }),
      /* @__PURE__ */ jsx8("select", { "aria-label": t("task"), value: task, onChange: (e) => setQuery({ task: e.currentTarget.value }), children: [.../* @__PURE__ */ new Set([...running, task])].map((x) => /* @__PURE__ */ jsx8("option", { value: x, children: x }, x)) }),
      /* @__PURE__ */ jsxs7("button", { type: "button", onClick: () => void copy(screen.current?.selection() ?? ""), children: [
        /* @__PURE__ */ jsx8(Icon, { name: "copy" }),
        " ",
        t("copy")
      ] }),
      /* @__PURE__ */ jsxs7("button", { type: "button", onClick: () => void paste(), children: [
        /* @__PURE__ */ jsx8(Icon, { name: "file" }),
        " ",
        t("paste")
      ] }),
      /* @__PURE__ */ jsx8("span", { class: state.value === "ended" ? end.value.code === 0 ? "good" : "bad" : "faint", role: "status", children: says2() }),
      state.value === "ended" ? /* @__PURE__ */ jsxs7("button", { type: "button", class: "primary", onClick: () => round2.value++, children: [
        /* @__PURE__ */ jsx8(Icon, { name: "retry" }),
        " ",
        t("shell.again")
      ] }) : null
    ] }),
    error.value ? /* @__PURE__ */ jsx8(Problem, { of: error.value }) : null,
    unloaded.value ? /* @__PURE__ */ jsx8("p", { class: "note", children: t("shell.failed") }) : null,
    /* @__PURE__ */ jsx8("div", { class: "terminal-frame", children: /* @__PURE__ */ jsx8("div", { ref: box }) }),
    /* @__PURE__ */ jsx8("div", { class: "softkeys", role: "group", "aria-label": t("shell.keys"), children: keys.map(([label, sends]) => /* @__PURE__ */ jsx8(
      "button",
      {
        type: "button",
        onClick: () => {
          screen.current?.type(sends);
          screen.current?.focus();
        },
        children: label
      },
      label
    )) })
  ] });
}

// pkg/portal/web/src/job.tsx
import { Fragment as Fragment4, jsx as jsx9, jsxs as jsxs8 } from "./library.js";
var done = ["succeeded", "failed", "stopped", "deleted"];
function Exit({ of }) {
  const c = of.completion;
  if (!c) return null;
  return /* @__PURE__ */ jsxs8("span", { class: c.code === 0 ? "good" : "bad", title: c.diagnostics, children: [
    c.code,
    c.phrase && c.phrase !== "Succeeded" ? /* @__PURE__ */ jsxs8("span", { class: "faint", children: [
      " ",
      c.phrase
    ] }) : null
  ] });
}
function useJob(user, name, round2) {
  const detail = useSignal8(null);
  const error = useSignal8(null);
  useEffect9(() => {
    const stop2 = new AbortController();
    detail.value = null;
    error.value = null;
    const path = { user, name };
    lasting(
      stop2.signal,
      (alive2) => frames("GET /api/v3/jobs/{user}/{name}/follow", { path }, stop2.signal, (f) => {
        if (f.detail) {
          alive2();
          detail.value = f.detail;
        }
        if (f.problem) lost.value = new Failure(503, "UnavailableError", f.problem);
        if (f.back) lost.value = null;
      })
    ).catch((e) => {
      if (!stop2.signal.aborted) error.value = failure(e);
    });
    return () => {
      stop2.abort();
      lost.value = null;
    };
  }, [user, name, round2]);
  return { detail, error };
}
function mark(d) {
  return d ? [d.uid, d.state, d.position, d.retries, d.message, ...(d.taskList ?? []).map((x) => x.phase)].join() : null;
}
function Why({ d, user, name }) {
  const { value, error } = useRead(mark(d), (signal5) => call("GET /api/v3/jobs/{user}/{name}/why", { path: { user, name }, signal: signal5 }));
  if (error.value) return /* @__PURE__ */ jsx9(Problem, { of: error.value });
  const w = value.value;
  if (!w) return /* @__PURE__ */ jsx9("div", { class: "why pending", "aria-busy": "true" });
  return /* @__PURE__ */ jsxs8("div", { class: `why is-${d.state}`, children: [
    /* @__PURE__ */ jsx9("p", { class: "sentence", children: w.sentence }),
    w.remedy?.length ? /* @__PURE__ */ jsx9("ul", { class: "remedy", "aria-label": t("whatToDo"), children: w.remedy.map((r) => /* @__PURE__ */ jsx9("li", { children: r }, r)) }) : null,
    w.facts?.length || w.log?.length ? /* @__PURE__ */ jsxs8("details", { children: [
      /* @__PURE__ */ jsx9("summary", { children: t("details") }),
      /* @__PURE__ */ jsx9("dl", { children: w.facts?.map((f) => /* @__PURE__ */ jsxs8("div", { children: [
        /* @__PURE__ */ jsx9("dt", { children: f.what }),
        /* @__PURE__ */ jsx9("dd", { children: f.text })
      ] }, f.what)) }),
      w.log?.length ? /* @__PURE__ */ jsx9("pre", { tabIndex: 0, "aria-label": t("lastLines"), children: w.log.join("\n") }) : null
    ] }) : null
  ] });
}
var some = 200;
function Tasks({ d, enter, open }) {
  const text2 = useSignal8("");
  const most3 = useSignal8(some);
  const all2 = d.taskList ?? [];
  const word = text2.value.toLowerCase();
  const fits2 = (x) => !word || `${x.role}[${x.index}] ${x.phase} ${x.node ?? ""} ${x.ip ?? ""} ${x.completion?.phrase ?? ""}`.toLowerCase().includes(word);
  const rows = all2.filter(fits2);
  const counts = /* @__PURE__ */ new Map();
  for (const x of all2) counts.set(x.phase, (counts.get(x.phase) ?? 0) + 1);
  if (all2.length === 0) return /* @__PURE__ */ jsx9("p", { class: "empty", children: t("noTasks") });
  return /* @__PURE__ */ jsxs8(Fragment4, { children: [
    all2.length > 8 ? /* @__PURE__ */ jsxs8("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs8("label", { class: "search", children: [
        /* @__PURE__ */ jsx9(Icon, { name: "search" }),
        /* @__PURE__ */ jsx9("input", { type: "search", placeholder: t("filterTasks"), "aria-label": t("filterTasks"), onInput: (e) => text2.value = e.currentTarget.value })
      ] }),
      [...counts].map(([phase, n]) => /* @__PURE__ */ jsxs8("button", { type: "button", class: "bare", onClick: () => text2.value = text2.value === phase ? "" : phase, children: [
        /* @__PURE__ */ jsx9(State, { state: phase }),
        " ",
        /* @__PURE__ */ jsx9("span", { class: "faint", children: n })
      ] }, phase))
    ] }) : null,
    /* @__PURE__ */ jsxs8("table", { class: "rows tasks", children: [
      /* @__PURE__ */ jsx9("thead", { children: /* @__PURE__ */ jsxs8("tr", { children: [
        /* @__PURE__ */ jsx9("th", { children: t("task") }),
        /* @__PURE__ */ jsx9("th", { children: t("state") }),
        /* @__PURE__ */ jsx9("th", { children: t("machine") }),
        /* @__PURE__ */ jsx9("th", { class: "c-address", children: t("address") }),
        /* @__PURE__ */ jsx9("th", { children: t("exit") }),
        /* @__PURE__ */ jsx9("th", { class: "num", children: t("duration") }),
        /* @__PURE__ */ jsx9("th", { class: "num c-retries", children: t("retries") }),
        enter ? /* @__PURE__ */ jsx9("th", { class: "c-shell" }) : null
      ] }) }),
      /* @__PURE__ */ jsx9("tbody", { children: rows.slice(0, most3.value).map((x) => /* @__PURE__ */ jsxs8("tr", { children: [
        /* @__PURE__ */ jsx9("td", { class: "c-name", children: /* @__PURE__ */ jsxs8("a", { class: "whole", href: address(place.value.path, { tab: "logs", task: `${x.role}[${x.index}]` }), children: [
          x.role,
          "[",
          x.index,
          "]"
        ] }) }),
        /* @__PURE__ */ jsx9("td", { children: /* @__PURE__ */ jsx9(State, { state: x.phase }) }),
        /* @__PURE__ */ jsx9("td", { children: x.node }),
        /* @__PURE__ */ jsx9("td", { class: "c-address", children: x.ip ? /* @__PURE__ */ jsx9("code", { children: x.ip }) : null }),
        /* @__PURE__ */ jsx9("td", { children: /* @__PURE__ */ jsx9(Exit, { of: x }) }),
        /* @__PURE__ */ jsx9("td", { class: "num", children: ran({ started: x.run, completed: x.completed }) }),
        /* @__PURE__ */ jsx9("td", { class: "num c-retries", children: x.retries || "" }),
        enter ? /* @__PURE__ */ jsx9("td", { class: "c-shell", children: x.phase === "running" ? /* @__PURE__ */ jsx9("a", { class: "button square", href: address(place.value.path, { tab: "shell", task: `${x.role}[${x.index}]` }), onClick: open, title: t("openShell", { task: `${x.role}[${x.index}]` }), "aria-label": t("openShell", { task: `${x.role}[${x.index}]` }), children: /* @__PURE__ */ jsx9(Icon, { name: "shell" }) }) : null }) : null
      ] }, x.role + x.index)) })
    ] }),
    rows.length > most3.value ? /* @__PURE__ */ jsx9("footer", { class: "under", children: /* @__PURE__ */ jsx9("button", { type: "button", onClick: () => most3.value += 1e3, children: t("moreTasks", { n: rows.length - most3.value }) }) }) : null
  ] });
}
function Events({ d, user, name }) {
  const { value, error } = useRead(mark(d), (signal5) => call("GET /api/v3/jobs/{user}/{name}/events", { path: { user, name }, signal: signal5 }));
  if (error.value) return /* @__PURE__ */ jsx9(Problem, { of: error.value });
  if (!value.value) return /* @__PURE__ */ jsx9(Loading, {});
  const items = [...value.value.items ?? []].reverse();
  return /* @__PURE__ */ jsxs8(Fragment4, { children: [
    value.value.note ? /* @__PURE__ */ jsx9("p", { class: "note", children: value.value.note }) : null,
    items.length === 0 ? /* @__PURE__ */ jsx9("p", { class: "empty", children: t("noEvents") }) : /* @__PURE__ */ jsxs8("table", { class: "rows", children: [
      /* @__PURE__ */ jsx9("thead", { children: /* @__PURE__ */ jsxs8("tr", { children: [
        /* @__PURE__ */ jsx9("th", { children: t("time") }),
        /* @__PURE__ */ jsx9("th", { children: t("reason") }),
        /* @__PURE__ */ jsx9("th", { children: t("message") }),
        /* @__PURE__ */ jsx9("th", { class: "c-object", children: t("object") })
      ] }) }),
      /* @__PURE__ */ jsx9("tbody", { children: items.map((e) => /* @__PURE__ */ jsxs8("tr", { class: e.type === "Warning" ? "warning" : "", children: [
        /* @__PURE__ */ jsx9("td", { class: "c-time", children: /* @__PURE__ */ jsx9(Ago, { time: e.time }) }),
        /* @__PURE__ */ jsxs8("td", { children: [
          e.reason,
          e.count > 1 ? /* @__PURE__ */ jsxs8("span", { class: "faint", children: [
            " ×",
            e.count
          ] }) : null
        ] }),
        /* @__PURE__ */ jsx9("td", { class: "long", children: e.message }),
        /* @__PURE__ */ jsx9("td", { class: "c-object faint", children: e.object })
      ] }, e.uid)) })
    ] })
  ] });
}
function Config({ d }) {
  if (!d.config) return /* @__PURE__ */ jsx9("p", { class: "empty", children: t("noConfig") });
  return /* @__PURE__ */ jsxs8(Fragment4, { children: [
    /* @__PURE__ */ jsxs8("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs8("button", { type: "button", onClick: () => void copy(d.config), children: [
        /* @__PURE__ */ jsx9(Icon, { name: "copy" }),
        " ",
        t("copy")
      ] }),
      /* @__PURE__ */ jsxs8("button", { type: "button", onClick: () => save(`${d.name}.yaml`, [d.config], "text/yaml"), children: [
        /* @__PURE__ */ jsx9(Icon, { name: "down" }),
        " ",
        t("download")
      ] }),
      d.config.includes("******") ? /* @__PURE__ */ jsx9("span", { class: "faint", children: t("masked") }) : null
    ] }),
    d.clonedFrom ? /* @__PURE__ */ jsx9(Parent, { d }) : null,
    /* @__PURE__ */ jsx9("pre", { tabIndex: 0, class: "code", children: d.config })
  ] });
}
function OverTime({ d, user, name, live, command: command2 }) {
  const q = place.value.query;
  const path = { user, name };
  const task = q.get("task") ?? "";
  const tasks = [.../* @__PURE__ */ new Set([...(d.taskList ?? []).slice(0, some).map((x) => `${x.role}[${x.index}]`), ...task ? [task] : []])];
  return /* @__PURE__ */ jsx9(
    Metrics,
    {
      id: d.uid,
      span: spans.find((x) => x === q.get("span")) ?? "all",
      choose: (x) => setQuery({ span: x === "all" ? void 0 : x }),
      all: "",
      live,
      task,
      read: (query, signal5) => call("GET /api/v3/jobs/{user}/{name}/metrics", { path, query, signal: signal5 }),
      command: command2,
      curl: (query) => curl("GET /api/v3/jobs/{user}/{name}/metrics", { path, query }),
      children: tasks.length > 1 ? /* @__PURE__ */ jsxs8("select", { "aria-label": t("task"), value: task, onChange: (e) => setQuery({ task: e.currentTarget.value || void 0 }), children: [
        /* @__PURE__ */ jsx9("option", { value: "", children: t("allTasks") }),
        tasks.map((x) => /* @__PURE__ */ jsx9("option", { value: x, children: x }, x))
      ] }) : null
    }
  );
}
function Attempt({ a }) {
  return /* @__PURE__ */ jsxs8("details", { class: "attempt", children: [
    /* @__PURE__ */ jsxs8("summary", { children: [
      /* @__PURE__ */ jsxs8("b", { children: [
        t("attempt"),
        " ",
        a.id
      ] }),
      /* @__PURE__ */ jsx9(Ago, { time: a.started }),
      /* @__PURE__ */ jsx9("span", { children: ran({ started: a.run ?? a.started, completed: a.completed }) }),
      /* @__PURE__ */ jsx9(Exit, { of: a })
    ] }),
    a.completion?.trigger?.message ? /* @__PURE__ */ jsx9("p", { children: a.completion.trigger.message }) : null,
    /* @__PURE__ */ jsxs8("table", { class: "rows", children: [
      /* @__PURE__ */ jsx9("thead", { children: /* @__PURE__ */ jsxs8("tr", { children: [
        /* @__PURE__ */ jsx9("th", { children: t("task") }),
        /* @__PURE__ */ jsx9("th", { class: "num", children: t("attempt") }),
        /* @__PURE__ */ jsx9("th", { children: t("machine") }),
        /* @__PURE__ */ jsx9("th", { children: t("started") }),
        /* @__PURE__ */ jsx9("th", { class: "num", children: t("duration") }),
        /* @__PURE__ */ jsx9("th", { children: t("exit") })
      ] }) }),
      /* @__PURE__ */ jsx9("tbody", { children: (a.tasks ?? []).slice(0, 500).map((x) => /* @__PURE__ */ jsxs8("tr", { children: [
        /* @__PURE__ */ jsxs8("td", { children: [
          x.role,
          "[",
          x.index,
          "]"
        ] }),
        /* @__PURE__ */ jsx9("td", { class: "num", children: x.id }),
        /* @__PURE__ */ jsx9("td", { children: x.node }),
        /* @__PURE__ */ jsx9("td", { children: /* @__PURE__ */ jsx9(Ago, { time: x.started }) }),
        /* @__PURE__ */ jsx9("td", { class: "num", children: ran({ started: x.run, completed: x.completed }) }),
        /* @__PURE__ */ jsx9("td", { children: /* @__PURE__ */ jsx9(Exit, { of: x }) })
      ] }, x.role + x.index + "." + x.id)) })
    ] })
  ] });
}
var Logs = later(() => import("./logs.js").then((file) => file.Logs));
var Parent = later(() => import("./parent.js").then((file) => file.Parent));
var tabs = ["overview", "logs", "metrics", "events", "config", "attempts", "files", "shell"];
function JobPage({ user, name }) {
  const round2 = useSignal8(0);
  const { detail, error } = useJob(user, name, round2.value);
  const d = detail.value;
  const path = { user, name };
  const allowed = useRead(d ? d.uid : null, (signal5) => call("GET /api/v3/jobs/{user}/{name}/allowed", { path, signal: signal5 }));
  const may = (what) => allowed.value.value?.operations?.includes(what) ?? false;
  const isDone = done.includes(d?.state ?? "");
  const shell = useSignal8(false);
  const scaling = useSignal8(false);
  const asked = place.value.query.get("tab");
  const offered = tabs.filter((x) => x !== "shell" && x !== "files" || x === "shell" && shell.value || may("enter") && !isDone);
  const tab = offered.find((x) => x === asked) ?? "overview";
  const full = user === me.value?.name ? name : `${user}/${name}`;
  useEffect9(() => {
    document.title = `${name} – paictl`;
  }, [name]);
  useKeys(Object.fromEntries(offered.map((x, i) => [String(i + 1), () => setQuery({ tab: x === "overview" ? void 0 : x, task: void 0, at: void 0 })])));
  if (!d) return error.value ? /* @__PURE__ */ jsx9(Problem, { of: error.value, again: () => round2.value++ }) : /* @__PURE__ */ jsx9(Loading, {});
  const act = (what) => ask({
    title: t(`ask.${what}`, { job: full }),
    text: t(`ask.${what}.more`),
    yes: t(what),
    danger: what !== "retry",
    act: async () => {
      if (what === "stop") await call("POST /api/v3/jobs/{user}/{name}/stop", { path });
      if (what === "retry") await call("POST /api/v3/jobs/{user}/{name}/retry", { path });
      if (what === "remove") await call("DELETE /api/v3/jobs/{user}/{name}", { path });
      toast(t(`done.${what}`));
      if (what === "remove") go(address(["jobs"]));
      else round2.value++;
    }
  });
  const task = place.value.query.get("task");
  const command2 = tab === "shell" ? `paictl job shell ${quoted(full)}${task ? ` --task ${quoted(task)}` : ""}` : tab === "logs" ? `paictl job logs ${quoted(full)}${task ? ` --task ${quoted(task)}` : ""}${place.value.query.get("previous") ? " --previous" : " -f"}` : tab === "events" ? `paictl job events ${quoted(full)}` : tab === "metrics" ? `paictl job metrics ${quoted(full)}` : `paictl job get ${quoted(full)}`;
  const route = tab === "logs" ? "GET /api/v3/jobs/{user}/{name}/logs" : tab === "events" ? "GET /api/v3/jobs/{user}/{name}/events" : tab === "metrics" ? "GET /api/v3/jobs/{user}/{name}/metrics" : "GET /api/v3/jobs/{user}/{name}";
  const one = /^(.*)\[(\d+)\]$/.exec(task ?? "");
  const curlOf = () => tab === "logs" && one ? curl("GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log", { path: { user, name, role: one[1], index: one[2] }, query: { at: place.value.query.get("at") ?? void 0, previous: place.value.query.get("previous") === "true" } }) : curl(route, { path });
  return /* @__PURE__ */ jsxs8("section", { class: "page job", children: [
    /* @__PURE__ */ jsxs8("header", { class: "top", children: [
      /* @__PURE__ */ jsxs8("nav", { class: "crumbs", children: [
        /* @__PURE__ */ jsx9("a", { href: address(["jobs"]), children: t("jobs") }),
        /* @__PURE__ */ jsx9(Icon, { name: "chevron" }),
        /* @__PURE__ */ jsx9("a", { href: address(["jobs"], { user }), children: user }),
        /* @__PURE__ */ jsx9(Icon, { name: "chevron" })
      ] }),
      /* @__PURE__ */ jsx9("h1", { title: name, children: name }),
      /* @__PURE__ */ jsx9(State, { state: d.state, position: d.position, deleted: d.deleted }),
      /* @__PURE__ */ jsx9("span", { class: "grow" }),
      /* @__PURE__ */ jsxs8("div", { class: "actions", children: [
        d.config ? /* @__PURE__ */ jsxs8("a", { class: "button", href: address(["submit"], { clone: `${user}/${name}`, uid: d.uid }), children: [
          /* @__PURE__ */ jsx9(Icon, { name: "copy" }),
          " ",
          t("clone")
        ] }) : null,
        may("retry") && isDone ? /* @__PURE__ */ jsxs8("button", { type: "button", onClick: () => act("retry"), children: [
          /* @__PURE__ */ jsx9(Icon, { name: "retry" }),
          " ",
          t("retry")
        ] }) : null,
        may("stop") && !isDone && d.state !== "stopping" && d.state !== "deleting" ? /* @__PURE__ */ jsxs8("button", { type: "button", class: "danger", onClick: () => act("stop"), children: [
          /* @__PURE__ */ jsx9(Icon, { name: "stop" }),
          " ",
          t("stop")
        ] }) : null,
        /* @__PURE__ */ jsx9(
          Menu,
          {
            label: t("more"),
            icon: "more",
            items: [
              { label: t("copyName"), icon: "copy", run: () => void copy(full) },
              { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2) },
              { label: t("copyCurl"), icon: "copy", run: () => void copy(curlOf()) },
              { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
              ...d.config ? [{ label: t("saveTemplate"), icon: "file", run: () => go(address(["templates", "new"], { job: `${user}/${name}` })) }] : [],
              ...may("scale") && !isDone ? [{ label: t("scale"), icon: "queue", run: () => scaling.value = true }] : [],
              ...may("delete") && d.live ? [null, { label: t("remove"), icon: "trash", danger: true, run: () => act("remove") }] : []
            ]
          }
        )
      ] })
    ] }),
    scaling.value ? /* @__PURE__ */ jsx9(Scale, { d, end: () => scaling.value = false }) : null,
    error.value ? /* @__PURE__ */ jsx9(Problem, { of: error.value, again: () => round2.value++ }) : null,
    /* @__PURE__ */ jsx9(Why, { d, user, name }),
    d.note ? /* @__PURE__ */ jsx9("p", { class: "note", children: d.note }) : null,
    /* @__PURE__ */ jsxs8("dl", { class: "facts", children: [
      /* @__PURE__ */ jsx9(Fact, { name: t("owner"), value: d.user }),
      /* @__PURE__ */ jsx9(Fact, { name: t("vc"), value: d.virtualCluster }),
      /* @__PURE__ */ jsx9(Fact, { name: t("gpus"), value: d.gpus > 0 ? d.gpus : d.gpus < 0 ? "?" : "–" }),
      /* @__PURE__ */ jsx9(Fact, { name: t("tasks"), value: d.tasks }),
      /* @__PURE__ */ jsx9(Fact, { name: t("priority"), value: d.priority }),
      /* @__PURE__ */ jsx9(Fact, { name: t("submitted"), value: /* @__PURE__ */ jsx9(Ago, { time: d.submitted }) }),
      /* @__PURE__ */ jsx9(Fact, { name: t("duration"), value: ran(d) }),
      /* @__PURE__ */ jsx9(Fact, { name: t("retries"), value: d.retries || void 0 }),
      /* @__PURE__ */ jsx9(Fact, { name: t("tags"), value: d.tags?.length || may("tag") ? /* @__PURE__ */ jsx9(Tags, { d, change: may("tag"), changed: () => round2.value++ }) : void 0 })
    ] }),
    /* @__PURE__ */ jsx9("div", { class: "tabs", role: "tablist", children: offered.map((x) => /* @__PURE__ */ jsx9("a", { role: "tab", "aria-selected": x === tab, href: address(place.value.path, { tab: x === "overview" ? void 0 : x }), children: maybe(x, x) }, x)) }),
    /* @__PURE__ */ jsxs8("div", { class: "tab", role: "tabpanel", children: [
      tab === "overview" ? /* @__PURE__ */ jsx9(Tasks, { d, enter: may("enter") && !isDone, open: (e) => shell.value ||= !(e.ctrlKey || e.metaKey || e.shiftKey) }) : null,
      tab === "logs" ? /* @__PURE__ */ jsx9(Logs, { d, user, name }, d.uid) : null,
      tab === "metrics" ? /* @__PURE__ */ jsx9(OverTime, { d, user, name, live: !isDone, command: `paictl job metrics ${quoted(full)}` }) : null,
      tab === "events" ? /* @__PURE__ */ jsx9(Events, { d, user, name }) : null,
      tab === "config" ? /* @__PURE__ */ jsx9(Config, { d }) : null,
      tab === "attempts" ? d.attempts?.length ? d.attempts.map((a) => /* @__PURE__ */ jsx9(Attempt, { a }, a.id)) : /* @__PURE__ */ jsx9("p", { class: "empty", children: t("noAttempts") }) : null,
      tab === "files" ? /* @__PURE__ */ jsx9(Files, { d, user, name, full }, d.uid) : null,
      tab === "shell" && !shell.value ? /* @__PURE__ */ jsxs8("div", { class: "empty", children: [
        /* @__PURE__ */ jsx9("p", { children: /* @__PURE__ */ jsxs8("button", { type: "button", class: "primary", onClick: () => shell.value = true, children: [
          /* @__PURE__ */ jsx9(Icon, { name: "shell" }),
          " ",
          task ? t("openShell", { task }) : t("shell.start")
        ] }) }),
        /* @__PURE__ */ jsx9("p", { class: "faint", children: t("shell.audited") })
      ] }) : null,
      shell.value ? /* @__PURE__ */ jsx9(Shell, { d, user, name, shown: tab === "shell" }, d.uid) : null
    ] })
  ] });
}
function Fact({ name, value }) {
  return value === void 0 || value === "" ? null : /* @__PURE__ */ jsxs8("div", { children: [
    /* @__PURE__ */ jsx9("dt", { children: name }),
    /* @__PURE__ */ jsx9("dd", { children: value })
  ] });
}

// pkg/portal/web/src/machines.tsx
import { useSignal as useSignal9 } from "./library.js";
import { useEffect as useEffect10, useMemo as useMemo5, useRef as useRef7 } from "./library.js";
import { Fragment as Fragment5, jsx as jsx10, jsxs as jsxs9 } from "./library.js";
var MachineActions = later(() => import("./actions.js").then((file) => file.MachineActions));
var Requesting = later(() => import("./actions.js").then((file) => file.Requesting));
var shows = ["all", "free", "troubled"];
function chosen(m, show2, word, sku) {
  if (sku && m.sku !== sku) return false;
  if (word && !m.name.toLowerCase().includes(word.toLowerCase())) return false;
  if (show2 === "free") return !down(m) && (m.gpus ?? []).some((g) => !g.owner && !broken(g));
  return show2 !== "troubled" || troubled(m);
}
var columns2 = [
  ["name", (m) => m.name],
  ["state", (m) => m.state],
  ["cordoned", (m) => !!m.cordoned],
  ["cordonReason", (m) => m.cordonReason],
  ["pressure", (m) => m.pressure?.join(" ")],
  ["sku", (m) => m.sku],
  ["gpus", (m) => m.gpus?.length ?? 0],
  ["gpusUsed", (m) => m.gpus?.filter((g) => g.owner).length ?? 0],
  ["gpusBroken", (m) => m.gpus?.filter(broken).length ?? 0],
  ["milliCPU", (m) => m.cpu.total],
  ["milliCPUUsed", (m) => m.cpu.used],
  ["memoryMiB", (m) => m.memory.total],
  ["memoryMiBUsed", (m) => m.memory.used],
  ["pods", (m) => m.pods],
  ["since", (m) => m.since]
];
function MachineState({ m }) {
  const key2 = m.state !== "Ready" ? "bad" : m.cordoned || m.pressure?.length ? "wait" : "good";
  return /* @__PURE__ */ jsxs9("span", { class: `state ${key2}`, children: [
    /* @__PURE__ */ jsx10("i", { class: "dot" }),
    maybe("machine." + m.state, m.state),
    m.cordoned ? /* @__PURE__ */ jsxs9("span", { class: "faint", children: [
      " ",
      t("cordoned")
    ] }) : null
  ] });
}
function GPUs({ m }) {
  const all2 = m.gpus ?? [];
  if (all2.length === 0) return /* @__PURE__ */ jsx10("span", { class: "faint", children: "–" });
  const sick = all2.filter(broken).length;
  return /* @__PURE__ */ jsxs9(Fragment5, { children: [
    all2.filter((g) => g.owner).length,
    " / ",
    all2.length,
    sick ? /* @__PURE__ */ jsxs9("span", { class: "broken", children: [
      " ",
      t("broken", { n: sick })
    ] }) : null
  ] });
}
function percent(a) {
  return a.total ? Math.round(100 * a.used / a.total) + " %" : "–";
}
function Counts({ c }) {
  const n = c.counts;
  return /* @__PURE__ */ jsxs9("p", { class: "numbers", children: [
    /* @__PURE__ */ jsxs9("span", { children: [
      /* @__PURE__ */ jsx10("b", { children: n.MachinesReady }),
      " ",
      t("ofMachines", { n: n.Machines })
    ] }),
    /* @__PURE__ */ jsxs9("span", { children: [
      /* @__PURE__ */ jsx10("b", { children: n.GPUsUsed }),
      " ",
      t("ofGPUs", { n: n.GPUs })
    ] }),
    n.GPUsSick ? /* @__PURE__ */ jsx10("span", { class: "broken", children: t("broken", { n: n.GPUsSick }) }) : null
  ] });
}
function Sources({ c, names: names2 }) {
  const old = names2.map((n) => source(c, n)).filter((s) => s && s.state !== "current");
  return /* @__PURE__ */ jsx10(Fragment5, { children: old.map((s) => /* @__PURE__ */ jsxs9("p", { class: "note", children: [
    t("sourceIs", { name: maybe("source." + s.name, s.name), state: maybe("sourceState." + s.state, s.state) }),
    " ",
    s.since && s.state === "stale" ? /* @__PURE__ */ jsx10(Ago, { time: s.since }) : null,
    " ",
    s.message,
    s.hint ? /* @__PURE__ */ jsxs9("span", { class: "faint", children: [
      " ",
      s.hint
    ] }) : null
  ] }, s.name)) });
}
function Machines() {
  const { cluster, error } = useCluster("machines");
  const q = place.value.query;
  const by = ways.includes(q.get("by") ?? "") ? q.get("by") : "use";
  const show2 = q.get("show") ?? "all";
  const [word, sku, open, wall] = [q.get("find") ?? "", q.get("sku") ?? "", q.get("machine"), q.get("view") === "wall"];
  const search = useRef7(null);
  const c = cluster.value;
  const skus = useMemo5(() => [...new Set((c?.machines ?? []).map((m) => m.sku ?? "").filter(Boolean))].sort(), [c?.machines]);
  const machines2 = useMemo5(() => (c?.machines ?? []).filter((m) => chosen(m, show2, word, sku)).sort(byName), [c?.machines, show2, word, sku]);
  useEffect10(() => {
    document.title = t("machines") + " – paictl";
  }, []);
  useEffect10(() => {
    document.documentElement.classList.toggle("wall", wall);
    return () => document.documentElement.classList.remove("wall");
  }, [wall]);
  useKeys({
    "/": () => search.current?.focus(),
    Escape: () => open ? setQuery({ machine: void 0 }) : wall ? setQuery({ view: void 0 }) : void 0
  });
  const one = open ? c?.machines?.find((m) => m.name === open) : void 0;
  return /* @__PURE__ */ jsxs9("section", { class: "page machines", children: [
    /* @__PURE__ */ jsxs9("header", { class: "top", children: [
      /* @__PURE__ */ jsx10("h1", { children: wall ? c?.name : t("machines") }),
      c ? /* @__PURE__ */ jsx10(Counts, { c }) : null,
      /* @__PURE__ */ jsx10("span", { class: "grow" }),
      /* @__PURE__ */ jsx10("div", { class: "segments", role: "group", "aria-label": t("mapBy"), children: ways.map((way2) => /* @__PURE__ */ jsx10("button", { type: "button", "aria-pressed": by === way2, onClick: () => setQuery({ by: way2 === "use" ? void 0 : way2 }), children: t("mapBy." + way2) }, way2)) }),
      /* @__PURE__ */ jsxs9("button", { type: "button", title: t("wallMore"), onClick: () => setQuery({ view: wall ? void 0 : "wall" }), children: [
        /* @__PURE__ */ jsx10(Icon, { name: wall ? "close" : "page" }),
        " ",
        t(wall ? "wallEnd" : "wall")
      ] }),
      wall ? null : /* @__PURE__ */ jsx10(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl status --once") },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/status", { query: { parts: ["machines"] } })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      ),
      wall ? null : /* @__PURE__ */ jsxs9("button", { type: "button", title: t("csvMore"), disabled: !c, onClick: () => save("machines.csv", [csv(machines2, columns2)], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx10(Icon, { name: "down" }),
        " ",
        t("csv")
      ] })
    ] }),
    wall ? null : /* @__PURE__ */ jsxs9("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs9("label", { class: "search", children: [
        /* @__PURE__ */ jsx10(Icon, { name: "search" }),
        /* @__PURE__ */ jsx10("input", { ref: search, type: "search", placeholder: t("searchMachines"), "aria-label": t("searchMachines"), defaultValue: word, onInput: (e) => setQuery({ find: e.currentTarget.value || void 0 }), onKeyDown: (e) => e.key === "Escape" && e.currentTarget.blur() }),
        /* @__PURE__ */ jsx10("kbd", { children: "/" })
      ] }),
      /* @__PURE__ */ jsx10("div", { class: "segments", role: "group", "aria-label": t("state"), children: shows.map((name) => /* @__PURE__ */ jsx10("button", { type: "button", "aria-pressed": show2 === name, onClick: () => setQuery({ show: name === "all" ? void 0 : name }), children: t("show." + name) }, name)) }),
      skus.length > 1 ? /* @__PURE__ */ jsxs9("select", { "aria-label": t("sku"), value: sku, onChange: (e) => setQuery({ sku: e.currentTarget.value || void 0 }), children: [
        /* @__PURE__ */ jsx10("option", { value: "", children: t("anySKU") }),
        skus.map((s) => /* @__PURE__ */ jsx10("option", { value: s, children: s }, s))
      ] }) : null
    ] }),
    error.value ? /* @__PURE__ */ jsx10(Problem, { of: error.value }) : null,
    c ? /* @__PURE__ */ jsx10(Sources, { c, names: by === "use" ? ["api", "prometheus"] : by === "owner" ? ["api", "jobs"] : ["api"] }) : null,
    !c ? error.value ? null : /* @__PURE__ */ jsx10(Loading, {}) : machines2.length === 0 ? /* @__PURE__ */ jsxs9("div", { class: "empty", children: [
      /* @__PURE__ */ jsx10("p", { children: c.machines?.length ? t("noMachineMatch") : t("noMachines") }),
      c.machines?.length ? /* @__PURE__ */ jsx10("button", { type: "button", onClick: () => go(address(["machines"])), children: t("clearFilters") }) : null
    ] }) : /* @__PURE__ */ jsxs9(Fragment5, { children: [
      /* @__PURE__ */ jsx10(GPUMap, { machines: machines2, by, fit: wall ? innerHeight - 170 : 380, largest: wall ? 44 : 20, open: (name) => setQuery({ machine: name }) }),
      /* @__PURE__ */ jsx10(Legend, { machines: machines2, by }),
      wall ? null : /* @__PURE__ */ jsx10(List, { machines: machines2 })
    ] }),
    one ? /* @__PURE__ */ jsx10(One, { m: one, close: () => setQuery({ machine: void 0 }) }) : null
  ] });
}
var most2 = 200;
function List({ machines: machines2 }) {
  const asked = useSignal9(null);
  const may = me.value?.grants.administrator;
  const items = (m) => (m.cordoned ? ["uncordon", "drain"] : ["cordon", "drain"]).map((operation) => ({ label: t(`machine.${operation}`), run: () => asked.value = { machine: m.name, operation } }));
  return /* @__PURE__ */ jsxs9(Fragment5, { children: [
    /* @__PURE__ */ jsxs9("table", { class: "rows", children: [
      /* @__PURE__ */ jsx10("thead", { children: /* @__PURE__ */ jsxs9("tr", { children: [
        /* @__PURE__ */ jsx10("th", { children: t("name") }),
        /* @__PURE__ */ jsx10("th", { children: t("state") }),
        /* @__PURE__ */ jsx10("th", { children: t("sku") }),
        /* @__PURE__ */ jsx10("th", { class: "num", children: t("gpus") }),
        /* @__PURE__ */ jsx10("th", { class: "num wide", children: t("cpuUse") }),
        /* @__PURE__ */ jsx10("th", { class: "num wide", children: t("memoryUse") }),
        /* @__PURE__ */ jsx10("th", { class: "num wide", children: t("pods") }),
        /* @__PURE__ */ jsx10("th", { class: "wide", children: t("sinceTime") }),
        may ? /* @__PURE__ */ jsx10("th", { "aria-label": t("more") }) : null
      ] }) }),
      /* @__PURE__ */ jsx10("tbody", { children: machines2.slice(0, most2).map((m) => /* @__PURE__ */ jsxs9("tr", { "data-machine": m.name, children: [
        /* @__PURE__ */ jsx10("td", { children: /* @__PURE__ */ jsx10("a", { class: "whole", href: address(["machines"], { ...Object.fromEntries(place.value.query), machine: m.name }), children: m.name }) }),
        /* @__PURE__ */ jsx10("td", { title: m.message, children: /* @__PURE__ */ jsx10(MachineState, { m }) }),
        /* @__PURE__ */ jsx10("td", { children: m.sku }),
        /* @__PURE__ */ jsx10("td", { class: "num", children: /* @__PURE__ */ jsx10(GPUs, { m }) }),
        /* @__PURE__ */ jsx10("td", { class: "num wide", children: percent(m.cpu) }),
        /* @__PURE__ */ jsx10("td", { class: "num wide", children: percent(m.memory) }),
        /* @__PURE__ */ jsx10("td", { class: "num wide", children: m.pods }),
        /* @__PURE__ */ jsx10("td", { class: "wide", children: /* @__PURE__ */ jsx10(Ago, { time: m.since }) }),
        may ? /* @__PURE__ */ jsx10("td", { class: "above", children: /* @__PURE__ */ jsx10(Menu, { label: t("machine.operations", { name: m.name }), icon: "more", items: items(m) }) }) : null
      ] }, m.name)) })
    ] }),
    /* @__PURE__ */ jsx10("footer", { class: "under", children: /* @__PURE__ */ jsx10("span", { class: "faint", children: t(machines2.length > most2 ? "machinesMore" : "machinesShown", { n: machines2.length, most: most2 }) }) }),
    asked.value ? /* @__PURE__ */ jsx10(Requesting, { ...asked.value, end: () => asked.value = null }, asked.value.machine + asked.value.operation) : null
  ] });
}
function Held({ g }) {
  const o = g.owner;
  if (!o) return /* @__PURE__ */ jsx10("span", { class: "faint", children: broken(g) ? "" : t("mapFree") });
  const [user, name] = (o.job ?? "").split("/");
  return /* @__PURE__ */ jsxs9(Fragment5, { children: [
    user && name ? /* @__PURE__ */ jsx10("a", { href: address(["jobs", user, name]), children: o.job }) : /* @__PURE__ */ jsx10("span", { class: "faint", children: o.pod || t("mapSomeone") }),
    " ",
    o.task ? /* @__PURE__ */ jsx10("span", { class: "faint", children: o.task }) : null
  ] });
}
function OverTime2({ machine }) {
  const span = useSignal9("6h");
  const path = { machine };
  return /* @__PURE__ */ jsx10(
    Metrics,
    {
      id: machine,
      span: span.value,
      choose: (x) => span.value = x,
      all: "30d",
      live: true,
      height: 120,
      read: (query, signal5) => call("GET /api/v3/machines/{machine}/metrics", { path, query: { since: query.since }, signal: signal5 }),
      command: `paictl node metrics ${quoted(machine)}`,
      curl: (query) => curl("GET /api/v3/machines/{machine}/metrics", { path, query })
    }
  );
}
function One({ m, close }) {
  const box = useRef7(null);
  useEffect10(() => box.current?.focus(), [m.name]);
  const facts = [
    [t("sku"), m.sku],
    [t("roles"), m.roles?.join(", ")],
    [t("machineAddress"), m.address],
    [t("gpuModel"), [...new Set((m.gpus ?? []).map((g) => g.model).filter(Boolean))].join(", ")],
    [t("driver"), m.driver],
    ["Kubernetes", m.kubelet],
    [t("kernel"), m.kernel],
    [t("os"), m.os]
  ];
  return /* @__PURE__ */ jsxs9("aside", { class: "drawer", ref: box, tabIndex: -1, "aria-label": m.name, children: [
    /* @__PURE__ */ jsxs9("header", { class: "top", children: [
      /* @__PURE__ */ jsx10("h2", { children: m.name }),
      /* @__PURE__ */ jsx10(MachineState, { m }),
      /* @__PURE__ */ jsx10("span", { class: "grow" }),
      /* @__PURE__ */ jsx10("button", { type: "button", class: "square", "aria-label": t("close"), title: t("close"), onClick: close, children: /* @__PURE__ */ jsx10(Icon, { name: "close" }) })
    ] }),
    m.message ? /* @__PURE__ */ jsx10("p", { class: "note", children: m.message }) : null,
    m.cordoned && (m.cordonedBy || m.cordonReason) ? /* @__PURE__ */ jsxs9("p", { class: "note", children: [
      m.cordonedBy ? t("cordonedBy", { name: m.cordonedBy }) : t("cordoned"),
      m.cordonReason ? ": " + m.cordonReason : ""
    ] }) : null,
    m.hint ? /* @__PURE__ */ jsx10("p", { class: "faint small", children: m.hint }) : null,
    m.pressure?.length ? /* @__PURE__ */ jsx10("p", { class: "note", children: m.pressure.join(", ") }) : null,
    /* @__PURE__ */ jsxs9("dl", { class: "facts small", children: [
      facts.map(
        ([name, value]) => value ? /* @__PURE__ */ jsxs9("div", { children: [
          /* @__PURE__ */ jsx10("dt", { children: name }),
          /* @__PURE__ */ jsx10("dd", { children: value })
        ] }, name) : null
      ),
      /* @__PURE__ */ jsxs9("div", { children: [
        /* @__PURE__ */ jsx10("dt", { children: t("cpuUse") }),
        /* @__PURE__ */ jsx10("dd", { children: t("coresOf", { used: m.cpu.used / 1e3, of: m.cpu.total / 1e3 }) })
      ] }),
      /* @__PURE__ */ jsxs9("div", { children: [
        /* @__PURE__ */ jsx10("dt", { children: t("memoryUse") }),
        /* @__PURE__ */ jsx10("dd", { children: t("gibOf", { used: Math.round(m.memory.used / 102.4) / 10, of: Math.round(m.memory.total / 102.4) / 10 }) })
      ] })
    ] }),
    m.gpus?.length ? /* @__PURE__ */ jsxs9("table", { class: "rows small", children: [
      /* @__PURE__ */ jsx10("thead", { children: /* @__PURE__ */ jsxs9("tr", { children: [
        /* @__PURE__ */ jsx10("th", { class: "num", children: "GPU" }),
        /* @__PURE__ */ jsx10("th", { children: t("health") }),
        /* @__PURE__ */ jsx10("th", { children: t("holder") }),
        /* @__PURE__ */ jsx10("th", { class: "num", children: t("useNow") })
      ] }) }),
      /* @__PURE__ */ jsx10("tbody", { children: m.gpus.map((g) => /* @__PURE__ */ jsxs9("tr", { title: explain(m, g), children: [
        /* @__PURE__ */ jsx10("td", { class: "num", children: g.index }),
        /* @__PURE__ */ jsxs9("td", { class: broken(g) ? "broken" : "", children: [
          maybe("gpu." + g.health, g.health),
          g.reason ? /* @__PURE__ */ jsx10("div", { class: "faint", children: g.reason }) : null
        ] }),
        /* @__PURE__ */ jsx10("td", { children: /* @__PURE__ */ jsx10(Held, { g }) }),
        /* @__PURE__ */ jsx10("td", { class: "num", children: g.use ? Math.round(g.use.utilisation) + " %" : /* @__PURE__ */ jsx10("span", { class: "faint", children: "–" }) })
      ] }, g.index)) })
    ] }) : /* @__PURE__ */ jsx10("p", { class: "faint", children: t("noGPUs") }),
    /* @__PURE__ */ jsx10(Opened, { label: t("overTime"), children: () => /* @__PURE__ */ jsx10(OverTime2, { machine: m.name }) }, m.name),
    me.value?.grants.administrator ? /* @__PURE__ */ jsxs9(Fragment5, { children: [
      /* @__PURE__ */ jsx10("p", { class: "buttons", children: /* @__PURE__ */ jsxs9("button", { type: "button", onClick: () => void copy("paictl node gpu list " + quoted(m.name)), children: [
        /* @__PURE__ */ jsx10(Icon, { name: "copy" }),
        " paictl node gpu list"
      ] }) }),
      /* @__PURE__ */ jsx10(MachineActions, { m }, m.name)
    ] }) : null
  ] });
}

// pkg/portal/web/src/queue.tsx
import { useSignal as useSignal10 } from "./library.js";
import { useEffect as useEffect11 } from "./library.js";
import { jsx as jsx11, jsxs as jsxs10 } from "./library.js";
var columns3 = [
  ["position", (g) => g.positionInVC],
  ["job", (g) => g.job],
  ["user", (g) => g.user],
  ["gpus", (g) => g.gpus],
  ["milliCPU", (g) => g.milliCPU],
  ["memoryMB", (g) => g.memoryMB],
  ["tasks", (g) => g.pods],
  ["priority", (g) => g.priority],
  ["since", (g) => g.since],
  ["reason", (g) => g.reason]
];
function wants(g) {
  if (g.gpus > 0) return t("wantsGPUs", { n: g.gpus });
  if (g.shareOfGPUs) return t("wantsShare", { n: g.shareOfGPUs });
  return g.milliCPU ? t("wantsCPU", { n: g.milliCPU / 1e3 }) : "–";
}
function OverTime3({ vc }) {
  const span = useSignal10("1d");
  const path = { vc };
  return /* @__PURE__ */ jsx11(
    Metrics,
    {
      id: vc,
      span: span.value,
      choose: (x) => span.value = x,
      all: "30d",
      live: true,
      read: (query, signal5) => call("GET /api/v3/virtual-clusters/{vc}/metrics", { path, query: { since: query.since }, signal: signal5 }),
      command: `paictl vc metrics ${quoted(vc)}`,
      curl: (query) => curl("GET /api/v3/virtual-clusters/{vc}/metrics", { path, query })
    }
  );
}
function QueuePage() {
  const { cluster, error } = useCluster("virtualClusters");
  useEffect11(() => {
    document.title = t("queue") + " – paictl";
  }, []);
  const c = cluster.value;
  const all2 = c?.virtualClusters ?? [];
  const asked = place.value.query.get("vc");
  const busiest = [...all2].sort((a, b) => b.waitingGangs - a.waitingGangs)[0];
  const v = all2.find((x) => x.name === asked) ?? (asked ? void 0 : busiest);
  const command2 = "paictl job queue" + (v ? " --vc " + quoted(v.name) : "");
  const gangs = v?.queue ?? [];
  return /* @__PURE__ */ jsxs10("section", { class: "page", children: [
    /* @__PURE__ */ jsxs10("header", { class: "top", children: [
      /* @__PURE__ */ jsx11("h1", { children: t("queue") }),
      /* @__PURE__ */ jsx11("span", { class: "grow" }),
      /* @__PURE__ */ jsx11(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/queue", { query: { vc: v?.name } })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      ),
      /* @__PURE__ */ jsxs10("button", { type: "button", title: t("csvMore"), disabled: !v, onClick: () => save("queue.csv", [csv(gangs, columns3)], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx11(Icon, { name: "down" }),
        " ",
        t("csv")
      ] })
    ] }),
    error.value ? /* @__PURE__ */ jsx11(Problem, { of: error.value }) : null,
    c ? /* @__PURE__ */ jsx11(Sources, { c, names: ["scheduler"] }) : null,
    !c ? error.value ? null : /* @__PURE__ */ jsx11(Loading, {}) : null,
    all2.length > 0 ? /* @__PURE__ */ jsx11("div", { class: "filters", children: /* @__PURE__ */ jsx11("div", { class: "segments", role: "group", "aria-label": t("vc"), children: all2.map((x) => /* @__PURE__ */ jsxs10("button", { type: "button", "aria-pressed": x.name === v?.name, onClick: () => setQuery({ vc: x.name }), children: [
      x.name,
      " ",
      x.waitingGangs ? /* @__PURE__ */ jsx11("span", { class: "count", children: x.waitingGangs }) : null
    ] }, x.name)) }) }) : c && source(c, "scheduler")?.state === "current" ? /* @__PURE__ */ jsx11("p", { class: "empty", children: t("noVCs") }) : null,
    asked && c && !v ? /* @__PURE__ */ jsx11("p", { class: "empty", children: t("noSuchVC", { name: asked }) }) : null,
    v ? /* @__PURE__ */ jsxs10("div", { class: "queue", children: [
      /* @__PURE__ */ jsx11("div", { class: "vcs", children: /* @__PURE__ */ jsx11(VC, { v }) }),
      /* @__PURE__ */ jsx11(Opened, { label: t("overTime"), children: () => /* @__PURE__ */ jsx11(OverTime3, { vc: v.name }) }, v.name),
      gangs.length === 0 ? /* @__PURE__ */ jsx11("p", { class: "empty", children: t("nobodyWaits") }) : /* @__PURE__ */ jsxs10("table", { class: "rows", children: [
        /* @__PURE__ */ jsx11("thead", { children: /* @__PURE__ */ jsxs10("tr", { children: [
          /* @__PURE__ */ jsx11("th", { class: "num", children: "#" }),
          /* @__PURE__ */ jsx11("th", { children: t("name") }),
          /* @__PURE__ */ jsx11("th", { children: t("wants") }),
          /* @__PURE__ */ jsx11("th", { class: "num wide", children: t("tasks") }),
          /* @__PURE__ */ jsx11("th", { class: "num wide", children: t("priority") }),
          /* @__PURE__ */ jsx11("th", { children: t("waitsSince") }),
          /* @__PURE__ */ jsx11("th", { class: "reason", children: t("waitsFor") })
        ] }) }),
        /* @__PURE__ */ jsx11("tbody", { children: gangs.map((g) => {
          const [user, name] = g.job.split("/");
          const mine = g.user && g.user === me.value?.name;
          return /* @__PURE__ */ jsxs10("tr", { class: mine ? "mine" : "", children: [
            /* @__PURE__ */ jsx11("td", { class: "num", children: g.positionInVC }),
            /* @__PURE__ */ jsx11("td", { children: user && name ? /* @__PURE__ */ jsx11("a", { href: address(["jobs", user, name]), children: g.job }) : /* @__PURE__ */ jsx11("span", { class: "faint", children: g.job }) }),
            /* @__PURE__ */ jsx11("td", { children: wants(g) }),
            /* @__PURE__ */ jsx11("td", { class: "num wide", children: g.pods }),
            /* @__PURE__ */ jsx11("td", { class: "num wide", children: g.priority }),
            /* @__PURE__ */ jsx11("td", { children: /* @__PURE__ */ jsx11(Ago, { time: g.since }) }),
            /* @__PURE__ */ jsx11("td", { class: "reason", children: g.reason })
          ] }, g.positionInVC + g.job + g.group);
        }) })
      ] })
    ] }) : null
  ] });
}

// pkg/portal/web/src/notify.ts
import { signal as signal3 } from "./library.js";
var key = "notify";
var ends = ["succeeded", "failed", "stopped"];
var notifies = signal3(possible() && Notification.permission === "granted" && localStorage.getItem(key) === "yes");
function possible() {
  return "Notification" in window;
}
var stop = null;
async function setNotifies(on) {
  if (on && await Notification.requestPermission() !== "granted") return t("notifyRefused");
  localStorage.setItem(key, on ? "yes" : "no");
  notifies.value = on;
  follow();
  return "";
}
function follow() {
  stop?.abort();
  stop = null;
  const user = me.value?.name;
  if (!notifies.value || !user) return;
  stop = new AbortController();
  let known = null;
  const see = (r) => {
    const before = known.get(r.uid);
    known.set(r.uid, r.state);
    if (before !== void 0 && before !== r.state && ends.includes(r.state)) show(r);
  };
  watchJobs({ user, limit: 100 }, stop.signal, {
    whole(rows) {
      if (known) rows.forEach(see);
      else known = new Map(rows.map((r) => [r.uid, r.state]));
    },
    changed: (r) => known && (known.has(r.uid) ? see(r) : known.set(r.uid, r.state)),
    gone: (uid) => void known?.delete(uid)
  }).catch(() => {
  });
}
function show(r) {
  const n = new Notification(r.name, { body: maybe("state." + r.state, r.state), tag: r.uid + r.state });
  n.onclick = () => {
    window.focus();
    go(address(["jobs", r.user, r.name]));
    n.close();
  };
}

// pkg/portal/web/src/profile.tsx
import { useSignal as useSignal11 } from "./library.js";
import { useEffect as useEffect12, useRef as useRef8 } from "./library.js";

// pkg/portal/web/src/sshkey.ts
var types = /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com)$/;
function readKey(text2) {
  const line = text2.trim();
  if (/-----BEGIN|PuTTY-User-Key-File/.test(line)) return "key.private";
  if (/[\r\n]/.test(line)) return "key.lines";
  const [type = "", encoded = "", ...comment] = line.split(/[ \t]+/);
  if (!types.test(type)) return "key.type";
  let bytes;
  try {
    bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
  } catch {
    return "key.cut";
  }
  const view2 = new DataView(bytes.buffer);
  let at = 0;
  let first = "";
  while (at + 4 <= bytes.length) {
    const n = view2.getUint32(at);
    if (at === 0) first = String.fromCharCode(...bytes.slice(4, 4 + Math.min(n, 64)));
    at += 4 + n;
  }
  return at === bytes.length && first === type ? { type, comment: comment.join(" "), bytes } : "key.cut";
}
async function fingerprint(key2) {
  const sum = await crypto.subtle.digest("SHA-256", key2.bytes);
  return "SHA256:" + btoa(String.fromCharCode(...new Uint8Array(sum))).replace(/=+$/, "");
}

// pkg/portal/web/src/profile.tsx
import { Fragment as Fragment6, jsx as jsx12, jsxs as jsxs11 } from "./library.js";
function Part({ title, children }) {
  return /* @__PURE__ */ jsxs11("section", { class: "panel", children: [
    /* @__PURE__ */ jsx12("h2", { children: title }),
    children
  ] });
}
function Profile() {
  const name = me.value.name;
  const { value, error, again } = useRead(name, (signal5) => call("GET /api/v3/users/{user}", { path: { user: name }, signal: signal5 }));
  useEffect12(() => {
    document.title = t("profile") + " – paictl";
  }, []);
  const u = value.value;
  const change = async (next) => {
    const was = value.value.spec;
    value.value = await call("PUT /api/v3/users/{user}", { path: { user: name }, body: { was, spec: { ...was, ...next } } });
  };
  return /* @__PURE__ */ jsxs11("section", { class: "page profile", children: [
    /* @__PURE__ */ jsxs11("header", { class: "top", children: [
      /* @__PURE__ */ jsx12("h1", { children: u?.displayName || name }),
      /* @__PURE__ */ jsx12("span", { class: "grow" }),
      /* @__PURE__ */ jsx12(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl whoami") },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/whoami", {})) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      )
    ] }),
    error.value ? /* @__PURE__ */ jsx12(Problem, { of: error.value, again }) : null,
    !u && !error.value ? /* @__PURE__ */ jsx12(Loading, {}) : null,
    /* @__PURE__ */ jsxs11("div", { class: "panels", children: [
      u ? /* @__PURE__ */ jsx12(Self, { u }) : null,
      u?.spec ? /* @__PURE__ */ jsx12(Names, { u, change }) : null,
      u?.spec ? /* @__PURE__ */ jsx12(Keys, { u, change }) : null,
      /* @__PURE__ */ jsx12(Password, { name }),
      /* @__PURE__ */ jsx12(Tokens, {})
    ] })
  ] });
}
function List2({ names: names2, none: none2 }) {
  return names2.length ? /* @__PURE__ */ jsx12(Fragment6, { children: names2.map((x) => /* @__PURE__ */ jsx12("span", { class: "tag", children: x }, x)) }) : /* @__PURE__ */ jsx12("span", { class: "faint", children: none2 });
}
function Self({ u }) {
  return /* @__PURE__ */ jsxs11(Part, { title: t("account"), children: [
    /* @__PURE__ */ jsxs11("dl", { class: "pairs", children: [
      /* @__PURE__ */ jsxs11("div", { children: [
        /* @__PURE__ */ jsx12("dt", { children: t("userName") }),
        /* @__PURE__ */ jsxs11("dd", { children: [
          u.name,
          u.administrator ? /* @__PURE__ */ jsx12("span", { class: "tag official", children: t("administrator") }) : null
        ] })
      ] }),
      /* @__PURE__ */ jsxs11("div", { children: [
        /* @__PURE__ */ jsx12("dt", { children: t("groups") }),
        /* @__PURE__ */ jsx12("dd", { children: /* @__PURE__ */ jsx12(List2, { names: u.groups ?? [], none: t("noGroups") }) })
      ] }),
      /* @__PURE__ */ jsxs11("div", { children: [
        /* @__PURE__ */ jsx12("dt", { children: t("storages") }),
        /* @__PURE__ */ jsx12("dd", { children: /* @__PURE__ */ jsx12(List2, { names: u.storages ?? [], none: t("noStorages") }) })
      ] }),
      u.pages?.length ? /* @__PURE__ */ jsxs11("div", { children: [
        /* @__PURE__ */ jsx12("dt", { children: t("pages") }),
        /* @__PURE__ */ jsx12("dd", { children: /* @__PURE__ */ jsx12(List2, { names: u.pages, none: "" }) })
      ] }) : null,
      u.identities?.length ? /* @__PURE__ */ jsxs11("div", { children: [
        /* @__PURE__ */ jsx12("dt", { children: t("identities") }),
        /* @__PURE__ */ jsx12("dd", { children: /* @__PURE__ */ jsx12(List2, { names: u.identities.map((i) => i.provider), none: "" }) })
      ] }) : null,
      u.lastSignIn ? /* @__PURE__ */ jsxs11("div", { children: [
        /* @__PURE__ */ jsx12("dt", { children: t("lastSignIn") }),
        /* @__PURE__ */ jsx12("dd", { children: /* @__PURE__ */ jsx12(Ago, { time: u.lastSignIn }) })
      ] }) : null
    ] }),
    /* @__PURE__ */ jsx12("h3", { children: t("vcs") }),
    u.allVirtualClusters || u.administrator ? /* @__PURE__ */ jsx12("p", { children: t("everyVC") }) : null,
    u.virtualClusters?.length ? /* @__PURE__ */ jsx12("ul", { class: "grants", children: u.virtualClusters.map((v) => /* @__PURE__ */ jsxs11("li", { children: [
      /* @__PURE__ */ jsx12("a", { href: address(["jobs"], { vc: v.name, state: "active" }), children: v.name }),
      /* @__PURE__ */ jsx12("span", { class: "faint", children: [t("grant.submit", { priority: v.maxPriority || "prod" }), v.seeJobs ? t("grant.seeJobs") : "", v.hostNetwork ? t("grant.hostNetwork") : ""].filter(Boolean).join(" · ") })
    ] }, v.name)) }) : u.allVirtualClusters || u.administrator ? null : /* @__PURE__ */ jsx12("p", { class: "faint", children: t("noVCs") })
  ] });
}
function Names({ u, change }) {
  const form = useRef8(null);
  const { busy, error, act } = useAct();
  const submit = (e) => {
    e.preventDefault();
    const f = new FormData(form.current);
    const text2 = (name) => String(f.get(name) ?? "").trim() || void 0;
    void act(async () => {
      await change({ displayName: text2("displayName"), email: text2("email"), defaultVirtualCluster: text2("defaultVC") });
      toast(t("done.profile"));
      void begin();
    });
  };
  return /* @__PURE__ */ jsx12(Part, { title: t("nameAndMail"), children: /* @__PURE__ */ jsxs11("form", { ref: form, class: "fields", onSubmit: submit, children: [
    error.value ? /* @__PURE__ */ jsx12(Problem, { of: error.value }) : null,
    /* @__PURE__ */ jsxs11("label", { children: [
      /* @__PURE__ */ jsx12("span", { children: t("displayName") }),
      /* @__PURE__ */ jsx12("input", { name: "displayName", defaultValue: u.displayName, maxLength: 256, autocomplete: "name" })
    ] }),
    /* @__PURE__ */ jsxs11("label", { children: [
      /* @__PURE__ */ jsx12("span", { children: t("email") }),
      /* @__PURE__ */ jsx12("input", { name: "email", type: "email", defaultValue: u.email, autocomplete: "email" })
    ] }),
    /* @__PURE__ */ jsxs11("label", { children: [
      /* @__PURE__ */ jsx12("span", { children: t("defaultVC") }),
      /* @__PURE__ */ jsx12("input", { name: "defaultVC", list: "own-vcs", defaultValue: u.spec?.defaultVirtualCluster, placeholder: "default", maxLength: 63 })
    ] }),
    /* @__PURE__ */ jsx12("datalist", { id: "own-vcs", children: ownVCs().map((name) => /* @__PURE__ */ jsx12("option", { value: name }, name)) }),
    /* @__PURE__ */ jsx12("p", { class: "faint small", children: t("defaultVCHint") }),
    /* @__PURE__ */ jsx12("button", { type: "submit", disabled: busy.value, children: t("save") })
  ] }) });
}
function Key({ k, remove }) {
  const key2 = readKey(k.value);
  const sum = useSignal11("");
  useEffect12(() => {
    if (typeof key2 !== "string") void fingerprint(key2).then((x) => sum.value = x);
  }, [k.value]);
  return /* @__PURE__ */ jsxs11("li", { children: [
    /* @__PURE__ */ jsxs11("div", { children: [
      /* @__PURE__ */ jsx12("b", { children: k.title || typeof key2 !== "string" && key2.comment || t("untitled") }),
      /* @__PURE__ */ jsxs11("p", { class: "faint small", children: [
        typeof key2 === "string" ? "" : key2.type,
        " ",
        /* @__PURE__ */ jsx12("code", { children: sum.value })
      ] })
    ] }),
    /* @__PURE__ */ jsx12("button", { type: "button", class: "square", title: t("remove"), "aria-label": t("remove"), onClick: remove, children: /* @__PURE__ */ jsx12(Icon, { name: "trash" }) })
  ] });
}
function Keys({ u, change }) {
  const form = useRef8(null);
  const wrong = useSignal11("");
  const { busy, error, act } = useAct();
  const all2 = u.sshKeys ?? [];
  const add = (e) => {
    e.preventDefault();
    const f = new FormData(form.current);
    const value = String(f.get("value") ?? "").trim();
    const key2 = readKey(value);
    wrong.value = typeof key2 === "string" ? t(key2) : all2.some((k) => k.value.split(" ")[1] === value.split(/\s+/)[1]) ? t("key.known") : "";
    if (wrong.value || typeof key2 === "string") return;
    void act(async () => {
      await change({ sshKeys: [...all2, { title: String(f.get("title") ?? "").trim() || key2.comment, value }] });
      form.current?.reset();
      toast(t("done.addKey"));
    });
  };
  const remove = (k) => ask({
    title: t("ask.removeKey", { name: k.title || t("untitled") }),
    text: t("ask.removeKey.more"),
    yes: t("remove"),
    danger: true,
    act: () => change({ sshKeys: all2.filter((x) => x !== k) })
  });
  return /* @__PURE__ */ jsxs11(Part, { title: t("sshKeys"), children: [
    all2.length ? /* @__PURE__ */ jsx12("ul", { class: "entries", children: all2.map((k) => /* @__PURE__ */ jsx12(Key, { k, remove: () => remove(k) }, k.value)) }) : /* @__PURE__ */ jsx12("p", { class: "faint", children: t("noKeys") }),
    /* @__PURE__ */ jsxs11("form", { ref: form, class: "fields", onSubmit: add, children: [
      error.value ? /* @__PURE__ */ jsx12(Problem, { of: error.value }) : null,
      /* @__PURE__ */ jsxs11("label", { children: [
        /* @__PURE__ */ jsx12("span", { children: t("publicKey") }),
        /* @__PURE__ */ jsx12("textarea", { name: "value", class: "mono", required: true, rows: 3, spellcheck: false, autocomplete: "off", placeholder: "ssh-ed25519 AAAA… ann@laptop", onInput: () => wrong.value = "" })
      ] }),
      wrong.value ? /* @__PURE__ */ jsx12("p", { class: "bad", role: "alert", children: wrong.value }) : null,
      /* @__PURE__ */ jsxs11("label", { children: [
        /* @__PURE__ */ jsx12("span", { children: t("title") }),
        /* @__PURE__ */ jsx12("input", { name: "title", autocomplete: "off" })
      ] }),
      /* @__PURE__ */ jsx12("button", { type: "submit", disabled: busy.value, children: t("addKey") })
    ] })
  ] });
}
function Password({ name }) {
  const form = useRef8(null);
  const wrong = useSignal11("");
  const { busy, error, act } = useAct();
  const submit = (e) => {
    e.preventDefault();
    const f = new FormData(form.current);
    const text2 = (field) => String(f.get(field) ?? "");
    wrong.value = text2("new") === text2("again") ? "" : t("passwordsDiffer");
    if (wrong.value) return;
    void act(async () => {
      await call("PUT /api/v3/users/{user}/password", { path: { user: name }, body: { oldPassword: text2("old"), password: text2("new") } });
      toSignIn();
    });
  };
  return /* @__PURE__ */ jsx12(Part, { title: t("password"), children: /* @__PURE__ */ jsxs11("form", { ref: form, class: "fields", onSubmit: submit, children: [
    error.value ? /* @__PURE__ */ jsx12(Problem, { of: error.value }) : null,
    /* @__PURE__ */ jsx12("input", { type: "text", name: "username", value: name, autocomplete: "username", hidden: true, readOnly: true }),
    /* @__PURE__ */ jsxs11("label", { children: [
      /* @__PURE__ */ jsx12("span", { children: t("oldPassword") }),
      /* @__PURE__ */ jsx12("input", { name: "old", type: "password", required: true, autocomplete: "current-password" })
    ] }),
    /* @__PURE__ */ jsxs11("label", { children: [
      /* @__PURE__ */ jsx12("span", { children: t("newPassword") }),
      /* @__PURE__ */ jsx12("input", { name: "new", type: "password", required: true, autocomplete: "new-password" })
    ] }),
    /* @__PURE__ */ jsxs11("label", { children: [
      /* @__PURE__ */ jsx12("span", { children: t("newPasswordAgain") }),
      /* @__PURE__ */ jsx12("input", { name: "again", type: "password", required: true, autocomplete: "new-password", onInput: () => wrong.value = "" })
    ] }),
    wrong.value ? /* @__PURE__ */ jsx12("p", { class: "bad", role: "alert", children: wrong.value }) : null,
    /* @__PURE__ */ jsx12("p", { class: "faint small", children: t("passwordEnds") }),
    /* @__PURE__ */ jsx12("button", { type: "submit", disabled: busy.value, children: t("changePassword") })
  ] }) });
}
var scopes = ["read", "submit", "admin", "secrets"];
var lives = ["30", "90", "365", "0"];
function Tokens() {
  const { value, error, again } = useRead("", (signal5) => call("GET /api/v3/tokens", { signal: signal5 }));
  const form = useRef8(null);
  const { busy, error: refused2, act } = useAct();
  const made = useSignal11(null);
  const all2 = value.value?.items ?? [];
  const create = (e) => {
    e.preventDefault();
    const f = new FormData(form.current);
    void act(async () => {
      const body = { label: String(f.get("label") ?? "").trim(), scopes: f.getAll("scopes").map(String), seconds: Number(f.get("days")) * 86400 };
      made.value = await call("POST /api/v3/tokens", { body });
      form.current?.reset();
      again();
    });
  };
  const revoke = (r) => ask({
    title: t("ask.revoke", { name: r.label || maybe("kind." + r.kind, r.kind) }),
    text: t(r.id === me.value?.token.id ? "ask.revoke.own" : "ask.revoke.more"),
    yes: t("revoke"),
    danger: true,
    act: async () => {
      await call("DELETE /api/v3/tokens/{token}", { path: { token: r.id } });
      if (r.id === me.value?.token.id) toSignIn();
      toast(t("done.revoke"));
      again();
    }
  });
  return /* @__PURE__ */ jsxs11("section", { class: "panel wide", children: [
    /* @__PURE__ */ jsx12("h2", { children: t("tokens") }),
    /* @__PURE__ */ jsx12("p", { class: "faint", children: t("tokensHint") }),
    error.value ? /* @__PURE__ */ jsx12(Problem, { of: error.value, again }) : null,
    made.value ? /* @__PURE__ */ jsxs11("div", { class: "made", role: "status", children: [
      /* @__PURE__ */ jsx12("p", { children: t("tokenOnce", { name: made.value.record.label || made.value.record.id }) }),
      /* @__PURE__ */ jsxs11("div", { class: "secret", children: [
        /* @__PURE__ */ jsx12("code", { children: made.value.token }),
        /* @__PURE__ */ jsxs11("button", { type: "button", class: "primary", onClick: () => void copy(made.value.token), children: [
          /* @__PURE__ */ jsx12(Icon, { name: "copy" }),
          " ",
          t("copy")
        ] }),
        /* @__PURE__ */ jsx12("button", { type: "button", onClick: () => made.value = null, children: t("close") })
      ] })
    ] }) : null,
    value.value && all2.length === 0 ? /* @__PURE__ */ jsx12("p", { class: "faint", children: t("noTokens") }) : null,
    all2.length ? /* @__PURE__ */ jsx12("div", { class: "scrolls", tabIndex: 0, children: /* @__PURE__ */ jsxs11("table", { class: "rows", children: [
      /* @__PURE__ */ jsx12("thead", { children: /* @__PURE__ */ jsxs11("tr", { children: [
        /* @__PURE__ */ jsx12("th", { children: t("label") }),
        /* @__PURE__ */ jsx12("th", { children: t("scopes") }),
        /* @__PURE__ */ jsx12("th", { children: t("createdAt") }),
        /* @__PURE__ */ jsx12("th", { children: t("lastUsed") }),
        /* @__PURE__ */ jsx12("th", { children: t("expires") }),
        /* @__PURE__ */ jsx12("th", { children: t("client") }),
        /* @__PURE__ */ jsx12("th", {})
      ] }) }),
      /* @__PURE__ */ jsx12("tbody", { children: all2.map((r) => /* @__PURE__ */ jsxs11("tr", { "data-token": r.id, children: [
        /* @__PURE__ */ jsxs11("td", { children: [
          r.label || /* @__PURE__ */ jsx12("span", { class: "faint", children: maybe("kind." + r.kind, r.kind) }),
          r.id === me.value?.token.id ? /* @__PURE__ */ jsx12("span", { class: "tag", children: t("thisSession") }) : null
        ] }),
        /* @__PURE__ */ jsx12("td", { children: r.scopes?.join(", ") }),
        /* @__PURE__ */ jsx12("td", { children: /* @__PURE__ */ jsx12(Ago, { time: r.created }) }),
        /* @__PURE__ */ jsx12("td", { children: r.used ? /* @__PURE__ */ jsx12(Ago, { time: r.used }) : /* @__PURE__ */ jsx12("span", { class: "faint", children: t("never") }) }),
        /* @__PURE__ */ jsx12("td", { children: r.expires ? /* @__PURE__ */ jsx12(Ago, { time: r.expires }) : /* @__PURE__ */ jsx12("span", { class: "faint", children: t("never") }) }),
        /* @__PURE__ */ jsxs11("td", { class: "client", title: r.client, children: [
          r.client,
          " ",
          /* @__PURE__ */ jsx12("span", { class: "faint", children: r.address })
        ] }),
        /* @__PURE__ */ jsx12("td", { class: "num", children: /* @__PURE__ */ jsx12("button", { type: "button", onClick: () => revoke(r), children: t("revoke") }) })
      ] }, r.id)) })
    ] }) }) : null,
    /* @__PURE__ */ jsxs11("form", { ref: form, class: "fields new-token", onSubmit: create, children: [
      /* @__PURE__ */ jsx12("h3", { children: t("newToken") }),
      refused2.value ? /* @__PURE__ */ jsx12(Problem, { of: refused2.value }) : null,
      /* @__PURE__ */ jsxs11("div", { class: "line", children: [
        /* @__PURE__ */ jsxs11("label", { children: [
          /* @__PURE__ */ jsx12("span", { children: t("label") }),
          /* @__PURE__ */ jsx12("input", { name: "label", required: true, maxLength: 200, autocomplete: "off" })
        ] }),
        /* @__PURE__ */ jsxs11("label", { children: [
          /* @__PURE__ */ jsx12("span", { children: t("validFor") }),
          /* @__PURE__ */ jsx12("select", { name: "days", children: lives.map((x) => /* @__PURE__ */ jsx12("option", { value: x, selected: x === "90", children: x === "0" ? t("untilRevoked") : t("lastDays", { n: x }) }, x)) })
        ] }),
        /* @__PURE__ */ jsxs11("fieldset", { children: [
          /* @__PURE__ */ jsx12("legend", { children: t("scopes") }),
          /* @__PURE__ */ jsx12("div", { class: "choices", children: scopes.map(
            (x) => x === "admin" && !me.value?.grants.administrator ? null : /* @__PURE__ */ jsxs11("label", { class: "tick", title: t(`scope.${x}`), children: [
              /* @__PURE__ */ jsx12("input", { type: "checkbox", name: "scopes", value: x, defaultChecked: x === "read" || x === "submit" }),
              " ",
              x
            ] }, x)
          ) })
        ] }),
        /* @__PURE__ */ jsx12("button", { type: "submit", disabled: busy.value, children: t("createToken") })
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/submit.tsx
import { signal as signal4, useSignal as useSignal14 } from "./library.js";
import { useEffect as useEffect14, useRef as useRef11 } from "./library.js";

// pkg/portal/web/src/draft.ts
var here = /* @__PURE__ */ new Map();
function pageKey() {
  return `draft ${me.value?.name} ${location.pathname.slice(base.length)}${location.search}`;
}
function draftOf(key2) {
  const known = here.get(key2);
  if (known) return known;
  const text2 = sessionStorage.getItem(key2);
  return text2 === null ? null : { text: text2, began: "", secrets: {} };
}
function remember(key2, d) {
  if (d.text && (d.text !== d.began || Object.keys(d.secrets).length)) here.set(key2, d);
  else here.delete(key2);
}
function store(key2) {
  if (!me.value) return;
  const d = here.get(key2);
  const stored = d && d.text !== d.began ? masked(d.text) : null;
  try {
    if (stored === null) sessionStorage.removeItem(key2);
    else sessionStorage.setItem(key2, stored);
  } catch {
  }
}
function forget(key2) {
  here.delete(key2);
  sessionStorage.removeItem(key2);
}
function isMasked(text2) {
  return text2.includes(mask);
}

// pkg/portal/web/src/form.tsx
import { useSignal as useSignal12 } from "./library.js";
import { useRef as useRef9 } from "./library.js";

// pkg/portal/web/src/storages.ts
var indentOf = (line) => /^ */.exec(line)[0].length;
var blank = (line) => /^\s*(#|$)/.test(line);
function read(text2) {
  const lines = text2.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const out = { lines, extras: -1, storages: -1, end: -1, indent: 4, keys: 2, entries: [] };
  const heads = lines.flatMap((line, i2) => /^["']?extras["']?[ \t]*:/.test(line) ? [i2] : []);
  if (heads.length === 0) return /^\s*\{/.test(text2) ? null : out;
  out.extras = heads[0];
  if (heads.length > 1 || !/^extras:[ \t]*(#.*)?\r?\n?$/.test(lines[out.extras])) return null;
  let i = out.extras + 1;
  for (let first = true; i < lines.length && (blank(lines[i]) || indentOf(lines[i]) > 0); i++) {
    const line = lines[i];
    if (blank(line)) continue;
    if (first) out.keys = indentOf(line);
    first = false;
    if (indentOf(line) !== out.keys || !/^ *["']?storages["']?[ \t]*:/.test(line)) continue;
    if (out.storages >= 0 || !/^ *storages:[ \t]*(\[[ \t]*\])?[ \t]*(#.*)?\r?\n?$/.test(line)) return null;
    out.storages = i;
  }
  if (out.storages < 0) return out;
  out.indent = out.keys + 2;
  out.end = out.storages + 1;
  for (i = out.end; i < lines.length; i++) {
    const line = lines[i];
    if (blank(line)) continue;
    const at = indentOf(line);
    const item = /^ *- +(?:\{ *)?name:[ \t]*(["']?)([^"'#{},\s]+)\1[ \t]*(?:,[^}]*)?\}?[ \t]*(#.*)?\r?\n?$/.exec(line);
    if (at < out.keys || at === out.keys && !/^ *-/.test(line)) break;
    if (/^ *-/.test(line) && (out.entries.length === 0 || at === out.indent)) {
      if (!item) return null;
      out.indent = at;
      out.entries.push({ name: item[2], from: i, to: i + 1 });
    } else if (out.entries.length && at > out.indent) out.entries.at(-1).to = i + 1;
    else return null;
    out.end = i + 1;
  }
  return out;
}
function storagesIn(text2) {
  return read(text2)?.entries.map((e) => e.name) ?? null;
}
function withStorage(text2, name, mounted) {
  const list2 = read(text2);
  if (!list2) return text2;
  const lines = [...list2.lines];
  if (!mounted) {
    const e = list2.entries.find((x) => x.name === name);
    if (!e) return text2;
    lines.splice(e.from, e.to - e.from);
    if (list2.entries.length === 1) lines.splice(list2.storages, 1);
    if (list2.entries.length === 1 && !lines.slice(list2.extras + 1).some((line, i, all2) => !blank(line) && indentOf(line) > 0 && all2.slice(0, i).every((x) => blank(x) || indentOf(x) > 0))) lines.splice(list2.extras, 1);
    return lines.join("");
  }
  const end = /\r\n/.test(text2) ? "\r\n" : "\n";
  if (lines.length && !lines.at(-1).endsWith("\n")) lines.push(lines.pop() + end);
  const head = " ".repeat(list2.keys) + "storages:" + end;
  if (list2.extras < 0) lines.push("extras:" + end, head, `    - name: ${name}${end}`);
  else if (list2.storages < 0) lines.splice(list2.extras + 1, 0, head, `${" ".repeat(list2.keys + 2)}- name: ${name}${end}`);
  else {
    if (list2.entries.length === 0) lines[list2.storages] = head;
    lines.splice(list2.end, 0, `${" ".repeat(list2.indent)}- name: ${name}${end}`);
  }
  return lines.join("");
}

// pkg/portal/web/src/form.tsx
import { jsx as jsx13, jsxs as jsxs12 } from "./library.js";
function Parameters({ text: text2, change, done: done2 }) {
  const all2 = parameters(text2);
  const like = useRef9(null);
  if (all2.length === 0) return null;
  return /* @__PURE__ */ jsxs12("form", { class: "parameters", "aria-label": t("parameters"), onSubmit: (e) => e.preventDefault(), onChange: done2, children: [
    /* @__PURE__ */ jsx13("h2", { children: t("parameters") }),
    all2.map((p) => /* @__PURE__ */ jsxs12("label", { children: [
      /* @__PURE__ */ jsx13("span", { children: p.name }),
      /* @__PURE__ */ jsx13(
        "input",
        {
          type: "text",
          name: p.name,
          value: p.value,
          spellcheck: false,
          autocomplete: "off",
          autocapitalize: "off",
          onFocus: () => like.current = p,
          onInput: (e) => change(p.name, e.currentTarget.value, like.current?.name === p.name ? like.current : p)
        }
      )
    ] }, p.name))
  ] });
}
function Secrets({ text: text2, values, change }) {
  const all2 = parameters(text2, "secrets");
  if (all2.length === 0) return null;
  return /* @__PURE__ */ jsxs12("form", { class: "parameters secrets", "aria-label": t("secretsOfJob"), onSubmit: (e) => e.preventDefault(), children: [
    /* @__PURE__ */ jsx13("h2", { children: t("secretsOfJob") }),
    /* @__PURE__ */ jsx13("input", { type: "text", name: "username", autocomplete: "off", hidden: true, readOnly: true }),
    all2.map((p) => /* @__PURE__ */ jsxs12("label", { children: [
      /* @__PURE__ */ jsx13("span", { children: p.name }),
      /* @__PURE__ */ jsx13(
        "input",
        {
          type: "password",
          name: "secret-" + p.name,
          value: values[p.name] ?? "",
          placeholder: t(p.value && p.value !== mask ? "secretInFile" : "secretMissing"),
          autocomplete: "new-password",
          onInput: (e) => change({ ...values, [p.name]: e.currentTarget.value })
        }
      )
    ] }, p.name)),
    /* @__PURE__ */ jsx13("p", { class: "faint small", children: t("secretsHint") })
  ] });
}
function Storages({ text: text2, change }) {
  const all2 = me.value?.grants.storages ?? [];
  if (all2.length === 0) return null;
  const mounted = storagesIn(text2);
  return /* @__PURE__ */ jsxs12("form", { class: "storages", "aria-label": t("storages"), onSubmit: (e) => e.preventDefault(), children: [
    /* @__PURE__ */ jsx13("h2", { children: t("storages") }),
    mounted ? null : /* @__PURE__ */ jsx13("p", { class: "faint small", children: t("storagesInFile") }),
    all2.map((name) => /* @__PURE__ */ jsxs12("label", { class: "tick", children: [
      /* @__PURE__ */ jsx13("input", { type: "checkbox", name: "storage-" + name, checked: mounted?.includes(name) ?? false, disabled: !mounted, onChange: (e) => change(withStorage(text2, name, e.currentTarget.checked)) }),
      /* @__PURE__ */ jsxs12("span", { children: [
        name,
        " ",
        /* @__PURE__ */ jsxs12("small", { children: [
          "/mnt/",
          name
        ] })
      ] })
    ] }, name))
  ] });
}
var mostFiles = 5e4;
var mostBytes = 256 << 20;
function Code({ folder, change }) {
  const offer = useRead("offer", (signal5) => call("GET /api/v3/offer", { signal: signal5 }));
  const field = useRef9(null);
  const packing = useSignal12(false);
  const error = useSignal12(null);
  if (!offer.value.value?.takesCode) return null;
  const choose = async (list2) => {
    const name = list2[0]?.webkitRelativePath.split("/")[0] ?? "";
    const entries = list2.map((file) => ({ path: file.webkitRelativePath.slice(name.length + 1) || file.name, file })).filter((e) => !/^\.git\//.test(e.path));
    if (entries.length === 0) return;
    error.value = null;
    if (entries.length > mostFiles || entries.reduce((n, e) => n + e.file.size, 0) > mostBytes) {
      error.value = new Failure(0, "CodeTooLarge", t("codeTooLarge"));
      return;
    }
    packing.value = true;
    try {
      const { sha256, archive } = await (await load("code")).pack(entries);
      change({ name, files: entries.length, code: { sha256, size: archive.size }, archive });
    } catch (e) {
      error.value = failure(e);
    } finally {
      packing.value = false;
    }
  };
  return /* @__PURE__ */ jsxs12("div", { class: "code-folder", children: [
    /* @__PURE__ */ jsx13("h2", { children: t("codeFolder") }),
    /* @__PURE__ */ jsx13(
      "input",
      {
        ref: (e) => {
          field.current = e;
          if (e) e.webkitdirectory = true;
        },
        type: "file",
        name: "code",
        hidden: true,
        onChange: (e) => {
          void choose([...e.currentTarget.files ?? []]);
          e.currentTarget.value = "";
        }
      }
    ),
    folder ? /* @__PURE__ */ jsxs12("p", { children: [
      /* @__PURE__ */ jsx13("b", { children: folder.name }),
      " ",
      /* @__PURE__ */ jsx13("span", { class: "faint", children: t("codeFiles", { n: folder.files, kib: Math.ceil(folder.code.size / 1024) }) }),
      " ",
      /* @__PURE__ */ jsx13("button", { type: "button", class: "bare", "aria-label": t("codeRemove"), title: t("codeRemove"), onClick: () => change(null), children: /* @__PURE__ */ jsx13(Icon, { name: "close" }) })
    ] }) : null,
    /* @__PURE__ */ jsxs12("button", { type: "button", disabled: packing.value, onClick: () => field.current.click(), children: [
      /* @__PURE__ */ jsx13(Icon, { name: "file" }),
      " ",
      t(packing.value ? "codePacking" : "codeChoose")
    ] }),
    /* @__PURE__ */ jsx13("p", { class: "faint small", children: t("codeHint") }),
    error.value ? /* @__PURE__ */ jsx13(Problem, { of: error.value }) : null
  ] });
}
async function upload(folder) {
  const path = { sha256: folder.code.sha256 };
  try {
    await send("HEAD /api/v3/code/{sha256}", { path });
  } catch (e) {
    if (failure(e).status !== 404) throw e;
    await send("PUT /api/v3/code/{sha256}", { path }, folder.archive);
  }
  return folder.code;
}

// pkg/portal/web/src/editor.tsx
import { useSignal as useSignal13 } from "./library.js";
import { useEffect as useEffect13, useRef as useRef10 } from "./library.js";
import { Fragment as Fragment7, jsx as jsx14, jsxs as jsxs13 } from "./library.js";
function JobFile(field) {
  const way2 = useSignal13("loading");
  const box = useRef10(null);
  const editor = useRef10(null);
  const latest = useRef10(field);
  latest.current = field;
  const speaks = language.value;
  useEffect13(() => {
    let gone = false;
    load("editor").then(
      (m) => {
        if (gone) return;
        editor.current = m.edit(box.current, latest.current.now(), {
          label: t("jobFile"),
          help: t("editorHelp"),
          phrases: speaks === "en" ? {} : phrases(),
          virtualClusters: ownVCs,
          changed: (text2) => latest.current.changed(text2),
          send: () => latest.current.send()
        });
        field.show.current = editor.current.show;
        editor.current.mark(placed(latest.current.findings ?? []));
        way2.value = "editor";
      },
      () => way2.value = "plain"
    );
    return () => {
      gone = true;
      editor.current?.end();
      editor.current = null;
    };
  }, [speaks]);
  useEffect13(() => editor.current?.set(field.now()), [field.text]);
  useEffect13(() => {
    if (field.findings) editor.current?.mark(placed(field.findings));
  }, [field.findings]);
  return /* @__PURE__ */ jsxs13(Fragment7, { children: [
    /* @__PURE__ */ jsx14("div", { ref: box, class: "rich", hidden: way2.value !== "editor" }),
    way2.value === "loading" ? /* @__PURE__ */ jsx14(Loading, {}) : null,
    way2.value === "plain" ? /* @__PURE__ */ jsx14(Plain, { ...field }) : null,
    way2.value === "editor" ? /* @__PURE__ */ jsx14("p", { class: "keys-hint faint", children: t("editorHelp") }) : null
  ] });
}
function placed(findings) {
  return findings.filter((f) => f.line);
}
function Plain({ text: text2, findings, changed: changed2, send: send3, show: show2 }) {
  const area = useRef10(null);
  const gutter = useRef10(null);
  show2.current = (line) => {
    const a = area.current;
    const lines = a.value.split("\n");
    const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    a.focus();
    a.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
    a.scrollTop = Math.max(0, (line - 6) * (a.scrollHeight / lines.length));
  };
  const keys2 = (e) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      send3();
    } else if (e.key === "Enter" && !e.shiftKey) {
      const a = e.currentTarget;
      const line = a.value.slice(a.value.lastIndexOf("\n", a.selectionStart - 1) + 1, a.selectionStart);
      const indent = /^ */.exec(line)[0] + (line.trimEnd().endsWith(":") ? "  " : "");
      if (!indent) return;
      e.preventDefault();
      document.execCommand("insertText", false, "\n" + indent);
    }
  };
  const worst = /* @__PURE__ */ new Map();
  for (const f of findings ?? []) if (f.line) worst.set(f.line, f.severity === "warning" && worst.get(f.line) !== "bad" ? "warn" : "bad");
  return /* @__PURE__ */ jsxs13(Fragment7, { children: [
    /* @__PURE__ */ jsx14("pre", { ref: gutter, class: "gutter", "aria-hidden": "true", children: Array.from({ length: text2.split("\n").length }, (_, i) => /* @__PURE__ */ jsxs13("i", { class: worst.get(i + 1) ?? "", children: [
      i + 1,
      "\n"
    ] }, i)) }),
    /* @__PURE__ */ jsx14(
      "textarea",
      {
        ref: area,
        "aria-label": t("jobFile"),
        spellcheck: false,
        autocomplete: "off",
        autocapitalize: "off",
        wrap: "off",
        value: text2,
        onInput: (e) => changed2(e.currentTarget.value),
        onKeyDown: keys2,
        onScroll: (e) => gutter.current.scrollTop = e.currentTarget.scrollTop
      }
    ),
    /* @__PURE__ */ jsx14("p", { class: "keys-hint faint", children: t("plainEditor") })
  ] });
}
function phrases() {
  return {
    Find: t("find"),
    Replace: t("edit.replace"),
    next: t("next"),
    previous: t("before"),
    all: t("edit.all"),
    "match case": t("edit.case"),
    regexp: t("edit.regexp"),
    "by word": t("edit.word"),
    replace: t("edit.replace"),
    "replace all": t("edit.replaceAll"),
    close: t("close"),
    "Go to line": t("edit.line"),
    go: t("edit.go"),
    Completions: t("edit.completions"),
    Diagnostics: t("check"),
    "No diagnostics": t("edit.noFindings"),
    "Control character": t("edit.control"),
    "folded code": t("edit.folded"),
    "Fold line": t("edit.fold"),
    "Unfold line": t("edit.unfold"),
    unfold: t("edit.unfold")
  };
}

// pkg/portal/web/src/outlook.tsx
import { jsx as jsx15, jsxs as jsxs14 } from "./library.js";
var mostNamed = 4;
function machines(o) {
  const names2 = o.machines ?? [];
  return names2.length ? ": " + names2.slice(0, mostNamed).join(", ") + (names2.length > mostNamed ? " …" : "") : "";
}
function says(o, of) {
  const on = { n: o.machineCount ?? 0, machines: machines(o), why: o.reason ?? "" };
  const some2 = o.startingTasks ? t("outlook.some", { ...on, starting: o.startingTasks, tasks: of.tasks }) + " " : "";
  switch (o.verdict) {
    case "starts":
      if (o.startingTasks) return t("outlook.atLeast", { starting: o.startingTasks, tasks: of.tasks });
      return o.machineCount ? t(o.machineCount === 1 ? "outlook.startsOnOne" : "outlook.startsOn", on) : t("outlook.starts");
    case "preempts":
      return some2 + t("outlook.preempts", { n: o.preempted ?? 0 });
    case "waits":
      return some2 + (o.position ? t("outlook.queue", { ...on, position: o.position, of: o.queueLength ?? o.position, vc: of.virtualCluster }) : t("outlook.waits", on));
    case "never":
      return t("outlook.never", on);
  }
  return t("outlook.unknown", on);
}
var looks = { starts: ["good", "check"], preempts: ["warn", "warn"], waits: ["warn", "queue"], never: ["bad", "warn"] };
function Outlook({ of }) {
  const o = of.outlook;
  if (!o) return null;
  const [look2, icon2] = looks[o.verdict] ?? ["faint", "queue"];
  const per = (o.largest?.gpusPerPod ?? 0) + (o.largest?.cpuCellsPerPod ?? 0);
  return /* @__PURE__ */ jsxs14("div", { class: "outlook", "data-verdict": o.verdict, children: [
    /* @__PURE__ */ jsxs14("p", { class: look2, children: [
      /* @__PURE__ */ jsx15(Icon, { name: icon2 }),
      " ",
      says(o, of)
    ] }),
    o.after?.length ? /* @__PURE__ */ jsx15("p", { class: "faint", children: t("outlook.after", { jobs: o.after.join(", ") }) }) : null,
    o.largest && (o.verdict !== "starts" || o.largest.pods > of.tasks) ? /* @__PURE__ */ jsx15("p", { class: "faint", children: t(o.largest.cpuCellsPerPod ? "outlook.largestCPU" : "outlook.largest", { tasks: o.largest.pods, n: per }) }) : null,
    o.gpus > 0 ? /* @__PURE__ */ jsx15("p", { class: "faint", children: o.gpuHours != null ? t("outlook.hours", { hours: o.gpuHours, gpus: o.gpus }) : t("outlook.hourly", { gpus: o.gpus }) }) : null
  ] });
}

// pkg/portal/web/src/template.ts
var official = "official example";
function isOfficial(x) {
  return x.categories?.includes(official) ?? false;
}
function mayChange(x) {
  return !x.builtIn && (me.value?.grants.administrator === true || x.author === me.value?.name && !isOfficial(x));
}
function specOf(x) {
  const { author: author2, categories: categories2, dataType, dataUrl, description, groups, job, name, public: open, summary, tags, type } = x;
  return { author: author2, categories: categories2, dataType, dataUrl, description, groups, job, name, public: open, summary, tags, type };
}
function nameIn(file) {
  return /^name:[ \t]*(["']?)([^"'\s#]+)\1[ \t]*(?:#.*)?\r?$/m.exec(file)?.[2] ?? "";
}
function renamed(file, name) {
  return /^name:.*$/m.test(file) ? file.replace(/^name:.*$/m, (line) => "name: " + name + (line.endsWith("\r") ? "\r" : "")) : file;
}
async function fileOf(id, query, signal5) {
  const { job } = await call("GET /api/v3/templates/{template}", { path: { template: id }, signal: signal5 });
  const file = filled(job, query);
  const name = nameIn(file);
  if (!name) return file;
  try {
    const free = await call("GET /api/v3/jobs/{user}/{name}/freename", { path: { user: me.value.name, name }, signal: signal5 });
    return renamed(file, free.name);
  } catch (e) {
    if (e instanceof Failure && e.status < 500) return file;
    throw e;
  }
}

// pkg/portal/web/src/submit.tsx
import { Fragment as Fragment8, jsx as jsx16, jsxs as jsxs15 } from "./library.js";
var text = signal4("");
var JobForm = later(() => import("./jobform.js").then((file) => file.JobForm));
var views = ["document", "form"];
var view = signal4(localStorage.getItem("job-view") === "form" ? "form" : "document");
function look(at) {
  view.value = at;
  localStorage.setItem("job-view", at);
}
var none = [];
var pause = 500;
function example() {
  const vc = me.value?.defaultVirtualCluster ? "" : ownVCs()[0];
  return `protocolVersion: 2
name: hello-${Math.random().toString(36).slice(2, 8)}
type: job
prerequisites:
  - name: image
    type: dockerimage
    uri: python:3.12
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance:
      cpu: 1
      memoryMB: 1024
      gpu: 1
    commands:
      - nvidia-smi
      - echo "Hello from $PAI_TASK_INDEX"
${vc ? `defaults:
  virtualCluster: ${vc}
` : ""}`;
}
function Finding({ f, show: show2 }) {
  return /* @__PURE__ */ jsxs15("li", { class: f.severity === "warning" ? "warn" : "bad", children: [
    f.line ? /* @__PURE__ */ jsx16("button", { type: "button", class: "link", onClick: () => show2(f.line, f.column), children: t("line", { n: f.line }) }) : null,
    " ",
    f.message,
    f.remedy ? /* @__PURE__ */ jsxs15("span", { class: "faint", children: [
      " ",
      f.remedy
    ] }) : null
  ] });
}
function Submit() {
  const of = place.value.query.get("clone") ?? "";
  const template = place.value.query.get("template") ?? "";
  const clonedFrom = useRef11(of ? { job: of, uid: place.peek().query.get("uid") ?? void 0 } : void 0);
  const show2 = useRef11(() => {
  });
  const file = useRef11(null);
  const checked = useSignal14(null);
  const refused2 = useSignal14(null);
  const error = useSignal14(null);
  const checking = useSignal14(false);
  const sending = useSignal14(false);
  const loading = useSignal14(false);
  const key2 = useRef11({ text: "", key: "" });
  const page = useRef11(pageKey()).current;
  const draft = useRef11(draftOf(page)).current;
  const began = useRef11(draft?.began ?? "");
  const secrets = useSignal14(draft?.secrets ?? {});
  const restored = useSignal14(draft !== null && (template !== "" || of !== ""));
  const folder = useSignal14(null);
  const first = useRef11(true);
  if (first.current) {
    first.current = false;
    text.value = draft?.text ?? "";
  }
  useEffect14(() => {
    document.title = t("submit") + " – paictl";
    const keeps = () => store(page);
    const leaves = (e) => {
      if (text.peek() && text.peek() !== began.current) e.preventDefault();
    };
    addEventListener("beforeunload", leaves);
    addEventListener("pagehide", keeps);
    return () => {
      removeEventListener("beforeunload", leaves);
      removeEventListener("pagehide", keeps);
      keeps();
    };
  }, []);
  useEffect14(() => {
    remember(page, { text: text.value, began: began.current, secrets: secrets.value });
    const timer = setTimeout(() => store(page), pause);
    return () => clearTimeout(timer);
  }, [text.value, secrets.value]);
  useEffect14(() => {
    if (restored.value || !template && !of) return;
    const stop2 = new AbortController();
    const read2 = async () => {
      if (template) return fileOf(template, place.peek().query, stop2.signal);
      const [user, name] = of.split("/");
      const path = { user: user ?? "", name: name ?? "" };
      const [job, free] = await Promise.all([call("GET /api/v3/jobs/{user}/{name}/brief", { path, signal: stop2.signal }), call("GET /api/v3/jobs/{user}/{name}/freename", { path, signal: stop2.signal })]);
      clonedFrom.current.uid = job.uid;
      return renamed(job.config ?? "", free.name);
    };
    loading.value = true;
    read2().then((file2) => {
      if (!stop2.signal.aborted) began.current = text.value = file2;
    }).catch((e) => {
      if (!stop2.signal.aborted) error.value = failure(e);
    }).finally(() => loading.value = false);
    return () => stop2.abort();
  }, [restored.value]);
  const anew = () => {
    forget(page);
    secrets.value = {};
    text.value = "";
    restored.value = false;
  };
  const sent = revealed(text.value, secrets.value);
  useEffect14(() => {
    checked.value = null;
    refused2.value = null;
    if (!sent.trim()) return;
    const stop2 = new AbortController();
    const timer = setTimeout(async () => {
      checking.value = true;
      try {
        checked.value = await call("POST /api/v3/jobs", { query: { check: true, outlook: true }, body: { text: sent, file: "job.yaml", clonedFrom: clonedFrom.current }, signal: stop2.signal });
      } catch (e) {
        if (!stop2.signal.aborted) refused2.value = failure(e);
      } finally {
        if (!stop2.signal.aborted) checking.value = false;
      }
    }, pause);
    return () => {
      clearTimeout(timer);
      stop2.abort();
      checking.value = false;
    };
  }, [sent]);
  const send3 = async () => {
    const sent2 = revealed(text.peek(), secrets.peek());
    if (sending.value || !sent2.trim()) return;
    sending.value = true;
    error.value = null;
    const request = sent2 + (folder.value?.code.sha256 ?? "");
    if (key2.current.text !== request) key2.current = { text: request, key: crypto.randomUUID() };
    try {
      const code = folder.value ? await upload(folder.value) : void 0;
      const out = await call("POST /api/v3/jobs", { body: { text: sent2, file: "job.yaml", code, clonedFrom: clonedFrom.current }, key: key2.current.key });
      if (template) call("POST /api/v3/templates/{template}/use", { path: { template } }).catch(() => {
      });
      text.value = began.current = "";
      secrets.value = {};
      forget(page);
      go(address(["jobs", out.user, out.name]));
    } catch (e) {
      error.value = failure(e);
    } finally {
      sending.value = false;
    }
  };
  const open = async (f) => {
    if (f) text.value = await f.text();
  };
  const shows2 = (line, column) => {
    look("document");
    requestAnimationFrame(() => show2.current(line, column));
  };
  const result = refused2.value ?? checked.value;
  const findings = result?.findings ?? none;
  return /* @__PURE__ */ jsxs15("section", { class: "page submit", children: [
    /* @__PURE__ */ jsxs15("header", { class: "top", children: [
      /* @__PURE__ */ jsx16("h1", { children: of ? t("cloneOf", { job: of }) : t("newJob") }),
      /* @__PURE__ */ jsx16("span", { class: "grow" }),
      /* @__PURE__ */ jsx16("div", { class: "segments", role: "group", "aria-label": t("view"), children: views.map((v) => /* @__PURE__ */ jsx16("button", { type: "button", "aria-pressed": view.value === v, onClick: () => look(v), children: t(`view.${v}`) }, v)) }),
      /* @__PURE__ */ jsx16(
        "input",
        {
          ref: file,
          type: "file",
          accept: ".yaml,.yml,.json,text/yaml",
          hidden: true,
          onChange: (e) => {
            void open(e.currentTarget.files?.[0]);
            e.currentTarget.value = "";
          }
        }
      ),
      /* @__PURE__ */ jsx16(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("saveTemplate"), icon: "file", run: () => go(address(["templates", "new"], { from: "submit" })) },
            { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl job submit job.yaml") }
          ]
        }
      ),
      /* @__PURE__ */ jsxs15("button", { type: "button", onClick: () => file.current.click(), children: [
        /* @__PURE__ */ jsx16(Icon, { name: "file" }),
        " ",
        t("openFile")
      ] }),
      /* @__PURE__ */ jsx16("button", { type: "button", class: "primary", disabled: sending.value || checking.value || !text.value.trim() || refused2.value !== null, title: "Ctrl Enter", onClick: () => void send3(), children: t(sending.value ? "submitting" : "submitJob") })
    ] }),
    error.value ? /* @__PURE__ */ jsx16(Problem, { of: error.value }) : null,
    restored.value ? /* @__PURE__ */ jsxs15("p", { class: "note", children: [
      t("draftRestored"),
      " ",
      /* @__PURE__ */ jsx16("button", { type: "button", class: "link", onClick: anew, children: t("draftDiscard") })
    ] }) : null,
    isMasked(sent) ? /* @__PURE__ */ jsx16("p", { class: "note", children: t("enterSecrets") }) : null,
    /* @__PURE__ */ jsxs15("div", { class: "editor-and-check", children: [
      view.value === "form" && text.value.trim() ? /* @__PURE__ */ jsx16(
        JobForm,
        {
          text: text.value,
          now: () => text.peek(),
          change: (now2) => text.value = now2,
          show: shows2
        }
      ) : null,
      /* @__PURE__ */ jsxs15(
        "div",
        {
          class: "editor",
          hidden: view.value === "form" && text.value.trim() !== "",
          onDragOver: (e) => e.preventDefault(),
          onDropCapture: (e) => {
            if (!e.dataTransfer?.files.length) return;
            e.preventDefault();
            e.stopPropagation();
            void open(e.dataTransfer.files[0]);
          },
          children: [
            /* @__PURE__ */ jsx16(JobFile, { text: text.value, now: () => text.peek(), findings: result || !text.value.trim() ? findings : null, changed: (now2) => text.value = now2, send: () => void send3(), show: show2 }),
            text.value === "" && !loading.value ? /* @__PURE__ */ jsxs15("div", { class: "nothing", children: [
              /* @__PURE__ */ jsx16("p", { children: t("emptyFile") }),
              /* @__PURE__ */ jsx16("button", { type: "button", onClick: () => text.value = example(), children: t("example") })
            ] }) : null
          ]
        }
      ),
      /* @__PURE__ */ jsxs15("aside", { children: [
        view.value === "document" ? /* @__PURE__ */ jsx16(Parameters, { text: text.value, change: (name, value, like) => text.value = changed(text.value, name, value, like) }) : null,
        /* @__PURE__ */ jsx16(Secrets, { text: text.value, values: secrets.value, change: (values) => secrets.value = values }),
        /* @__PURE__ */ jsx16("h2", { children: t("check") }),
        /* @__PURE__ */ jsxs15("div", { class: "verdict", role: "status", "aria-live": "polite", children: [
          loading.value ? /* @__PURE__ */ jsx16(Loading, {}) : null,
          checking.value ? /* @__PURE__ */ jsx16("p", { class: "faint", children: t("checking") }) : null,
          refused2.value && !checking.value ? findings.length ? /* @__PURE__ */ jsxs15(Fragment8, { children: [
            /* @__PURE__ */ jsxs15("p", { class: "bad", children: [
              /* @__PURE__ */ jsx16(Icon, { name: "warn" }),
              " ",
              t("refused")
            ] }),
            /* @__PURE__ */ jsx16("ul", { class: "findings", children: findings.map((f, i) => /* @__PURE__ */ jsx16(Finding, { f, show: shows2 }, i)) })
          ] }) : /* @__PURE__ */ jsx16(Problem, { of: refused2.value }) : null,
          checked.value && !checking.value ? /* @__PURE__ */ jsxs15(Fragment8, { children: [
            /* @__PURE__ */ jsxs15("p", { class: "good", children: [
              /* @__PURE__ */ jsx16(Icon, { name: "check" }),
              " ",
              t(findings.length ? "warnings" : "fine")
            ] }),
            findings.length ? /* @__PURE__ */ jsx16("ul", { class: "findings", children: findings.map((f, i) => /* @__PURE__ */ jsx16(Finding, { f, show: shows2 }, i)) }) : null,
            /* @__PURE__ */ jsxs15("p", { children: [
              /* @__PURE__ */ jsx16("b", { children: checked.value.name }),
              /* @__PURE__ */ jsx16("br", {}),
              t("willRequest", { tasks: checked.value.tasks, gpus: checked.value.gpus, vc: checked.value.virtualCluster })
            ] }),
            /* @__PURE__ */ jsx16(Outlook, { of: checked.value })
          ] }) : null,
          !text.value.trim() && !loading.value ? /* @__PURE__ */ jsx16("p", { class: "faint", children: t("emptyFile") }) : null
        ] }),
        view.value === "document" ? /* @__PURE__ */ jsx16(Storages, { text: text.value, change: (now2) => text.value = now2 }) : null,
        /* @__PURE__ */ jsx16(Code, { folder: folder.value, change: (now2) => folder.value = now2 }),
        /* @__PURE__ */ jsx16("h2", { children: t("yourVCs") }),
        /* @__PURE__ */ jsx16(VCs, {})
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/templates.tsx
import { useSignal as useSignal15 } from "./library.js";
import { useEffect as useEffect15, useRef as useRef12 } from "./library.js";
import { Fragment as Fragment9, jsx as jsx17, jsxs as jsxs16 } from "./library.js";
var views2 = ["all", "mine", "shared", "official", "starred"];
var orders = ["stars", "uses", "updated", "name"];
function fits(x, view2, label) {
  if (label && !x.tags?.includes(label) && !x.categories?.includes(label)) return false;
  switch (view2) {
    case "mine":
      return x.author === me.value?.name;
    case "shared":
      return x.author !== me.value?.name && !x.builtIn;
    case "official":
      return isOfficial(x);
    case "starred":
      return x.starred;
  }
  return true;
}
function compare(order) {
  return (a, b) => {
    if (a.builtIn !== b.builtIn) return a.builtIn ? 1 : -1;
    const by = order === "name" ? 0 : order === "updated" ? Date.parse(b.updated ?? "0") - Date.parse(a.updated ?? "0") : b[order] - a[order] || b.stars - a.stars;
    return by || a.name.localeCompare(b.name) || a.author.localeCompare(b.author);
  };
}
function Star({ x, changed: changed2 }) {
  const busy = useSignal15(false);
  const press = async () => {
    busy.value = true;
    try {
      changed2(await call(x.starred ? "DELETE /api/v3/templates/{template}/star" : "PUT /api/v3/templates/{template}/star", { path: { template: x.id } }));
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  return /* @__PURE__ */ jsxs16("button", { type: "button", class: "star", "aria-pressed": x.starred, "aria-label": t("star") + ": " + x.stars, title: t(x.starred ? "unstar" : "star"), disabled: busy.value, onClick: () => void press(), children: [
    /* @__PURE__ */ jsx17("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", children: /* @__PURE__ */ jsx17("path", { d: "M8 2l1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5z" }) }),
    x.stars
  ] });
}
function Labels({ x }) {
  const all2 = [...(x.categories ?? []).filter((c) => c !== official), ...x.tags ?? []];
  return /* @__PURE__ */ jsxs16(Fragment9, { children: [
    isOfficial(x) ? /* @__PURE__ */ jsx17("a", { class: "tag official", href: address(["templates"], { view: "official" }), children: t("official") }) : null,
    all2.map((label) => /* @__PURE__ */ jsx17("a", { class: "tag", href: address(["templates"], { label }), children: label }, label))
  ] });
}
function author(x) {
  return x.builtIn ? t("builtIn") : x.author;
}
function sharedWith(x) {
  if (x.public) return t("everyone");
  return x.groups?.length ? x.groups.join(", ") : t("onlyAuthor");
}
function Card({ x, chosen: chosen2, changed: changed2 }) {
  const card = useRef12(null);
  useEffect15(() => {
    if (chosen2) card.current?.scrollIntoView({ block: "nearest" });
  }, [chosen2]);
  return /* @__PURE__ */ jsxs16("article", { ref: card, class: chosen2 ? "template chosen" : "template", children: [
    /* @__PURE__ */ jsxs16("header", { children: [
      /* @__PURE__ */ jsx17("a", { class: "whole", href: address(["templates", x.id]), children: x.name }),
      /* @__PURE__ */ jsx17(Star, { x, changed: changed2 })
    ] }),
    /* @__PURE__ */ jsx17("p", { class: "summary", children: x.summary || /* @__PURE__ */ jsx17("span", { class: "faint", children: t("noSummary") }) }),
    /* @__PURE__ */ jsx17("p", { class: "labels", children: /* @__PURE__ */ jsx17(Labels, { x }) }),
    /* @__PURE__ */ jsxs16("footer", { class: "faint small", children: [
      /* @__PURE__ */ jsx17("span", { children: author(x) }),
      /* @__PURE__ */ jsx17("span", { children: t("usedTimes", { n: x.uses }) }),
      /* @__PURE__ */ jsx17(Ago, { time: x.updated }),
      /* @__PURE__ */ jsx17("span", { title: t("sharedWith"), children: sharedWith(x) })
    ] })
  ] });
}
function Templates() {
  const q = place.value.query;
  const keyword = q.get("keyword") ?? "";
  const view2 = views2.find((x) => x === q.get("view")) ?? "all";
  const order = orders.find((x) => x === q.get("order")) ?? "stars";
  const label = q.get("label") ?? "";
  const mine = view2 === "mine" ? me.value.name : "";
  const search = useRef12(null);
  const at = useSignal15(-1);
  const { value, error, again } = useRead(keyword + "\n" + mine, (signal5) => call("GET /api/v3/templates", { query: { keyword, author: mine }, signal: signal5 }));
  useEffect15(() => {
    document.title = t("templates") + " – paictl";
  }, []);
  useEffect15(() => {
    at.value = -1;
    if (document.activeElement !== search.current) search.current.value = keyword;
  }, [q.toString()]);
  const timer = useRef12(0);
  const typed = (word) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ keyword: word || void 0 }), 250);
  };
  useEffect15(() => () => clearTimeout(timer.current), []);
  const all2 = value.value?.items ?? [];
  const rows = all2.filter((x) => fits(x, view2, label)).sort(compare(order));
  const labels = [.../* @__PURE__ */ new Set([...all2.flatMap((x) => [...x.categories ?? [], ...x.tags ?? []]), ...label ? [label] : []])].filter((x) => x !== official).sort();
  const filtered = keyword !== "" || view2 !== "all" || label !== "";
  const move = (by) => at.value = Math.max(0, Math.min(rows.length - 1, at.value + by));
  useKeys({
    "/": () => search.current?.focus(),
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => {
      const x = rows[at.value];
      if (x) go(address(["templates", x.id]));
    }
  });
  const replaced = (next) => value.value = { items: all2.map((x) => x.id === next.id ? next : x) };
  const command2 = ["paictl job template list"];
  if (mine) command2.push("--mine");
  if (keyword) command2.push("--keyword " + quoted(keyword));
  return /* @__PURE__ */ jsxs16("section", { class: "page", children: [
    /* @__PURE__ */ jsxs16("header", { class: "top", children: [
      /* @__PURE__ */ jsx17("h1", { children: t("templates") }),
      /* @__PURE__ */ jsx17("span", { class: "grow" }),
      /* @__PURE__ */ jsx17(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2.join(" ")) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/templates", { query: { keyword, author: mine } })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      ),
      /* @__PURE__ */ jsxs16("a", { class: "button primary", href: address(["templates", "new"]), children: [
        /* @__PURE__ */ jsx17(Icon, { name: "plus" }),
        " ",
        t("newTemplate")
      ] })
    ] }),
    /* @__PURE__ */ jsxs16("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs16("label", { class: "search", children: [
        /* @__PURE__ */ jsx17(Icon, { name: "search" }),
        /* @__PURE__ */ jsx17("input", { ref: search, type: "search", placeholder: t("searchTemplates"), "aria-label": t("searchTemplates"), defaultValue: keyword, onInput: (e) => typed(e.currentTarget.value), onKeyDown: (e) => e.key === "Escape" && e.currentTarget.blur() }),
        /* @__PURE__ */ jsx17("kbd", { children: "/" })
      ] }),
      /* @__PURE__ */ jsx17("div", { class: "segments", role: "group", "aria-label": t("templates"), children: views2.map((name) => /* @__PURE__ */ jsx17("button", { type: "button", "aria-pressed": view2 === name, onClick: () => setQuery({ view: name === "all" ? void 0 : name }), children: t(`view.${name}`) }, name)) }),
      labels.length > 0 ? /* @__PURE__ */ jsxs16("select", { "aria-label": t("labels"), value: label, onChange: (e) => setQuery({ label: e.currentTarget.value || void 0 }), children: [
        /* @__PURE__ */ jsx17("option", { value: "", children: t("anyLabel") }),
        labels.map((x) => /* @__PURE__ */ jsx17("option", { value: x, children: x }, x))
      ] }) : null,
      /* @__PURE__ */ jsx17("select", { "aria-label": t("order"), value: order, onChange: (e) => setQuery({ order: e.currentTarget.value === "stars" ? void 0 : e.currentTarget.value }), children: orders.map((x) => /* @__PURE__ */ jsx17("option", { value: x, children: t(`order.${x}`) }, x)) })
    ] }),
    error.value ? /* @__PURE__ */ jsx17(Problem, { of: error.value, again }) : null,
    !value.value ? error.value ? null : /* @__PURE__ */ jsx17(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsxs16("div", { class: "empty", children: [
      /* @__PURE__ */ jsx17("p", { children: t(filtered ? "noTemplateMatch" : "noTemplates") }),
      filtered ? /* @__PURE__ */ jsx17("button", { type: "button", onClick: () => go(address(["templates"])), children: t("clearFilters") }) : /* @__PURE__ */ jsx17("p", { class: "faint", children: t("noTemplatesHint") })
    ] }) : /* @__PURE__ */ jsx17("div", { class: "templates", children: rows.map((x, i) => /* @__PURE__ */ jsx17(Card, { x, chosen: i === at.value, changed: replaced }, x.id)) })
  ] });
}
function TemplatePage({ id }) {
  const { value, error, again } = useRead(id, (signal5) => call("GET /api/v3/templates/{template}", { path: { template: id }, signal: signal5 }));
  const x = value.value;
  useEffect15(() => {
    document.title = (x?.name ?? t("templates")) + " – paictl";
  }, [x?.name]);
  if (!x) return error.value ? /* @__PURE__ */ jsx17(Problem, { of: error.value, again }) : /* @__PURE__ */ jsx17(Loading, {});
  if (place.value.query.get("edit")) {
    return /* @__PURE__ */ jsx17(Edit, { title: t("editTemplate", { name: x.name }), spec: specOf(x), store: (spec) => call("PUT /api/v3/templates/{template}", { path: { template: id }, body: { spec, version: x.version } }), done: (next) => {
      value.value = next;
      go(address(["templates", id]));
    }, cancel: address(["templates", id]) });
  }
  return /* @__PURE__ */ jsx17(Shown, { x, changed: (next) => value.value = next });
}
function Shown({ x, changed: took }) {
  const path = { template: x.id };
  const full = x.author === me.value?.name ? x.name : `${x.author}/${x.name}`;
  const values = useSignal15(Object.fromEntries([...place.value.query].filter(([key2]) => key2.startsWith("set."))));
  const file = filled(x.job, new URLSearchParams(values.value));
  const masked2 = x.job.includes("******");
  const change = (name, value) => {
    const had = parameters(x.job).find((p) => p.name === name);
    values.value = { ...values.value, ["set." + name]: had?.value === value ? void 0 : value };
  };
  const given = () => Object.entries(values.value).filter(([, v]) => v !== void 0);
  const submit = masked2 ? `paictl job template show ${quoted(full)} --config > job.yaml` : [`paictl job submit --template ${quoted(full)}`, ...given().map(([k, v]) => "--set " + quoted(k.slice(4) + "=" + v))].join(" ");
  const remove = () => ask({
    title: t("ask.removeTemplate", { name: x.name }),
    text: t("ask.removeTemplate.more"),
    yes: t("remove"),
    danger: true,
    act: async () => {
      await call("DELETE /api/v3/templates/{template}", { path });
      toast(t("done.removeTemplate"));
      go(address(["templates"]));
    }
  });
  return /* @__PURE__ */ jsxs16("section", { class: "page template-page", children: [
    /* @__PURE__ */ jsxs16("header", { class: "top", children: [
      /* @__PURE__ */ jsxs16("nav", { class: "crumbs", children: [
        /* @__PURE__ */ jsx17("a", { href: address(["templates"]), children: t("templates") }),
        /* @__PURE__ */ jsx17(Icon, { name: "chevron" })
      ] }),
      /* @__PURE__ */ jsx17("h1", { title: x.name, children: x.name }),
      /* @__PURE__ */ jsx17("span", { class: "grow" }),
      /* @__PURE__ */ jsxs16("div", { class: "actions", children: [
        /* @__PURE__ */ jsx17(Star, { x, changed: took }),
        /* @__PURE__ */ jsxs16("a", { class: "button primary", href: address(["submit"], { template: x.id, ...Object.fromEntries(given()) }), children: [
          /* @__PURE__ */ jsx17(Icon, { name: "plus" }),
          " ",
          t("use")
        ] }),
        /* @__PURE__ */ jsx17(
          Menu,
          {
            label: t("more"),
            icon: "more",
            items: [
              { label: t("copyPaictl"), icon: "copy", run: () => void copy(`paictl job template show ${quoted(full)}`) },
              { label: t("copySubmit"), icon: "copy", run: () => void copy(submit) },
              { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/templates/{template}", { path })) },
              { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
              null,
              { label: t("copyTemplate"), icon: "plus", run: () => go(address(["templates", "new"], { template: x.id })) },
              ...mayChange(x) ? [{ label: t("edit"), icon: "file", run: () => go(address(["templates", x.id], { edit: "yes" })) }, { label: t("remove"), icon: "trash", danger: true, run: remove }] : []
            ]
          }
        )
      ] })
    ] }),
    x.summary ? /* @__PURE__ */ jsx17("p", { class: "lead", children: x.summary }) : null,
    /* @__PURE__ */ jsxs16("dl", { class: "facts", children: [
      /* @__PURE__ */ jsx17(Fact2, { name: "author", children: author(x) }),
      /* @__PURE__ */ jsx17(Fact2, { name: "sharedWith", children: sharedWith(x) }),
      /* @__PURE__ */ jsx17(Fact2, { name: "uses", children: x.uses }),
      x.builtIn ? null : /* @__PURE__ */ jsxs16(Fragment9, { children: [
        /* @__PURE__ */ jsx17(Fact2, { name: "version", children: x.version }),
        /* @__PURE__ */ jsx17(Fact2, { name: "changedAt", children: /* @__PURE__ */ jsx17(Ago, { time: x.updated }) }),
        /* @__PURE__ */ jsx17(Fact2, { name: "createdAt", children: /* @__PURE__ */ jsx17(Ago, { time: x.created }) })
      ] }),
      x.tags?.length || x.categories?.length ? /* @__PURE__ */ jsx17(Fact2, { name: "labels", children: /* @__PURE__ */ jsx17(Labels, { x }) }) : null,
      x.dataUrl ? /* @__PURE__ */ jsxs16(Fact2, { name: "data", children: [
        x.dataType,
        " ",
        /* @__PURE__ */ jsx17("code", { children: x.dataUrl })
      ] }) : null
    ] }),
    masked2 ? /* @__PURE__ */ jsx17("p", { class: "note", children: t("templateMasked") }) : null,
    /* @__PURE__ */ jsxs16("div", { class: "editor-and-check", children: [
      /* @__PURE__ */ jsxs16("div", { children: [
        x.description ? /* @__PURE__ */ jsx17("div", { class: "description", children: x.description }) : null,
        /* @__PURE__ */ jsxs16("div", { class: "filters", children: [
          /* @__PURE__ */ jsx17("h2", { children: t("jobFile") }),
          /* @__PURE__ */ jsx17("span", { class: "grow" }),
          /* @__PURE__ */ jsxs16("button", { type: "button", onClick: () => void copy(file), children: [
            /* @__PURE__ */ jsx17(Icon, { name: "copy" }),
            " ",
            t("copy")
          ] }),
          /* @__PURE__ */ jsxs16("button", { type: "button", onClick: () => save(`${nameIn(x.job) || "job"}.yaml`, [file], "text/yaml"), children: [
            /* @__PURE__ */ jsx17(Icon, { name: "down" }),
            " ",
            t("download")
          ] })
        ] }),
        /* @__PURE__ */ jsx17("pre", { tabIndex: 0, class: "code", children: file })
      ] }),
      /* @__PURE__ */ jsxs16("aside", { children: [
        /* @__PURE__ */ jsx17(Parameters, { text: file, change, done: () => go(address(place.value.path, Object.fromEntries(given())), true) }),
        /* @__PURE__ */ jsx17("p", { class: "faint", children: t("useHint") })
      ] })
    ] })
  ] });
}
function Fact2({ name, children }) {
  return /* @__PURE__ */ jsxs16("div", { children: [
    /* @__PURE__ */ jsx17("dt", { children: t(name) }),
    /* @__PURE__ */ jsx17("dd", { children })
  ] });
}
function NewTemplate() {
  const of = place.value.query.get("job") ?? "";
  const template = place.value.query.get("template") ?? "";
  const { value, error, again } = useRead(of + "\n" + template, async (signal5) => {
    const mine = (job2) => ({ name: nameIn(job2), author: me.value.name, type: "template", job: job2 });
    if (template) {
      const x = await call("GET /api/v3/templates/{template}", { path: { template }, signal: signal5 });
      return { ...specOf(x), author: me.value.name, public: false, groups: [], categories: x.categories?.filter((c) => c !== official) };
    }
    if (!of) return mine(place.value.query.get("from") === "submit" ? text.value : "");
    const [user, name] = of.split("/");
    const job = await call("GET /api/v3/jobs/{user}/{name}/brief", { path: { user: user ?? "", name: name ?? "" }, signal: signal5 });
    return mine(job.config ?? "");
  });
  useEffect15(() => {
    document.title = t("newTemplate") + " – paictl";
  }, []);
  if (value.value === null) return error.value ? /* @__PURE__ */ jsx17(Problem, { of: error.value, again }) : /* @__PURE__ */ jsx17(Loading, {});
  const spec = value.value;
  return /* @__PURE__ */ jsx17(Edit, { title: template ? t("copyOf", { name: spec.name }) : of ? t("templateOf", { job: of }) : t("newTemplate"), spec, store: (body) => call("POST /api/v3/templates", { body }), done: (x) => go(address(["templates", x.id]), true), cancel: address(template ? ["templates", template] : of ? ["jobs", ...of.split("/")] : ["templates"]) });
}
function words(text2) {
  return text2.split(/[,，]/).map((x) => x.trim()).filter(Boolean);
}
function Edit({ title, spec, store: store2, done: done2, cancel }) {
  const form = useRef12(null);
  const error = useSignal15(null);
  const busy = useSignal15(false);
  const dirty = useRef12(false);
  const open = useSignal15(spec.public ? "public" : spec.groups?.length ? "groups" : "private");
  const groups = [.../* @__PURE__ */ new Set([...spec.groups ?? [], ...me.value?.groups ?? []])].sort();
  useEffect15(() => {
    const leaves = (e) => {
      if (dirty.current) e.preventDefault();
    };
    addEventListener("beforeunload", leaves);
    return () => removeEventListener("beforeunload", leaves);
  }, []);
  const send3 = async (e) => {
    e.preventDefault();
    const f = new FormData(form.current);
    const text2 = (name) => String(f.get(name) ?? "");
    const categories2 = words(text2("categories")).filter((c) => c !== official);
    if (f.get("official")) categories2.push(official);
    busy.value = true;
    error.value = null;
    try {
      const next = await store2({
        ...spec,
        name: text2("name").trim(),
        summary: text2("summary").trim(),
        description: text2("description").replaceAll("\r\n", "\n"),
        categories: categories2,
        tags: words(text2("tags")),
        public: open.value === "public",
        groups: open.value === "groups" ? f.getAll("groups").map(String) : [],
        job: text2("job").replaceAll("\r\n", "\n")
      });
      dirty.current = false;
      toast(t("done.keepTemplate"));
      done2(next);
    } catch (e2) {
      error.value = failure(e2);
      scrollTo(0, 0);
    } finally {
      busy.value = false;
    }
  };
  return /* @__PURE__ */ jsx17("section", { class: "page", children: /* @__PURE__ */ jsxs16("form", { ref: form, class: "fields", onSubmit: (e) => void send3(e), onInput: () => dirty.current = true, children: [
    /* @__PURE__ */ jsxs16("header", { class: "top", children: [
      /* @__PURE__ */ jsx17("h1", { children: title }),
      /* @__PURE__ */ jsx17("span", { class: "grow" }),
      /* @__PURE__ */ jsx17("a", { class: "button", href: cancel, children: t("cancel") }),
      /* @__PURE__ */ jsx17("button", { type: "submit", class: "primary", disabled: busy.value, children: t("save") })
    ] }),
    error.value ? /* @__PURE__ */ jsxs16(Fragment9, { children: [
      /* @__PURE__ */ jsx17(Problem, { of: error.value }),
      error.value.findings.length ? /* @__PURE__ */ jsx17("ul", { class: "findings", children: error.value.findings.map((f, i) => /* @__PURE__ */ jsxs16("li", { children: [
        f.line ? t("line", { n: f.line }) + ": " : "",
        f.message,
        " ",
        f.remedy ? /* @__PURE__ */ jsx17("span", { class: "faint", children: f.remedy }) : null
      ] }, i)) }) : null
    ] }) : null,
    /* @__PURE__ */ jsxs16("div", { class: "columns", children: [
      /* @__PURE__ */ jsxs16("div", { children: [
        /* @__PURE__ */ jsxs16("label", { children: [
          /* @__PURE__ */ jsx17("span", { children: t("name") }),
          /* @__PURE__ */ jsx17("input", { name: "name", required: true, maxLength: 100, defaultValue: spec.name, autocomplete: "off" })
        ] }),
        /* @__PURE__ */ jsxs16("label", { children: [
          /* @__PURE__ */ jsx17("span", { children: t("summary") }),
          /* @__PURE__ */ jsx17("input", { name: "summary", maxLength: 1024, defaultValue: spec.summary, autocomplete: "off" })
        ] }),
        /* @__PURE__ */ jsxs16("label", { children: [
          /* @__PURE__ */ jsx17("span", { children: t("description") }),
          /* @__PURE__ */ jsx17("textarea", { name: "description", rows: 8, defaultValue: spec.description })
        ] }),
        /* @__PURE__ */ jsxs16("label", { children: [
          /* @__PURE__ */ jsx17("span", { children: t("tags") }),
          /* @__PURE__ */ jsx17("input", { name: "tags", defaultValue: spec.tags?.join(", "), autocomplete: "off" }),
          /* @__PURE__ */ jsx17("span", { class: "faint small", children: t("commas") })
        ] }),
        /* @__PURE__ */ jsxs16("label", { children: [
          /* @__PURE__ */ jsx17("span", { children: t("categories") }),
          /* @__PURE__ */ jsx17("input", { name: "categories", defaultValue: spec.categories?.filter((c) => c !== official).join(", "), autocomplete: "off" })
        ] }),
        me.value?.grants.administrator || spec.categories?.includes(official) ? /* @__PURE__ */ jsxs16("label", { class: "tick", children: [
          /* @__PURE__ */ jsx17("input", { type: "checkbox", name: "official", defaultChecked: spec.categories?.includes(official) }),
          " ",
          t("official")
        ] }) : null,
        /* @__PURE__ */ jsxs16("fieldset", { children: [
          /* @__PURE__ */ jsx17("legend", { children: t("sharedWith") }),
          ["private", "groups", "public"].map(
            (x) => x === "groups" && groups.length === 0 ? null : /* @__PURE__ */ jsxs16("label", { class: "tick", children: [
              /* @__PURE__ */ jsx17("input", { type: "radio", name: "open", value: x, checked: open.value === x, onChange: () => open.value = x }),
              " ",
              t(`share.${x}`)
            ] }, x)
          ),
          open.value === "groups" ? /* @__PURE__ */ jsx17("div", { class: "choices", children: groups.map((g) => /* @__PURE__ */ jsxs16("label", { class: "tick", children: [
            /* @__PURE__ */ jsx17("input", { type: "checkbox", name: "groups", value: g, defaultChecked: spec.groups?.includes(g) }),
            " ",
            g
          ] }, g)) }) : null
        ] })
      ] }),
      /* @__PURE__ */ jsxs16("label", { class: "file", children: [
        /* @__PURE__ */ jsx17("span", { children: t("jobFile") }),
        /* @__PURE__ */ jsx17("textarea", { name: "job", required: true, rows: 26, spellcheck: false, autocomplete: "off", autocapitalize: "off", wrap: "off", defaultValue: spec.job }),
        /* @__PURE__ */ jsx17("span", { class: "faint small", children: t("templateSecrets") })
      ] })
    ] })
  ] }) });
}

// pkg/portal/web/src/usage.tsx
import { useEffect as useEffect16 } from "./library.js";
import { Fragment as Fragment10, jsx as jsx18, jsxs as jsxs17 } from "./library.js";
var spans2 = ["7", "30", "90", "month"];
var dimensions = ["vc", "user", "type", "day"];
var day = 864e5;
function begin2(span) {
  const today = new Date(now.peek());
  const [y, m, d] = [today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate()];
  return new Date(span === "month" ? Date.UTC(y, m, 1) : Date.UTC(y, m, d - Number(span) + 1));
}
function hours(seconds, digits = 1) {
  return new Intl.NumberFormat(language.value, { maximumFractionDigits: digits, minimumFractionDigits: digits }).format(seconds / 3600);
}
function held(x) {
  return x.guaranteedSeconds + x.opportunisticSeconds;
}
function percent2(part, whole) {
  return whole > 0 ? new Intl.NumberFormat(language.value, { style: "percent", maximumFractionDigits: 1 }).format(part / whole) : "";
}
function nameOf2(x, by) {
  return (by === "vc" ? x.virtualCluster : by === "user" ? x.user : by === "type" ? x.type : x.period?.slice(0, 10)) ?? "";
}
function byDay(u) {
  const known = new Map((u.items ?? []).map((x) => [x.period?.slice(0, 10), x]));
  const out = [];
  for (let at = Date.parse(u.since.slice(0, 10)); at < Date.parse(u.until); at += day) {
    const date = new Date(at).toISOString().slice(0, 10);
    out.push({ date, x: known.get(date) ?? { guaranteedSeconds: 0, opportunisticSeconds: 0, preemptedSeconds: 0, failedSeconds: 0 } });
  }
  return out;
}
function round(x) {
  const power = 10 ** Math.floor(Math.log10(Math.max(x, 1e-3)));
  return [1, 1.5, 2, 3, 4, 5, 7.5, 10].map((n) => n * power).find((n) => n >= x);
}
var width = 1e3;
var height = 160;
function Chart({ u }) {
  const days = byDay(u);
  const top = round(Math.max(...days.map((d) => held(d.x))) / 3600) * 3600;
  const step = width / days.length;
  const bar = Math.max(step * 0.72, 1);
  const y = (seconds) => height - height * seconds / top;
  const date = new Intl.DateTimeFormat(language.value, { month: "short", day: "numeric", timeZone: "UTC" });
  return /* @__PURE__ */ jsxs17("figure", { class: "chart", children: [
    /* @__PURE__ */ jsxs17("figcaption", { children: [
      ["guaranteed", "opportunisticJobs", "preempted", "failedAttempts"].map((x) => /* @__PURE__ */ jsxs17("span", { class: "key", children: [
        /* @__PURE__ */ jsx18("i", { class: x }),
        " ",
        t(x)
      ] }, x)),
      /* @__PURE__ */ jsx18("span", { class: "grow" }),
      /* @__PURE__ */ jsx18("span", { class: "faint", children: t("hoursADay", { n: hours(top, 0) }) })
    ] }),
    /* @__PURE__ */ jsxs17("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": t("chartOf", { n: hours(held(u.total)), days: days.length }), children: [
      [0, 0.5].map((part) => /* @__PURE__ */ jsx18("line", { x1: "0", x2: width, y1: height * part, y2: height * part }, part)),
      days.map(({ date: name, x }, i) => {
        const lost2 = x.preemptedSeconds + x.failedSeconds;
        const left = i * step + (step - bar) / 2;
        return /* @__PURE__ */ jsxs17("g", { children: [
          /* @__PURE__ */ jsx18("title", { children: `${date.format(Date.parse(name))}: ${hours(held(x))} (${t("guaranteed")} ${hours(x.guaranteedSeconds)}, ${t("opportunisticJobs")} ${hours(x.opportunisticSeconds)}, ${t("preempted")} ${hours(x.preemptedSeconds)}, ${t("failedAttempts")} ${hours(x.failedSeconds)})` }),
          /* @__PURE__ */ jsx18("rect", { class: "whole", x: i * step, y: "0", width: step, height }),
          /* @__PURE__ */ jsx18("rect", { class: "guaranteed", x: left, y: y(x.guaranteedSeconds), width: bar, height: height - y(x.guaranteedSeconds) }),
          /* @__PURE__ */ jsx18("rect", { class: "opportunisticJobs", x: left, y: y(held(x)), width: bar, height: y(x.guaranteedSeconds) - y(held(x)) }),
          /* @__PURE__ */ jsx18("rect", { class: "failedAttempts", x: left, y: y(x.failedSeconds), width: bar / 2, height: height - y(x.failedSeconds) }),
          /* @__PURE__ */ jsx18("rect", { class: "preempted", x: left, y: y(lost2), width: bar / 2, height: y(x.failedSeconds) - y(lost2) })
        ] }, name);
      })
    ] }),
    /* @__PURE__ */ jsxs17("div", { class: "axis faint small", "aria-hidden": "true", children: [
      /* @__PURE__ */ jsx18("span", { children: date.format(Date.parse(days[0].date)) }),
      /* @__PURE__ */ jsx18("span", { children: date.format(Date.parse(days.at(-1).date)) })
    ] })
  ] });
}
var columns4 = (by) => [
  [by === "vc" ? "virtualCluster" : by, (x) => nameOf2(x, by)],
  ["gpuHours", (x) => Number((held(x) / 3600).toFixed(2))],
  ["guaranteed", (x) => Number((x.guaranteedSeconds / 3600).toFixed(2))],
  ["opportunistic", (x) => Number((x.opportunisticSeconds / 3600).toFixed(2))],
  ["preempted", (x) => Number((x.preemptedSeconds / 3600).toFixed(2))],
  ["failed", (x) => Number((x.failedSeconds / 3600).toFixed(2))]
];
function UsagePage() {
  const q = place.value.query;
  const span = spans2.find((x) => x === q.get("span")) ?? "30";
  const of = q.get("of") ?? "me";
  const vc = of.startsWith("vc:") ? of.slice(3) : "";
  const user = of === "me" ? me.value.name : "";
  const chosen2 = dimensions.find((x) => x === q.get("by")) ?? "vc";
  const by = vc && chosen2 === "vc" ? "day" : chosen2;
  const since = begin2(span).toISOString().replace(".000", "");
  const query = { user, vc, since, by: [by] };
  const table = useRead(JSON.stringify(query), (signal5) => call("GET /api/v3/usage", { query, signal: signal5 }));
  const days = useRead(JSON.stringify({ ...query, by: [] }), (signal5) => call("GET /api/v3/usage", { query: { ...query, by: ["day"] }, signal: signal5 }));
  useEffect16(() => {
    document.title = t("usagePage") + " – paictl";
  }, []);
  const rows = [...table.value.value?.items ?? []];
  if (by !== "day") rows.sort((a, b) => held(b) - held(a));
  else rows.reverse();
  const u = table.value.value;
  const total = u?.total;
  const vcs = [.../* @__PURE__ */ new Set([...ownVCs(), ...vc ? [vc] : []])].sort();
  const command2 = ["paictl job usage", "--by " + by, "--since " + since.slice(0, 10)];
  if (user) command2.push("--user " + quoted(user));
  if (vc) command2.push("--vc " + quoted(vc));
  const share = rows.some((x) => x.shareOfGuarantee !== void 0);
  return /* @__PURE__ */ jsxs17("section", { class: "page usage", children: [
    /* @__PURE__ */ jsxs17("header", { class: "top", children: [
      /* @__PURE__ */ jsx18("h1", { children: t("usagePage") }),
      /* @__PURE__ */ jsx18("span", { class: "grow" }),
      /* @__PURE__ */ jsx18(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2.join(" ")) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/usage", { query })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      ),
      /* @__PURE__ */ jsxs17("button", { type: "button", disabled: rows.length === 0, onClick: () => save("gpu-hours.csv", [csv(rows, columns4(by))], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx18(Icon, { name: "down" }),
        " ",
        t("csv")
      ] })
    ] }),
    /* @__PURE__ */ jsxs17("div", { class: "filters", children: [
      /* @__PURE__ */ jsx18("div", { class: "segments", role: "group", "aria-label": t("timeSpan"), children: spans2.map((x) => /* @__PURE__ */ jsx18("button", { type: "button", "aria-pressed": span === x, onClick: () => setQuery({ span: x === "30" ? void 0 : x }), children: x === "month" ? t("thisMonth") : t("lastDays", { n: x }) }, x)) }),
      /* @__PURE__ */ jsxs17("select", { "aria-label": t("usageOf"), value: of, onChange: (e) => setQuery({ of: e.currentTarget.value === "me" ? void 0 : e.currentTarget.value }), children: [
        /* @__PURE__ */ jsx18("option", { value: "me", children: t("usageOfMe") }),
        me.value?.grants.administrator || of === "all" ? /* @__PURE__ */ jsx18("option", { value: "all", children: t("usageOfAll") }) : null,
        vcs.map((v) => /* @__PURE__ */ jsx18("option", { value: "vc:" + v, children: t("usageOfVC", { vc: v }) }, v))
      ] }),
      /* @__PURE__ */ jsx18("div", { class: "segments", role: "group", "aria-label": t("rowsBy"), children: dimensions.map(
        (x) => x === "vc" && vc || x === "user" && user ? null : /* @__PURE__ */ jsx18("button", { type: "button", "aria-pressed": by === x, onClick: () => setQuery({ by: x === "vc" ? void 0 : x }), children: t(`by.${x}`) }, x)
      ) })
    ] }),
    table.error.value ? /* @__PURE__ */ jsx18(Problem, { of: table.error.value, again: table.again }) : null,
    !u || !total ? table.error.value ? null : /* @__PURE__ */ jsx18(Loading, {}) : held(total) === 0 ? /* @__PURE__ */ jsxs17("div", { class: "empty", children: [
      /* @__PURE__ */ jsx18("p", { children: t("noUsage") }),
      /* @__PURE__ */ jsx18("p", { class: "faint", children: t("noUsageHint") })
    ] }) : /* @__PURE__ */ jsxs17(Fragment10, { children: [
      /* @__PURE__ */ jsxs17("dl", { class: "facts totals", children: [
        /* @__PURE__ */ jsx18(Amount, { name: t("gpuHours"), value: hours(held(total)) }),
        /* @__PURE__ */ jsx18(Amount, { name: t("guaranteed"), value: hours(total.guaranteedSeconds), more: percent2(total.guaranteedSeconds, held(total)) }),
        /* @__PURE__ */ jsx18(Amount, { name: t("opportunisticJobs"), value: hours(total.opportunisticSeconds), more: percent2(total.opportunisticSeconds, held(total)) }),
        /* @__PURE__ */ jsx18(Amount, { name: t("preempted"), value: hours(total.preemptedSeconds), more: percent2(total.preemptedSeconds, held(total)) }),
        /* @__PURE__ */ jsx18(Amount, { name: t("failedAttempts"), value: hours(total.failedSeconds), more: percent2(total.failedSeconds, held(total)) })
      ] }),
      days.value.value ? /* @__PURE__ */ jsx18(Chart, { u: days.value.value }) : /* @__PURE__ */ jsx18("div", { class: "chart" }),
      /* @__PURE__ */ jsx18("div", { class: "scrolls", tabIndex: 0, children: /* @__PURE__ */ jsxs17("table", { class: table.busy.value ? "rows old" : "rows", "aria-busy": table.busy.value, children: [
        /* @__PURE__ */ jsx18("thead", { children: /* @__PURE__ */ jsxs17("tr", { children: [
          /* @__PURE__ */ jsx18("th", { children: t(`by.${by}`) }),
          /* @__PURE__ */ jsx18("th", { class: "num", children: t("gpuHours") }),
          /* @__PURE__ */ jsx18("th", { class: "num", children: t("guaranteed") }),
          /* @__PURE__ */ jsx18("th", { class: "num", children: t("opportunisticJobs") }),
          /* @__PURE__ */ jsx18("th", { class: "num", children: t("preempted") }),
          /* @__PURE__ */ jsx18("th", { class: "num", children: t("failedAttempts") }),
          share ? /* @__PURE__ */ jsx18("th", { class: "num", title: t("shareMore"), children: t("share") }) : null
        ] }) }),
        /* @__PURE__ */ jsx18("tbody", { children: rows.map((x) => /* @__PURE__ */ jsxs17("tr", { children: [
          /* @__PURE__ */ jsx18("td", { children: nameOf2(x, by) || /* @__PURE__ */ jsx18("span", { class: "faint", children: t("unknown") }) }),
          /* @__PURE__ */ jsx18("td", { class: "num", children: hours(held(x)) }),
          /* @__PURE__ */ jsx18("td", { class: "num", children: hours(x.guaranteedSeconds) }),
          /* @__PURE__ */ jsx18("td", { class: "num", children: hours(x.opportunisticSeconds) }),
          /* @__PURE__ */ jsx18("td", { class: "num", children: hours(x.preemptedSeconds) }),
          /* @__PURE__ */ jsx18("td", { class: "num", children: hours(x.failedSeconds) }),
          share ? /* @__PURE__ */ jsx18("td", { class: "num", children: x.shareOfGuarantee === void 0 ? "" : percent2(x.shareOfGuarantee, 1) }) : null
        ] }, nameOf2(x, by))) })
      ] }) }),
      /* @__PURE__ */ jsx18("p", { class: "faint small under", children: t("usageHint") })
    ] })
  ] });
}
function Amount({ name, value, more }) {
  return /* @__PURE__ */ jsxs17("div", { children: [
    /* @__PURE__ */ jsx18("dt", { children: name }),
    /* @__PURE__ */ jsxs17("dd", { children: [
      /* @__PURE__ */ jsx18("b", { children: value }),
      " ",
      more ? /* @__PURE__ */ jsx18("span", { class: "faint", children: more }) : null
    ] })
  ] });
}

// pkg/portal/web/src/main.tsx
import { Fragment as Fragment11, jsx as jsx19, jsxs as jsxs18 } from "./library.js";
function Page() {
  const [first, user, name, rest] = place.value.path;
  if (first === void 0) return /* @__PURE__ */ jsx19(Home, {});
  if (first === "jobs" && user === void 0) return /* @__PURE__ */ jsx19(Jobs, {});
  if (first === "jobs" && name !== void 0 && rest === void 0) return /* @__PURE__ */ jsx19(JobPage, { user, name }, user + "/" + name);
  if (first === "submit" && user === void 0) return /* @__PURE__ */ jsx19(Submit, {}, place.value.query.toString());
  if (first === "machines" && user === void 0) return /* @__PURE__ */ jsx19(Machines, {});
  if (first === "queue" && user === void 0) return /* @__PURE__ */ jsx19(QueuePage, {});
  if (first === "usage" && user === void 0) return /* @__PURE__ */ jsx19(UsagePage, {});
  if (first === "profile" && user === void 0) return /* @__PURE__ */ jsx19(Profile, {});
  if (first === "templates" && name === void 0) return user === void 0 ? /* @__PURE__ */ jsx19(Templates, {}) : user === "new" ? /* @__PURE__ */ jsx19(NewTemplate, {}) : /* @__PURE__ */ jsx19(TemplatePage, { id: user }, user);
  if (first === "admin" && rest === void 0) return /* @__PURE__ */ jsx19(Administration, { tab: user, name });
  return /* @__PURE__ */ jsx19("p", { class: "empty", children: t("notFound") });
}
var Admin = later(() => import("./admin.js").then((file) => file.Admin));
function Administration(at) {
  const home = place.value.query.get("else") === "home" && !me.value?.grants.administrator;
  useEffect17(() => {
    if (home) go(address([]), true);
  }, []);
  return home ? /* @__PURE__ */ jsx19(Loading, {}) : /* @__PURE__ */ jsx19(Admin, { ...at });
}
function NavLink({ path, icon: icon2, label, at }) {
  return /* @__PURE__ */ jsxs18("a", { href: address(path), "aria-current": at ? "page" : void 0, title: label, children: [
    /* @__PURE__ */ jsx19(Icon, { name: icon2 }),
    /* @__PURE__ */ jsx19("span", { children: label })
  ] });
}
function theme() {
  return document.documentElement.dataset.theme ?? "auto";
}
function setTheme(name) {
  if (name === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem("theme");
  } else {
    document.documentElement.dataset.theme = name;
    localStorage.setItem("theme", name);
  }
}
function Side() {
  const first = place.value.path[0];
  const chosen2 = useSignal16(theme());
  const leave = () => signOut().catch((e) => toast(failure(e).message));
  return /* @__PURE__ */ jsxs18("nav", { class: "side", children: [
    /* @__PURE__ */ jsxs18("a", { class: "brand", href: base, "aria-label": "paictl: " + t("home"), children: [
      /* @__PURE__ */ jsxs18("svg", { viewBox: "0 0 20 20", "aria-hidden": "true", children: [
        /* @__PURE__ */ jsx19("path", { d: "M2 2h7v7H2zM11 2h7v7h-7zM2 11h7v7H2z" }),
        /* @__PURE__ */ jsx19("path", { class: "lit", d: "M11 11h7v7h-7z" })
      ] }),
      /* @__PURE__ */ jsx19("span", { children: "paictl" })
    ] }),
    /* @__PURE__ */ jsxs18("div", { class: "links", children: [
      /* @__PURE__ */ jsx19(NavLink, { path: [], icon: "home", label: t("home"), at: first === void 0 }),
      /* @__PURE__ */ jsx19(NavLink, { path: ["jobs"], icon: "jobs", label: t("jobs"), at: first === "jobs" }),
      /* @__PURE__ */ jsx19(NavLink, { path: ["submit"], icon: "plus", label: t("submit"), at: first === "submit" }),
      /* @__PURE__ */ jsx19(NavLink, { path: ["templates"], icon: "file", label: t("templates"), at: first === "templates" }),
      /* @__PURE__ */ jsx19(NavLink, { path: ["queue"], icon: "queue", label: t("queue"), at: first === "queue" }),
      /* @__PURE__ */ jsx19(NavLink, { path: ["machines"], icon: "machines", label: t("machines"), at: first === "machines" }),
      /* @__PURE__ */ jsx19(NavLink, { path: ["usage"], icon: "usage", label: t("usagePage"), at: first === "usage" }),
      me.value?.grants.administrator ? /* @__PURE__ */ jsx19(NavLink, { path: ["admin"], icon: "shield", label: t("admin"), at: first === "admin" }) : null
    ] }),
    pages.value.length > 0 ? /* @__PURE__ */ jsxs18("div", { class: "links others", children: [
      /* @__PURE__ */ jsx19("h2", { children: t("pages") }),
      pages.value.map((p) => /* @__PURE__ */ jsxs18("a", { href: p.url, "data-leave": true, target: "_blank", rel: "noreferrer", children: [
        /* @__PURE__ */ jsx19(Icon, { name: "page" }),
        /* @__PURE__ */ jsx19("span", { children: p.name })
      ] }, p.url))
    ] }) : null,
    /* @__PURE__ */ jsx19("div", { class: "person", children: /* @__PURE__ */ jsxs18(
      Menu,
      {
        label: me.value?.name ?? "",
        items: [
          { label: t("profile"), icon: "person", run: () => go(address(["profile"])) },
          null,
          ...["auto", "light", "dark"].map((name) => ({
            label: `${t("theme")}: ${t("theme." + name)}`,
            icon: chosen2.value === name ? "check" : void 0,
            run: () => {
              setTheme(name);
              chosen2.value = name;
            }
          })),
          null,
          ...languages.map(([code, name]) => ({ label: name, icon: language.value === code ? "check" : void 0, run: () => speak(code) })),
          null,
          ...possible() ? [{ label: t("notify"), icon: notifies.value ? "check" : void 0, run: () => void setNotifies(!notifies.value).then((refused2) => refused2 && toast(refused2)) }] : [],
          { label: t("shortcuts"), icon: "keys", run: () => help.value = true },
          { label: t("signOut"), icon: "out", run: () => void leave() }
        ],
        children: [
          /* @__PURE__ */ jsx19("span", { class: "face", "aria-hidden": "true", children: (me.value?.name ?? "?").slice(0, 1).toUpperCase() }),
          /* @__PURE__ */ jsx19("span", { class: "who", children: me.value?.displayName || me.value?.name })
        ]
      }
    ) })
  ] });
}
function Help() {
  const box = useRef13(null);
  useEffect17(() => {
    if (help.value) box.current?.showModal();
    else box.current?.close();
  }, [help.value]);
  return /* @__PURE__ */ jsx19("dialog", { ref: box, onClose: () => help.value = false, onClick: (e) => e.target === box.current && (help.value = false), "aria-labelledby": "keys", children: /* @__PURE__ */ jsxs18("div", { class: "dialog", children: [
    /* @__PURE__ */ jsx19("h2", { id: "keys", children: t("shortcuts") }),
    /* @__PURE__ */ jsx19("dl", { class: "keys", children: all.map(([keys2, text2]) => /* @__PURE__ */ jsxs18("div", { children: [
      /* @__PURE__ */ jsx19("dt", { children: keys2.split("  ").map((k) => /* @__PURE__ */ jsx19("kbd", { children: k }, k)) }),
      /* @__PURE__ */ jsx19("dd", { children: t(text2) })
    ] }, keys2)) }),
    /* @__PURE__ */ jsx19("div", { class: "buttons", children: /* @__PURE__ */ jsx19("button", { type: "button", onClick: () => help.value = false, children: t("close") }) })
  ] }) });
}
function App() {
  if (refused.value && refused.value.status !== 401) {
    return /* @__PURE__ */ jsx19("main", { class: "alone", children: /* @__PURE__ */ jsx19(Problem, { of: refused.value, again: () => void begin() }) });
  }
  if (!me.value) return refused.value ? null : /* @__PURE__ */ jsx19(Loading, {});
  return /* @__PURE__ */ jsxs18(Fragment11, { children: [
    /* @__PURE__ */ jsx19(Side, {}),
    /* @__PURE__ */ jsxs18("main", { children: [
      /* @__PURE__ */ jsx19(Lost, {}),
      /* @__PURE__ */ jsx19(Page, {})
    ] }),
    /* @__PURE__ */ jsx19(Toasts, {}),
    /* @__PURE__ */ jsx19(Asking, {}),
    /* @__PURE__ */ jsx19(Palette, {}),
    /* @__PURE__ */ jsx19(Help, {})
  ] });
}
var icon = document.querySelector("link[rel=icon]");
if (icon) icon.href = icon.href;
start();
listen();
void begin().then(follow);
render(/* @__PURE__ */ jsx19(App, {}), document.getElementById("app"));
