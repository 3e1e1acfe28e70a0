import {
  Ago,
  Failure,
  Loading,
  Problem,
  address,
  call,
  t,
  useRead
} from "./shared.js";

// pkg/portal/web/src/diff.ts
var most = 1e3;
var split = (text) => text.replace(/\n$/, "").split("\n");
function diff(before, after) {
  const a = split(before);
  const b = split(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const lines = (texts, kind) => texts.map((text) => ({ kind, text }));
  return [...lines(a.slice(0, head), "same"), ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...lines(a.slice(a.length - tail), "same")];
}
function middle(a, b) {
  const furthest = [];
  for (let d = 0; d <= Math.min(most, a.length + b.length); d++) {
    const now = new Int32Array(2 * d + 3);
    const was = furthest[d - 1];
    furthest.push(now);
    for (let k = -d; k <= d; k += 2) {
      let x = 0;
      if (was) x = k === -d || k !== d && was[k + d - 1] < was[k + d + 1] ? was[k + d + 1] : was[k + d - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      now[k + d + 1] = x;
      if (x >= a.length && x - k >= b.length) return walked(a, b, furthest);
    }
  }
  return [...a.map((text) => ({ kind: "removed", text })), ...b.map((text) => ({ kind: "added", text }))];
}
function walked(a, b, furthest) {
  const out = [];
  let x = a.length;
  let y = b.length;
  for (let d = furthest.length - 1; d >= 0; d--) {
    const was = furthest[d - 1];
    const k = x - y;
    const down = was !== void 0 && (k === -d || k !== d && was[k + d - 1] < was[k + d + 1]);
    const start = was ? down ? was[k + d + 1] : was[k + d - 1] + 1 : 0;
    while (x > start) {
      out.push({ kind: "same", text: a[--x] });
      y--;
    }
    if (!was) break;
    if (down) out.push({ kind: "added", text: b[--y] });
    else out.push({ kind: "removed", text: a[--x] });
  }
  return out.reverse();
}
function folded(lines, context2) {
  const near = new Uint8Array(lines.length);
  lines.forEach((x, i) => {
    if (x.kind !== "same") near.fill(1, Math.max(0, i - context2), i + context2 + 1);
  });
  if (!near.includes(1)) return [];
  const out = [];
  lines.forEach((x, i) => {
    const last = out[out.length - 1];
    if (near[i]) out.push(x);
    else if (last?.kind === "folded") last.lines++;
    else out.push({ kind: "folded", lines: 1 });
  });
  return out;
}

// pkg/portal/web/src/parent.tsx
import { jsx, jsxs } from "./library.js";
var context = 3;
function Parent({ d }) {
  const from = d.clonedFrom;
  const read = useRead(from?.uid ? d.uid : null, async (signal) => {
    const latest = call("GET /api/v3/jobs/{user}/{name}/brief", { path: { user: from.user, name: from.name }, signal }).catch((e) => {
      if (e instanceof Failure && e.status === 404) return null;
      throw e;
    });
    const [parent, now] = await Promise.all([call("GET /api/v3/jobs/{user}/{name}/parent", { path: { user: d.user, name: d.name }, signal }), latest]);
    return { parent, replaced: now?.uid !== parent.uid };
  });
  if (!from) return null;
  if (!from.uid) return /* @__PURE__ */ jsx("p", { class: "note", children: t("clonedFromHidden") });
  const title = `${from.user}/${from.name}`;
  const value = read.value.value;
  return /* @__PURE__ */ jsxs("section", { class: "parent", "aria-label": t("changes"), children: [
    /* @__PURE__ */ jsxs("p", { children: [
      t("clonedFrom"),
      " ",
      value && !value.replaced ? /* @__PURE__ */ jsx("a", { href: address(["jobs", from.user, from.name]), children: title }) : /* @__PURE__ */ jsx("b", { children: title }),
      " ",
      /* @__PURE__ */ jsxs("span", { class: "faint", children: [
        t("submitted"),
        " ",
        /* @__PURE__ */ jsx(Ago, { time: from.submitted })
      ] }),
      value?.replaced ? /* @__PURE__ */ jsxs("span", { class: "faint", children: [
        " ",
        t("clonedFromReplaced")
      ] }) : null
    ] }),
    read.error.value ? /* @__PURE__ */ jsx(Problem, { of: read.error.value, again: read.again }) : value ? /* @__PURE__ */ jsx(Changes, { before: value.parent.config ?? "", after: d.config ?? "" }) : /* @__PURE__ */ jsx(Loading, {})
  ] });
}
function Changes({ before, after }) {
  if (!before || !after) return null;
  const lines = folded(diff(before, after), context);
  if (!lines.length) return /* @__PURE__ */ jsx("p", { class: "faint", children: t("noChanges") });
  return /* @__PURE__ */ jsx("pre", { tabIndex: 0, class: "code diff", children: lines.map((x, i) => {
    if (x.kind === "folded") return /* @__PURE__ */ jsx("span", { class: "faint", children: `  … ${t("unchangedLines", { n: x.lines })}
` }, i);
    const text = { same: "  ", added: "+ ", removed: "- " }[x.kind] + x.text + "\n";
    return x.kind === "added" ? /* @__PURE__ */ jsx("ins", { children: text }, i) : x.kind === "removed" ? /* @__PURE__ */ jsx("del", { children: text }, i) : /* @__PURE__ */ jsx("span", { children: text }, i);
  }) });
}
export {
  Parent
};
