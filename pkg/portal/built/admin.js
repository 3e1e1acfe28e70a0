import {
  csv
} from "./shared-5.js";
import {
  Canceling,
  Outcome,
  Phase,
  interval,
  isCancelable,
  isFinal,
  operationName,
  requester
} from "./shared-2.js";
import {
  curl,
  quoted,
  useKeys
} from "./shared-3.js";
import {
  begin,
  me,
  ownVCs
} from "./shared-6.js";
import {
  Ago,
  Bar,
  Copied,
  Icon,
  Loading,
  Menu,
  Problem,
  add,
  address,
  ask,
  call,
  copy,
  duration,
  exact,
  failure,
  go,
  maybe,
  place,
  save,
  setQuery,
  t,
  toast,
  useAct,
  useRead
} from "./shared.js";

// pkg/portal/web/src/admin.tsx
import { useEffect as useEffect7 } from "./library.js";

// pkg/portal/web/src/admin-actions.tsx
import { useSignal } from "./library.js";
import { Fragment as Fragment2 } from "./library.js";

// pkg/portal/web/src/admin-parts.tsx
import { useEffect, useRef } from "./library.js";
import { Fragment, jsx, jsxs } from "./library.js";
var some = 200;
function Top({ title, up, children, paictl, curl: curl2 }) {
  useEffect(() => {
    document.title = title + " – paictl";
  }, [title]);
  return /* @__PURE__ */ jsxs("header", { class: "top", children: [
    up ? /* @__PURE__ */ jsxs("nav", { class: "crumbs", children: [
      /* @__PURE__ */ jsx("a", { href: address(["admin", up[0]]), children: up[1] }),
      /* @__PURE__ */ jsx(Icon, { name: "chevron" })
    ] }) : null,
    /* @__PURE__ */ jsx("h1", { title, children: title }),
    /* @__PURE__ */ jsx("span", { class: "grow" }),
    /* @__PURE__ */ jsx(
      Menu,
      {
        label: t("more"),
        icon: "more",
        items: [
          { label: t("copyPaictl"), icon: "copy", run: () => void copy(paictl) },
          { label: t("copyCurl"), icon: "copy", run: () => void copy(curl2) },
          { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
        ]
      }
    ),
    children
  ] });
}
function Search({ label, of = "keyword", value }) {
  const field = useRef(null);
  const timer = useRef(0);
  useKeys({ "/": () => field.current?.focus() });
  useEffect(() => {
    if (document.activeElement !== field.current) field.current.value = value;
  }, [value]);
  const typed = (text) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ [of]: text || void 0 }), 200);
  };
  return /* @__PURE__ */ jsxs("label", { class: "search", children: [
    /* @__PURE__ */ jsx(Icon, { name: "search" }),
    /* @__PURE__ */ jsx("input", { ref: field, type: "search", placeholder: label, "aria-label": label, defaultValue: value, onInput: (e) => typed(e.currentTarget.value), onKeyDown: (e) => e.key === "Escape" && e.currentTarget.blur() }),
    /* @__PURE__ */ jsx("kbd", { children: "/" })
  ] });
}
function Segments({ label, of, value, choices: choices2 }) {
  return /* @__PURE__ */ jsx("div", { class: "segments", role: "group", "aria-label": label, children: choices2.map(([name, text]) => /* @__PURE__ */ jsx("button", { type: "button", "aria-pressed": value === name, onClick: () => setQuery({ [of]: name || void 0 }), children: text }, name)) });
}
var fields = 0;
function Field({ label, hint, children }) {
  const id = useRef("");
  id.current ||= "field-" + ++fields;
  return /* @__PURE__ */ jsxs("div", { class: "field", children: [
    /* @__PURE__ */ jsx("label", { for: id.current, children: label }),
    children(id.current),
    hint ? /* @__PURE__ */ jsx("small", { children: hint }) : null
  ] });
}
function Line({ label, hint, value, set, type = "text", required }) {
  return /* @__PURE__ */ jsx(Field, { label, hint, children: (id) => /* @__PURE__ */ jsx("input", { id, type, value, required, autocomplete: type === "password" ? "new-password" : "off", spellcheck: false, onInput: (e) => set(e.currentTarget.value) }) });
}
function Tick({ label, hint, value, set, disabled }) {
  return /* @__PURE__ */ jsxs("label", { class: "tick", children: [
    /* @__PURE__ */ jsx("input", { type: "checkbox", checked: value, disabled, onChange: (e) => set(e.currentTarget.checked) }),
    /* @__PURE__ */ jsxs("span", { children: [
      label,
      hint ? /* @__PURE__ */ jsx("small", { children: hint }) : null
    ] })
  ] });
}
function Names({ label, hint, value, all, set, add: add2 }) {
  const more = (name) => {
    if (name && !value.includes(name)) set([...value, name]);
  };
  const rest = all?.filter((x) => !value.includes(x));
  return /* @__PURE__ */ jsx(Field, { label, hint, children: (id) => /* @__PURE__ */ jsxs("div", { class: "names", children: [
    value.map((name) => /* @__PURE__ */ jsxs("span", { class: "tag", children: [
      name,
      /* @__PURE__ */ jsx("button", { type: "button", class: "bare", "aria-label": t("admin.removeName", { name }), title: t("admin.removeName", { name }), onClick: () => set(value.filter((x) => x !== name)), children: /* @__PURE__ */ jsx(Icon, { name: "close" }) })
    ] }, name)),
    rest ? /* @__PURE__ */ jsxs(
      "select",
      {
        id,
        value: "",
        disabled: rest.length === 0,
        onChange: (e) => {
          more(e.currentTarget.value);
          e.currentTarget.value = "";
        },
        children: [
          /* @__PURE__ */ jsx("option", { value: "", children: add2 }),
          rest.map((x) => /* @__PURE__ */ jsx("option", { value: x, children: x }, x))
        ]
      }
    ) : /* @__PURE__ */ jsx(
      "input",
      {
        id,
        placeholder: add2,
        autocomplete: "off",
        spellcheck: false,
        onChange: (e) => {
          more(e.currentTarget.value.trim());
          e.currentTarget.value = "";
        },
        onKeyDown: (e) => {
          if (e.key !== "Enter") return;
          e.preventDefault();
          e.currentTarget.dispatchEvent(new Event("change"));
        }
      }
    )
  ] }) });
}
function Pairs({ label, hint, value, set, second }) {
  const change = (i, pair) => set(value.map((x, j) => j === i ? pair : x));
  return /* @__PURE__ */ jsxs("div", { class: "field", role: "group", "aria-label": label, children: [
    /* @__PURE__ */ jsx("span", { class: "label", children: label }),
    value.map((pair, i) => /* @__PURE__ */ jsxs("div", { class: "pair", children: [
      /* @__PURE__ */ jsx("input", { "aria-label": t("admin.provider"), placeholder: t("admin.provider"), value: pair[0], autocomplete: "off", spellcheck: false, onInput: (e) => change(i, [e.currentTarget.value, pair[1]]) }),
      /* @__PURE__ */ jsx("input", { "aria-label": second, placeholder: second, value: pair[1], autocomplete: "off", spellcheck: false, onInput: (e) => change(i, [pair[0], e.currentTarget.value]) }),
      /* @__PURE__ */ jsx("button", { type: "button", class: "square", "aria-label": t("admin.removeName", { name: pair.join("/") }), title: t("admin.removeName", { name: pair.join("/") }), onClick: () => set(value.filter((_, j) => j !== i)), children: /* @__PURE__ */ jsx(Icon, { name: "close" }) })
    ] }, i)),
    /* @__PURE__ */ jsx("div", { children: /* @__PURE__ */ jsx("button", { type: "button", class: "link", onClick: () => set([...value, ["", ""]]), children: t("admin.addPair") }) }),
    hint ? /* @__PURE__ */ jsx("small", { children: hint }) : null
  ] });
}
function Command({ lines, why }) {
  if (lines.length === 0) return null;
  return /* @__PURE__ */ jsxs("div", { class: "command", children: [
    why ? /* @__PURE__ */ jsx("p", { class: "faint small", children: why }) : null,
    lines.map((line) => /* @__PURE__ */ jsxs(Copied, { text: line, children: [
      /* @__PURE__ */ jsx("code", { children: line }),
      /* @__PURE__ */ jsx(Icon, { name: "copy" })
    ] }, line))
  ] });
}
function Refusal({ of, again }) {
  if (!of) return null;
  return /* @__PURE__ */ jsxs(Fragment, { children: [
    /* @__PURE__ */ jsx(Problem, { of }),
    of.status === 409 ? /* @__PURE__ */ jsxs("p", { class: "note", children: [
      t("admin.conflict"),
      " ",
      /* @__PURE__ */ jsx("button", { type: "button", onClick: again, children: t("admin.readAgain") })
    ] }) : null
  ] });
}
function rebased(draft, was, now) {
  const out = { ...now };
  for (const k of Object.keys(now)) if (!same(draft[k], was[k])) out[k] = draft[k];
  return out;
}
function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}
function More({ n, most: most2 }) {
  return n > most2.value ? /* @__PURE__ */ jsxs("footer", { class: "under", children: [
    /* @__PURE__ */ jsx("span", { class: "faint", children: t("admin.shownOf", { n: most2.value, all: n }) }),
    /* @__PURE__ */ jsx("button", { type: "button", onClick: () => most2.value += 1e3, children: t("admin.showMore") })
  ] }) : null;
}

// pkg/portal/web/src/admin-actions.tsx
import { Fragment as Fragment3, jsx as jsx2, jsxs as jsxs2 } from "./library.js";
var columns = [
  ["name", (a) => a.name],
  ["operation", (a) => a.operation],
  ["job", (a) => a.job],
  ["machine", (a) => a.machine],
  ["gpu", (a) => a.gpu],
  ["by", (a) => `${a.by.kind} ${a.by.name}`],
  ["phase", (a) => a.phase],
  ["dryRun", (a) => a.dryRun ?? false],
  ["created", (a) => a.created],
  ["started", (a) => a.started],
  ["ended", (a) => a.ended],
  ["reason", (a) => a.reason],
  ["message", (a) => a.message]
];
var choices = { open: ["New", "Pending", "Noticed", "Acting"], ended: ["Succeeded", "Failed", "Refused", "Expired", "Canceled"] };
var page = 100;
function Target({ a }) {
  const [user, name] = (a.job ?? "").split("/");
  if (user && name) return /* @__PURE__ */ jsx2("a", { href: address(["jobs", user, name]), children: a.job });
  return /* @__PURE__ */ jsxs2("a", { href: address(["machines"], { machine: a.machine }), children: [
    a.machine,
    a.gpu === void 0 ? "" : ` GPU ${a.gpu}`
  ] });
}
function Details({ row, cancel }) {
  const { value, error } = useRead(row.name + row.phase, (signal) => call("GET /api/v3/actions/{action}", { path: { action: row.name }, signal }), (a2) => interval(a2 ? [a2] : null));
  const a = value.value ?? row;
  const facts = [
    [t("name"), a.name],
    [t("reason"), a.reason],
    [t("action.grace"), a.graceSeconds ? duration(a.graceSeconds * 1e3) : t("action.now")],
    [t("started"), a.started && exact(a.started)],
    [t("ended"), a.ended && exact(a.ended)],
    [t("admin.expires"), isFinal(a) ? void 0 : exact(a.notAfter)],
    [t("admin.withdrawn"), a.canceled]
  ];
  return /* @__PURE__ */ jsxs2("div", { class: "open", children: [
    error.value ? /* @__PURE__ */ jsx2(Problem, { of: error.value }) : null,
    /* @__PURE__ */ jsx2(Outcome, { a }),
    /* @__PURE__ */ jsx2("dl", { class: "facts", children: facts.map(
      ([name, text]) => text ? /* @__PURE__ */ jsxs2("div", { children: [
        /* @__PURE__ */ jsx2("dt", { children: name }),
        /* @__PURE__ */ jsx2("dd", { children: text })
      ] }, name) : null
    ) }),
    /* @__PURE__ */ jsx2(Command, { lines: [`paictl action get ${quoted(a.name)}`] }),
    isCancelable(a) ? /* @__PURE__ */ jsx2("p", { children: /* @__PURE__ */ jsx2("button", { type: "button", class: "danger", onClick: cancel, children: t("action.cancel") }) }) : null
  ] });
}
function Actions() {
  const q = place.value.query;
  const [choice, machine, job, open] = [q.get("show") ?? "", q.get("machine") ?? "", q.get("job") ?? "", q.get("open")];
  const query = { phase: choices[choice], machine: machine || void 0, job: job || void 0, limit: page };
  const older = useSignal({ of: "", items: [], next: "" });
  const canceling = useSignal(null);
  const key = JSON.stringify(query);
  const { value, error, again } = useRead(key, (signal) => call("GET /api/v3/actions", { query, signal }), (found) => interval(found?.items));
  const first = value.value?.items ?? [];
  const known = new Set(first.map((a) => a.name));
  const more = older.value.of === key ? older.value : { of: key, items: [], next: value.value?.next ?? "" };
  const rows = [...first, ...more.items.filter((a) => !known.has(a.name))];
  const next = async () => {
    const found = await call("GET /api/v3/actions", { query: { ...query, cursor: more.next } });
    older.value = { of: key, items: [...more.items, ...found.items ?? []], next: found.next ?? "" };
  };
  const flags = [...choices[choice] ? ["--phase " + choices[choice].join(",")] : [], ...machine ? ["--machine " + quoted(machine)] : [], ...job ? ["--job " + quoted(job)] : []];
  return /* @__PURE__ */ jsxs2(Fragment3, { children: [
    /* @__PURE__ */ jsx2(Top, { title: t("admin.tab.actions"), paictl: ["paictl action list", ...flags].join(" "), curl: curl("GET /api/v3/actions", { query }), children: /* @__PURE__ */ jsxs2("button", { type: "button", title: t("csvMore"), disabled: !value.value, onClick: () => save("actions.csv", [csv(rows, columns)], "text/csv;charset=utf-8"), children: [
      /* @__PURE__ */ jsx2(Icon, { name: "down" }),
      " ",
      t("csv")
    ] }) }),
    /* @__PURE__ */ jsxs2("div", { class: "filters", children: [
      /* @__PURE__ */ jsx2(Search, { label: t("admin.ofMachine"), of: "machine", value: machine }),
      /* @__PURE__ */ jsx2(
        Segments,
        {
          label: t("state"),
          of: "show",
          value: choice,
          choices: [
            ["", t("state.all")],
            ["open", t("admin.openActions")],
            ["ended", t("admin.endedActions")]
          ]
        }
      ),
      job ? /* @__PURE__ */ jsxs2("span", { class: "tag", children: [
        job,
        /* @__PURE__ */ jsx2("button", { type: "button", class: "bare", "aria-label": t("admin.removeName", { name: job }), onClick: () => setQuery({ job: void 0 }), children: /* @__PURE__ */ jsx2(Icon, { name: "close" }) })
      ] }) : null
    ] }),
    error.value ? /* @__PURE__ */ jsx2(Problem, { of: error.value, again }) : null,
    !value.value ? error.value ? null : /* @__PURE__ */ jsx2(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsx2("p", { class: "empty", children: t(choice || machine || job ? "admin.noActionHere" : "admin.noAction") }) : /* @__PURE__ */ jsxs2("table", { class: "rows requested", children: [
      /* @__PURE__ */ jsx2("thead", { children: /* @__PURE__ */ jsxs2("tr", { children: [
        /* @__PURE__ */ jsx2("th", { children: t("admin.operation") }),
        /* @__PURE__ */ jsx2("th", { children: t("admin.target") }),
        /* @__PURE__ */ jsx2("th", { children: t("state") }),
        /* @__PURE__ */ jsx2("th", { class: "wide", children: t("admin.by") }),
        /* @__PURE__ */ jsx2("th", { class: "c-time", children: t("admin.requested") })
      ] }) }),
      /* @__PURE__ */ jsx2("tbody", { children: rows.map((a) => /* @__PURE__ */ jsxs2(Fragment2, { children: [
        /* @__PURE__ */ jsxs2("tr", { children: [
          /* @__PURE__ */ jsx2("td", { class: "c-name", children: /* @__PURE__ */ jsxs2("button", { type: "button", class: "bare whole", "aria-expanded": open === a.name, onClick: () => setQuery({ open: open === a.name ? void 0 : a.name }), children: [
            /* @__PURE__ */ jsx2(Icon, { name: open === a.name ? "drop" : "chevron" }),
            " ",
            operationName(a)
          ] }) }),
          /* @__PURE__ */ jsx2("td", { class: "long", children: /* @__PURE__ */ jsx2("span", { class: "above", children: /* @__PURE__ */ jsx2(Target, { a }) }) }),
          /* @__PURE__ */ jsx2("td", { children: /* @__PURE__ */ jsx2(Phase, { a }) }),
          /* @__PURE__ */ jsx2("td", { class: "wide", children: requester(a) }),
          /* @__PURE__ */ jsx2("td", { class: "c-time", children: /* @__PURE__ */ jsx2(Ago, { time: a.created }) })
        ] }),
        open === a.name ? /* @__PURE__ */ jsx2("tr", { class: "opened", children: /* @__PURE__ */ jsx2("td", { colSpan: 5, children: /* @__PURE__ */ jsx2(Details, { row: a, cancel: () => canceling.value = a }) }) }) : /* @__PURE__ */ jsx2("tr", { class: "why-row", children: /* @__PURE__ */ jsxs2("td", { colSpan: 5, class: "long", children: [
          a.reason,
          a.message ? /* @__PURE__ */ jsx2("div", { class: "faint", children: a.message }) : null
        ] }) })
      ] }, a.name)) })
    ] }),
    more.next ? /* @__PURE__ */ jsx2("footer", { class: "under", children: /* @__PURE__ */ jsx2("button", { type: "button", onClick: () => void next(), children: t("admin.showMore") }) }) : null,
    canceling.value ? /* @__PURE__ */ jsx2(
      Canceling,
      {
        a: canceling.value,
        end: () => {
          canceling.value = null;
          again();
        }
      }
    ) : null
  ] });
}

// pkg/portal/web/src/admin-alerts.tsx
import { useSignal as useSignal3 } from "./library.js";

// pkg/portal/web/src/admin-silences.tsx
import { useSignal as useSignal2 } from "./library.js";
import { useEffect as useEffect2, useRef as useRef2 } from "./library.js";
import { jsx as jsx3, jsxs as jsxs3 } from "./library.js";
var telling = ["alertname", "node", "node_name", "user", "job_name", "service", "gpu", "minor_number", "vc"];
var signs = ["=", "=~", "!=", "!~"];
function signOf(m) {
  return (m.not ? "!" : m.regex ? "=" : "") + (m.regex ? "~" : "=");
}
function textOf(m) {
  return m.label + signOf(m) + m.value;
}
function matches(a, all) {
  try {
    return all.length > 0 && all.every((m) => {
      const value = a.labels?.[m.label] ?? "";
      return (m.regex ? new RegExp(`^(?:${m.value})$`).test(value) : value === m.value) !== (m.not ?? false);
    });
  } catch {
    return null;
  }
}
function matchersOf(a) {
  return telling.flatMap((label) => a.labels?.[label] ? [{ label, value: a.labels[label] }] : []);
}
var times = [1800, 3600, 7200, 14400, 28800, 86400, 259200, 604800, 2592e3];
function command(all, seconds, reason) {
  const name = all.find((m) => m.label === "alertname" && !m.regex && !m.not);
  const rest = all.filter((m) => m !== name).map((m) => " --match " + quoted(textOf(m)));
  return `paictl alert silence${name ? " " + quoted(name.value) : ""}${rest.join("")} --for ${seconds}s --reason ${quoted(reason.trim() || t("admin.reasonHere"))}`;
}
function Row({ m, i, change, remove }) {
  return /* @__PURE__ */ jsxs3("div", { class: "matcher", children: [
    /* @__PURE__ */ jsx3("input", { "aria-label": t("admin.label", { n: i + 1 }), placeholder: "alertname", value: m.label, required: true, autocomplete: "off", spellcheck: false, onInput: (e) => change({ ...m, label: e.currentTarget.value.trim() }) }),
    /* @__PURE__ */ jsx3("select", { "aria-label": t("admin.comparison", { n: i + 1 }), value: signOf(m), onChange: (e) => change({ label: m.label, value: m.value, regex: e.currentTarget.value.endsWith("~") || void 0, not: e.currentTarget.value.startsWith("!") || void 0 }), children: signs.map((s) => /* @__PURE__ */ jsx3("option", { value: s, children: s }, s)) }),
    /* @__PURE__ */ jsx3("input", { "aria-label": t("admin.labelValue", { n: i + 1 }), value: m.value, autocomplete: "off", spellcheck: false, onInput: (e) => change({ ...m, value: e.currentTarget.value }) }),
    /* @__PURE__ */ jsx3("button", { type: "button", class: "square", "aria-label": t("admin.removeName", { name: m.label }), title: t("admin.removeName", { name: m.label }), onClick: remove, children: /* @__PURE__ */ jsx3(Icon, { name: "close" }) })
  ] });
}
function Silencing({ of, alerts, end }) {
  const dialog = useRef2(null);
  const all = useSignal2(of.length ? of : [{ label: "alertname", value: "" }]);
  const seconds = useSignal2(7200);
  const reason = useSignal2("");
  const { busy, error, act } = useAct();
  useEffect2(() => dialog.current.showModal(), []);
  const body = { matchers: all.value, seconds: seconds.value, reason: reason.value.trim() };
  const found = alerts.map((a) => matches(a, all.value));
  const n = found.filter(Boolean).length;
  const change = (i, m) => all.value = all.value.flatMap((x, j) => i !== j ? [x] : m ? [m] : []);
  const send = () => act(async () => {
    const s = await call("POST /api/v3/silences", { body });
    toast(t("admin.silenced", { n: s.alerts }));
    end(true);
  });
  return /* @__PURE__ */ jsx3("dialog", { ref: dialog, class: "request", onClose: () => end(false), onClick: (e) => e.target === dialog.current && end(false), "aria-labelledby": "silence", children: /* @__PURE__ */ jsxs3(
    "form",
    {
      class: "dialog fields",
      onSubmit: (e) => {
        e.preventDefault();
        void send();
      },
      children: [
        /* @__PURE__ */ jsx3("h2", { id: "silence", children: t("admin.silenceTitle") }),
        /* @__PURE__ */ jsx3("p", { children: t("admin.silenceMore") }),
        /* @__PURE__ */ jsxs3("fieldset", { class: "matchers", children: [
          /* @__PURE__ */ jsx3("legend", { children: t("admin.matchers") }),
          all.value.map((m, i) => /* @__PURE__ */ jsx3(Row, { m, i, change: (now) => change(i, now), remove: () => change(i, null) }, i)),
          /* @__PURE__ */ jsx3("button", { type: "button", class: "link", onClick: () => all.value = [...all.value, { label: "", value: "" }], children: t("admin.addMatcher") })
        ] }),
        /* @__PURE__ */ jsx3("p", { role: "status", children: /* @__PURE__ */ jsx3("b", { children: found.includes(null) ? t("admin.badExpression") : t("admin.matchesNow", { n }) }) }),
        /* @__PURE__ */ jsxs3("label", { children: [
          t("admin.silenceFor"),
          /* @__PURE__ */ jsx3("select", { name: "for", value: String(seconds.value), onChange: (e) => seconds.value = Number(e.currentTarget.value), children: times.map((s) => /* @__PURE__ */ jsx3("option", { value: String(s), children: duration(s * 1e3).replace(/ 0[hms]$/, "") }, s)) })
        ] }),
        /* @__PURE__ */ jsxs3("label", { children: [
          t("reason"),
          /* @__PURE__ */ jsx3("input", { name: "reason", required: true, maxLength: 500, autocomplete: "off", value: reason.value, onInput: (e) => reason.value = e.currentTarget.value })
        ] }),
        /* @__PURE__ */ jsxs3("div", { class: "commands", children: [
          /* @__PURE__ */ jsxs3(Copied, { text: command(all.value, seconds.value, reason.value), children: [
            /* @__PURE__ */ jsx3("code", { children: command(all.value, seconds.value, reason.value) }),
            " ",
            /* @__PURE__ */ jsx3(Icon, { name: "copy" })
          ] }),
          /* @__PURE__ */ jsxs3(Copied, { text: curl("POST /api/v3/silences", { body }), children: [
            "curl ",
            /* @__PURE__ */ jsx3(Icon, { name: "copy" })
          ] })
        ] }),
        error.value ? /* @__PURE__ */ jsx3(Problem, { of: error.value }) : null,
        /* @__PURE__ */ jsxs3("div", { class: "buttons", children: [
          /* @__PURE__ */ jsx3("button", { type: "button", onClick: () => end(false), children: t("cancel") }),
          /* @__PURE__ */ jsx3("button", { type: "submit", class: "primary", disabled: busy.value || !reason.value.trim() || all.value.length === 0, children: t("admin.silence") })
        ] })
      ]
    }
  ) });
}
function SilenceList({ all, changed }) {
  const end = (s) => ask({
    title: t("admin.askUnsilence"),
    text: t("admin.askUnsilenceMore", { matchers: (s.matchers ?? []).map(textOf).join(", ") }),
    yes: t("admin.unsilence"),
    danger: false,
    act: async () => {
      await call("DELETE /api/v3/silences/{silence}", { path: { silence: s.id } });
      toast(t("admin.unsilenced"));
      changed();
    }
  });
  if (all.length === 0) return /* @__PURE__ */ jsx3("p", { class: "faint", children: t("admin.noSilences") });
  return /* @__PURE__ */ jsxs3("table", { class: "rows silences", children: [
    /* @__PURE__ */ jsx3("thead", { children: /* @__PURE__ */ jsxs3("tr", { children: [
      /* @__PURE__ */ jsx3("th", { children: t("admin.matchers") }),
      /* @__PURE__ */ jsx3("th", { class: "num wide", children: t("admin.tab.alerts") }),
      /* @__PURE__ */ jsx3("th", { class: "c-time", children: t("admin.ends") }),
      /* @__PURE__ */ jsx3("th", { class: "wide", children: t("admin.by") }),
      /* @__PURE__ */ jsx3("th", { children: t("reason") }),
      /* @__PURE__ */ jsx3("th", { "aria-label": t("more") })
    ] }) }),
    /* @__PURE__ */ jsx3("tbody", { children: all.map((s) => /* @__PURE__ */ jsxs3("tr", { children: [
      /* @__PURE__ */ jsx3("td", { class: "long", children: (s.matchers ?? []).map((m) => /* @__PURE__ */ jsx3("code", { class: "tag", children: textOf(m) }, textOf(m))) }),
      /* @__PURE__ */ jsx3("td", { class: "num wide", children: s.alerts }),
      /* @__PURE__ */ jsx3("td", { class: "c-time", children: /* @__PURE__ */ jsx3(Ago, { time: s.ends }) }),
      /* @__PURE__ */ jsx3("td", { class: "wide", children: s.by }),
      /* @__PURE__ */ jsx3("td", { class: "long", children: s.reason }),
      /* @__PURE__ */ jsx3("td", { children: /* @__PURE__ */ jsx3("button", { type: "button", onClick: () => end(s), children: t("admin.unsilence") }) })
    ] }, s.id)) })
  ] });
}

// pkg/portal/web/src/admin-alerts.tsx
import { Fragment as Fragment4, jsx as jsx4, jsxs as jsxs4 } from "./library.js";
var objects = ["node", "instance", "job_name", "pod", "service", "namespace", "gpu", "minor_number"];
var family = { critical: "bad", warning: "wait" };
function about(a) {
  return objects.flatMap((k) => a.labels?.[k] ? [`${k}=${a.labels[k]}`] : []).join(" ");
}
function silenced(a) {
  return !!a.silences?.length;
}
function linkable(address2) {
  return /^https?:\/\//i.test(address2 ?? "");
}
var columns2 = [
  ["name", (a) => a.name],
  ["severity", (a) => a.severity],
  ["since", (a) => a.since],
  ["silenced", silenced],
  ["about", about],
  ["summary", (a) => a.summary],
  ["runbook", (a) => a.runbook]
];
function Row2({ a, silence }) {
  const severity = a.severity ?? "";
  const node = a.labels?.node;
  return /* @__PURE__ */ jsxs4("tr", { children: [
    /* @__PURE__ */ jsxs4("td", { children: [
      /* @__PURE__ */ jsxs4("span", { class: `state ${silenced(a) ? "off" : family[severity] ?? "run"}`, children: [
        /* @__PURE__ */ jsx4("i", { class: "dot" }),
        /* @__PURE__ */ jsx4("b", { children: a.name })
      ] }),
      /* @__PURE__ */ jsxs4("div", { class: "faint small", children: [
        maybe("admin.severity." + severity, severity),
        silenced(a) ? ` · ${t("admin.severity.silenced")}` : ""
      ] })
    ] }),
    /* @__PURE__ */ jsx4("td", { class: "c-time", children: /* @__PURE__ */ jsx4(Ago, { time: a.since }) }),
    /* @__PURE__ */ jsxs4("td", { class: "long", children: [
      a.summary,
      about(a) ? /* @__PURE__ */ jsx4("div", { class: "faint small", children: about(a) }) : null
    ] }),
    /* @__PURE__ */ jsx4("td", { class: "wide long", children: linkable(a.runbook) ? /* @__PURE__ */ jsx4("a", { href: a.runbook, target: "_blank", rel: "noreferrer", children: t("admin.runbook") }) : a.runbook }),
    /* @__PURE__ */ jsx4("td", { children: /* @__PURE__ */ jsxs4("span", { class: "buttons", children: [
      node ? /* @__PURE__ */ jsx4("a", { class: "button wide", href: address(["machines"], { machine: node }), "aria-label": t("admin.openMachine", { name: node }), title: t("admin.openMachine", { name: node }), children: /* @__PURE__ */ jsx4(Icon, { name: "machines" }) }) : null,
      silenced(a) ? null : /* @__PURE__ */ jsx4("button", { type: "button", "aria-label": `${t("admin.silence")}: ${a.name} ${about(a)}`, onClick: silence, children: t("admin.silence") })
    ] }) })
  ] });
}
function Alerts() {
  const read = useRead("", async (signal) => ({ alerts: (await call("GET /api/v3/alerts", { signal })).items ?? [], silences: (await call("GET /api/v3/silences", { signal })).items ?? [] }), 15e3);
  const silencing = useSignal3(null);
  const choice = place.value.query.get("severity") ?? "";
  const value = read.value.value;
  const rows = (value?.alerts ?? []).filter((a) => !choice || (choice === "silenced" ? silenced(a) : a.severity === choice));
  return /* @__PURE__ */ jsxs4(Fragment4, { children: [
    /* @__PURE__ */ jsxs4(Top, { title: t("admin.tab.alerts"), paictl: "paictl alert list --silenced", curl: curl("GET /api/v3/alerts", {}), children: [
      /* @__PURE__ */ jsxs4("button", { type: "button", title: t("csvMore"), disabled: !value, onClick: () => save("alerts.csv", [csv(rows, columns2)], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx4(Icon, { name: "down" }),
        " ",
        t("csv")
      ] }),
      /* @__PURE__ */ jsxs4("button", { type: "button", class: "primary", disabled: !value, onClick: () => silencing.value = [], children: [
        /* @__PURE__ */ jsx4(Icon, { name: "plus" }),
        " ",
        t("admin.newSilence")
      ] })
    ] }),
    value ? /* @__PURE__ */ jsx4("div", { class: "filters", children: /* @__PURE__ */ jsx4(Segments, { label: t("admin.severity"), of: "severity", value: choice, choices: [["", t("state.all")], ...["critical", "warning", "info", "silenced"].map((x) => [x, t(`admin.severity.${x}`)])] }) }) : null,
    read.error.value ? /* @__PURE__ */ jsx4(Problem, { of: read.error.value, again: read.again }) : null,
    !value ? read.error.value ? null : /* @__PURE__ */ jsx4(Loading, {}) : /* @__PURE__ */ jsxs4(Fragment4, { children: [
      rows.length === 0 ? /* @__PURE__ */ jsx4("p", { class: "empty", children: t(choice ? "admin.noAlertHere" : "admin.noAlert") }) : /* @__PURE__ */ jsxs4("table", { class: "rows alerts", children: [
        /* @__PURE__ */ jsx4("thead", { children: /* @__PURE__ */ jsxs4("tr", { children: [
          /* @__PURE__ */ jsx4("th", { children: t("admin.alert") }),
          /* @__PURE__ */ jsx4("th", { class: "c-time", children: t("admin.since") }),
          /* @__PURE__ */ jsx4("th", { children: t("admin.summary") }),
          /* @__PURE__ */ jsx4("th", { class: "wide", children: t("admin.runbook") }),
          /* @__PURE__ */ jsx4("th", { "aria-label": t("more") })
        ] }) }),
        /* @__PURE__ */ jsx4("tbody", { children: rows.map((a) => /* @__PURE__ */ jsx4(Row2, { a, silence: () => silencing.value = matchersOf(a) }, a.name + a.since + JSON.stringify(a.labels))) })
      ] }),
      /* @__PURE__ */ jsx4("h2", { class: "part", children: t("admin.silences") }),
      /* @__PURE__ */ jsx4(SilenceList, { all: value.silences, changed: read.again })
    ] }),
    silencing.value && value ? /* @__PURE__ */ jsx4(
      Silencing,
      {
        of: silencing.value,
        alerts: value.alerts,
        end: (made) => {
          silencing.value = null;
          if (made) read.again();
        }
      }
    ) : null
  ] });
}

// pkg/portal/web/src/admin-audit.tsx
import { useSignal as useSignal4 } from "./library.js";
import { Fragment as Fragment5 } from "./library.js";
import { useEffect as useEffect3 } from "./library.js";
import { Fragment as Fragment6, jsx as jsx5, jsxs as jsxs5 } from "./library.js";
var size = 50;
var most = 1e5;
var words = ["actor", "object", "owner", "kind", "verb", "outcome"];
var kinds = ["job", "template", "user", "group", "token", "virtual-cluster", "page", "code"];
var verbs = ["submit", "stop", "retry", "scale", "delete", "tag", "enter", "sign-in", "sign-out", "manage", "change", "add", "remove", "revoke"];
var times2 = ["1h", "24h", "7d", "30d"];
var outcomes = { done: "good", refused: "wait", failed: "bad" };
var units = { h: 36e5, d: 864e5 };
function instant(text) {
  const m = /^(\d{1,6})([hd])$/.exec(text);
  const at = m ? Date.now() - Number(m[1]) * units[m[2]] : Date.parse(text);
  return Number.isNaN(at) ? void 0 : new Date(at).toISOString();
}
function filterOf(q) {
  const out = {};
  for (const k of words) if (q.get(k)) out[k] = q.get(k);
  out.since = instant(q.get("since") ?? "");
  out.until = instant(q.get("until") ?? "");
  return out;
}
function local(text) {
  const at = Date.parse(text);
  if (Number.isNaN(at)) return "";
  const d = new Date(at);
  return new Date(at - d.getTimezoneOffset() * 6e4).toISOString().slice(0, 16);
}
var columns3 = [
  ["time", (r) => r.time],
  ["actor", (r) => r.actor],
  ["verb", (r) => r.verb],
  ["kind", (r) => r.kind],
  ["object", (r) => r.object],
  ["owner", (r) => r.owner],
  ["virtualCluster", (r) => r.vc],
  ["outcome", (r) => r.outcome],
  ["status", (r) => r.status],
  ["reason", (r) => r.reason],
  ["address", (r) => r.address],
  ["token", (r) => r.token],
  ["request", (r) => r.request],
  ["detail", (r) => r.detail ? JSON.stringify(r.detail) : ""]
];
function Word({ of, label, list }) {
  const value = place.value.query.get(of) ?? "";
  return /* @__PURE__ */ jsxs5("label", { class: "word", children: [
    /* @__PURE__ */ jsx5("span", { children: label }),
    /* @__PURE__ */ jsx5(
      "input",
      {
        name: of,
        defaultValue: value,
        list: list ? "audit-" + of : void 0,
        autocomplete: "off",
        spellcheck: false,
        onChange: (e) => setQuery({ [of]: e.currentTarget.value.trim() || void 0 })
      },
      value
    ),
    list ? /* @__PURE__ */ jsx5("datalist", { id: "audit-" + of, children: list.map((x) => /* @__PURE__ */ jsx5("option", { value: x }, x)) }) : null
  ] });
}
function Time({ of, label }) {
  const value = place.value.query.get(of) ?? "";
  return /* @__PURE__ */ jsxs5("label", { class: "word", children: [
    /* @__PURE__ */ jsx5("span", { children: label }),
    /* @__PURE__ */ jsx5("input", { type: "datetime-local", defaultValue: local(instant(value) ?? ""), onChange: (e) => setQuery({ [of]: e.currentTarget.value ? new Date(e.currentTarget.value).toISOString() : void 0 }) }, value)
  ] });
}
function Details2({ r }) {
  const facts = [
    [t("time"), exact(r.time)],
    [t("reason"), r.reason],
    ...Object.entries(r.detail ?? {}),
    [t("owner"), r.owner],
    [t("vc"), r.vc],
    [t("admin.status"), r.status],
    [t("address"), r.address],
    [t("admin.token"), r.token],
    [t("admin.request"), r.request],
    [t("admin.actorUID"), r.actorUID],
    [t("admin.record"), r.id]
  ];
  return /* @__PURE__ */ jsx5("dl", { class: "open details", children: facts.map(
    ([name, value]) => value ? /* @__PURE__ */ jsxs5("div", { children: [
      /* @__PURE__ */ jsx5("dt", { children: name }),
      /* @__PURE__ */ jsx5("dd", { children: typeof value === "string" && value === r.request ? /* @__PURE__ */ jsx5(Copied, { text: value, children: value }) : value })
    ] }, name) : null
  ) });
}
function pageOf(r) {
  if (!r.object) return null;
  if (r.kind === "job" && r.owner) return ["jobs", r.owner, r.object];
  if (r.kind === "user") return ["admin", "people", r.object];
  if (r.kind === "group") return ["admin", "groups", r.object];
  if (r.kind === "virtual-cluster" && !r.object.includes(",")) return ["admin", "virtual-clusters", r.object];
  return null;
}
function Audit() {
  const q = place.value.query;
  const open = q.get("open");
  const key = [...q].filter(([k]) => k !== "open").join("&");
  const rows = useSignal4(null);
  const next = useSignal4("");
  const error = useSignal4(null);
  const busy = useSignal4(false);
  const round = useSignal4(0);
  useEffect3(() => {
    const stop = new AbortController();
    busy.value = true;
    call("GET /api/v3/audit", { query: { ...filterOf(q), limit: size }, signal: stop.signal }).then(
      (page2) => {
        rows.value = page2.items ?? [];
        next.value = page2.next ?? "";
        error.value = null;
        busy.value = false;
      },
      (e) => {
        if (stop.signal.aborted) return;
        rows.value = null;
        error.value = failure(e);
        busy.value = false;
      }
    );
    return () => stop.abort();
  }, [key, round.value]);
  const more = async () => {
    busy.value = true;
    try {
      const page2 = await call("GET /api/v3/audit", { query: { ...filterOf(q), limit: size, cursor: next.value } });
      rows.value = [...rows.value ?? [], ...page2.items ?? []];
      next.value = page2.next ?? "";
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const download = async () => {
    busy.value = true;
    try {
      const filter = filterOf(q);
      const all = [];
      let cursor = "";
      do {
        const page2 = await call("GET /api/v3/audit", { query: { ...filter, limit: 1e3, cursor } });
        all.push(...page2.items ?? []);
        cursor = page2.next ?? "";
      } while (cursor && all.length < most);
      if (cursor) toast(t("admin.csvCut", { n: all.length }));
      save("audit.csv", [csv(all, columns3)], "text/csv;charset=utf-8");
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const command2 = ["paictl audit"];
  for (const k of [...words, "since", "until"]) if (q.get(k)) command2.push(`--${k} ${quoted(q.get(k))}`);
  const since = q.get("since") ?? "";
  const filtered = key !== "";
  return /* @__PURE__ */ jsxs5(Fragment6, { children: [
    /* @__PURE__ */ jsxs5(Top, { title: t("admin.tab.audit"), paictl: command2.join(" "), curl: curl("GET /api/v3/audit", { query: filterOf(q) }), children: [
      /* @__PURE__ */ jsxs5("button", { type: "button", disabled: busy.value, onClick: () => round.value++, children: [
        /* @__PURE__ */ jsx5(Icon, { name: "retry" }),
        " ",
        t("admin.readAgain")
      ] }),
      /* @__PURE__ */ jsxs5("button", { type: "button", title: t("csvMore"), disabled: busy.value, onClick: () => void download(), children: [
        /* @__PURE__ */ jsx5(Icon, { name: "down" }),
        " ",
        t("csv")
      ] })
    ] }),
    /* @__PURE__ */ jsxs5("div", { class: "filters words", children: [
      /* @__PURE__ */ jsx5(Word, { of: "actor", label: t("admin.actor") }),
      /* @__PURE__ */ jsx5(Word, { of: "verb", label: t("admin.verb"), list: verbs }),
      /* @__PURE__ */ jsx5(Word, { of: "kind", label: t("admin.kind"), list: kinds }),
      /* @__PURE__ */ jsx5(Word, { of: "object", label: t("object") }),
      /* @__PURE__ */ jsx5(Time, { of: "since", label: t("admin.from") }),
      /* @__PURE__ */ jsx5(Time, { of: "until", label: t("admin.until") })
    ] }),
    /* @__PURE__ */ jsxs5("div", { class: "filters", children: [
      /* @__PURE__ */ jsx5(Segments, { label: t("admin.outcome"), of: "outcome", value: q.get("outcome") ?? "", choices: [["", t("state.all")], ...Object.keys(outcomes).map((x) => [x, t(`admin.outcome.${x}`)])] }),
      /* @__PURE__ */ jsx5(Segments, { label: t("time"), of: "since", value: since, choices: [["", t("admin.anyTime")], ...times2.map((x) => [x, t(`admin.last.${x}`)])] }),
      filtered ? /* @__PURE__ */ jsx5("button", { type: "button", onClick: () => go(address(["admin", "audit"])), children: t("clearFilters") }) : null
    ] }),
    error.value ? /* @__PURE__ */ jsx5(Problem, { of: error.value, again: () => round.value++ }) : null,
    !rows.value ? error.value ? null : /* @__PURE__ */ jsx5(Loading, {}) : rows.value.length === 0 ? /* @__PURE__ */ jsx5("p", { class: "empty", children: t(filtered ? "admin.noRecordHere" : "admin.noRecord") }) : /* @__PURE__ */ jsxs5(Fragment6, { children: [
      /* @__PURE__ */ jsxs5("table", { class: "rows audit", "aria-busy": busy.value, children: [
        /* @__PURE__ */ jsx5("thead", { children: /* @__PURE__ */ jsxs5("tr", { children: [
          /* @__PURE__ */ jsx5("th", { class: "c-time", children: t("time") }),
          /* @__PURE__ */ jsx5("th", { children: t("admin.actor") }),
          /* @__PURE__ */ jsx5("th", { children: t("admin.verb") }),
          /* @__PURE__ */ jsx5("th", { children: t("object") }),
          /* @__PURE__ */ jsx5("th", { children: t("admin.outcome") }),
          /* @__PURE__ */ jsx5("th", { class: "wide", children: t("reason") })
        ] }) }),
        /* @__PURE__ */ jsx5("tbody", { children: rows.value.map((r) => {
          const page2 = pageOf(r);
          return /* @__PURE__ */ jsxs5(Fragment5, { children: [
            /* @__PURE__ */ jsxs5("tr", { children: [
              /* @__PURE__ */ jsx5("td", { class: "c-time c-name", children: /* @__PURE__ */ jsxs5("button", { type: "button", class: "bare whole", "aria-expanded": open === r.id, title: t("details"), onClick: () => setQuery({ open: open === r.id ? void 0 : r.id }), children: [
                /* @__PURE__ */ jsx5(Icon, { name: open === r.id ? "drop" : "chevron" }),
                " ",
                /* @__PURE__ */ jsx5(Ago, { time: r.time })
              ] }) }),
              /* @__PURE__ */ jsx5("td", { class: "cut", children: r.actor || /* @__PURE__ */ jsx5("span", { class: "faint", children: "–" }) }),
              /* @__PURE__ */ jsx5("td", { children: r.verb }),
              /* @__PURE__ */ jsxs5("td", { class: "cut", children: [
                /* @__PURE__ */ jsx5("span", { class: "faint", children: r.kind }),
                " ",
                page2 ? /* @__PURE__ */ jsx5("a", { class: "above", href: address(page2), children: r.kind === "job" ? `${r.owner}/${r.object}` : r.object }) : r.object
              ] }),
              /* @__PURE__ */ jsx5("td", { children: /* @__PURE__ */ jsxs5("span", { class: `state ${outcomes[r.outcome] ?? "off"}`, children: [
                /* @__PURE__ */ jsx5("i", { class: "dot" }),
                maybe("admin.outcome." + r.outcome, r.outcome)
              ] }) }),
              /* @__PURE__ */ jsx5("td", { class: "wide cut faint", title: r.reason, children: r.reason || Object.entries(r.detail ?? {}).map(([k, v]) => `${k}: ${v}`).join(", ") })
            ] }),
            open === r.id ? /* @__PURE__ */ jsx5("tr", { class: "opened", children: /* @__PURE__ */ jsx5("td", { colSpan: 6, children: /* @__PURE__ */ jsx5(Details2, { r }) }) }) : null
          ] }, r.id);
        }) })
      ] }),
      /* @__PURE__ */ jsxs5("footer", { class: "under", children: [
        /* @__PURE__ */ jsx5("span", { class: "faint", children: t("admin.records", { n: rows.value.length }) }),
        next.value ? /* @__PURE__ */ jsx5("button", { type: "button", disabled: busy.value, onClick: () => void more(), children: t("admin.olderRecords") }) : null
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/admin-groups.tsx
import { useSignal as useSignal5 } from "./library.js";
import { useEffect as useEffect4 } from "./library.js";
import { Fragment as Fragment7, jsx as jsx6, jsxs as jsxs6 } from "./library.js";
var columns4 = [
  ["name", (g) => g.name],
  ["description", (g) => g.description],
  ["administrator", (g) => g.administrator ?? false],
  ["allVirtualClusters", (g) => g.allVirtualClusters ?? false],
  ["virtualClusters", (g) => g.virtualClusters?.map((v) => v.name).join(" ")],
  ["storages", (g) => g.storages?.join(" ")],
  ["pages", (g) => g.pages?.join(" ")],
  ["members", (g) => g.members?.join(" ")]
];
function Groups() {
  const q = place.value.query;
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/groups", { signal }));
  const word = (q.get("keyword") ?? "").toLowerCase();
  const rows = (value.value?.items ?? []).filter((g) => !word || [g.name, g.description, ...(g.virtualClusters ?? []).map((v) => v.name), ...g.storages ?? [], ...g.members ?? []].join("\n").toLowerCase().includes(word));
  return /* @__PURE__ */ jsxs6(Fragment7, { children: [
    /* @__PURE__ */ jsxs6(Top, { title: t("admin.tab.groups"), paictl: "paictl group list", curl: curl("GET /api/v3/groups", {}), children: [
      /* @__PURE__ */ jsxs6("button", { type: "button", title: t("csvMore"), disabled: !value.value, onClick: () => save("groups.csv", [csv(rows, columns4)], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx6(Icon, { name: "down" }),
        " ",
        t("csv")
      ] }),
      /* @__PURE__ */ jsxs6("a", { class: "button primary", href: address(["admin", "groups"], { add: "true" }), children: [
        /* @__PURE__ */ jsx6(Icon, { name: "plus" }),
        " ",
        t("admin.addGroup")
      ] })
    ] }),
    /* @__PURE__ */ jsx6("div", { class: "filters", children: /* @__PURE__ */ jsx6(Search, { label: t("admin.searchGroups"), value: q.get("keyword") ?? "" }) }),
    error.value ? /* @__PURE__ */ jsx6(Problem, { of: error.value, again }) : null,
    !value.value ? error.value ? null : /* @__PURE__ */ jsx6(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsx6("p", { class: "empty", children: t("admin.noGroup") }) : /* @__PURE__ */ jsxs6("table", { class: "rows groups", children: [
      /* @__PURE__ */ jsx6("thead", { children: /* @__PURE__ */ jsxs6("tr", { children: [
        /* @__PURE__ */ jsx6("th", { children: t("name") }),
        /* @__PURE__ */ jsx6("th", { class: "num", children: t("admin.members") }),
        /* @__PURE__ */ jsx6("th", { children: t("vcs") }),
        /* @__PURE__ */ jsx6("th", { class: "wide", children: t("admin.storages") }),
        /* @__PURE__ */ jsx6("th", { class: "wide", children: t("admin.pages") })
      ] }) }),
      /* @__PURE__ */ jsx6("tbody", { children: rows.map((g) => /* @__PURE__ */ jsxs6("tr", { children: [
        /* @__PURE__ */ jsxs6("td", { class: "c-name", children: [
          /* @__PURE__ */ jsx6("a", { class: "whole", href: address(["admin", "groups", g.name]), children: g.name }),
          g.administrator ? /* @__PURE__ */ jsx6("span", { class: "tag strong", children: t("admin.administrators") }) : null,
          g.description ? /* @__PURE__ */ jsx6("div", { class: "faint small cut", children: g.description }) : null
        ] }),
        /* @__PURE__ */ jsx6("td", { class: "num", children: g.members?.length ?? 0 }),
        /* @__PURE__ */ jsx6("td", { class: "long", children: g.administrator || g.allVirtualClusters ? t("admin.allVCs") : g.virtualClusters?.map((v) => v.name).join(", ") || /* @__PURE__ */ jsx6("span", { class: "faint", children: "–" }) }),
        /* @__PURE__ */ jsx6("td", { class: "wide long", children: g.storages?.join(", ") || /* @__PURE__ */ jsx6("span", { class: "faint", children: "–" }) }),
        /* @__PURE__ */ jsx6("td", { class: "wide long", children: g.administrator ? t("admin.allPages") : g.pages?.join(", ") || /* @__PURE__ */ jsx6("span", { class: "faint", children: "–" }) })
      ] }, g.name)) })
    ] })
  ] });
}
var pages = ["monitoring", "alerts", "monitoring-write"];
var priorities = ["oppo", "test", "prod", "crit"];
function draftOf(s) {
  return {
    description: s.description ?? "",
    administrator: s.administrator ?? false,
    allVirtualClusters: s.allVirtualClusters ?? false,
    virtualClusters: s.virtualClusters ?? [],
    storages: s.storages ?? [],
    pages: s.pages ?? [],
    external: (s.external ?? []).map((x) => [x.provider, x.name])
  };
}
function specOf(base, d) {
  return {
    ...base,
    description: d.description || void 0,
    administrator: d.administrator || void 0,
    allVirtualClusters: d.allVirtualClusters || void 0,
    virtualClusters: d.virtualClusters,
    storages: d.storages,
    pages: d.pages,
    external: d.external.filter((x) => x[0] || x[1]).map(([provider, name]) => ({ provider, name }))
  };
}
function grantText(v) {
  const options = [v.seeJobs ? "see-jobs" : "", v.hostNetwork ? "host-network" : "", v.maxPriority ?? ""].filter(Boolean).join(",");
  return quoted(v.name + (options ? "=" + options : ""));
}
function args(was, now) {
  const out = [];
  if (was.description !== now.description) out.push("--description " + quoted(now.description));
  if (was.administrator !== now.administrator) out.push(now.administrator ? "--administrator" : "--administrator=false");
  if (was.allVirtualClusters !== now.allVirtualClusters) out.push(now.allVirtualClusters ? "--all-vcs" : "--all-vcs=false");
  for (const v of now.virtualClusters) if (!was.virtualClusters.some((x) => same(grantText(x), grantText(v)))) out.push("--add-vc " + grantText(v));
  for (const v of was.virtualClusters) if (!now.virtualClusters.some((x) => x.name === v.name)) out.push("--remove-vc " + quoted(v.name));
  const list = (flag, a, b) => {
    for (const x of b) if (!a.includes(x)) out.push(`--add-${flag} ${quoted(x)}`);
    for (const x of a) if (!b.includes(x)) out.push(`--remove-${flag} ${quoted(x)}`);
  };
  list("storage", was.storages, now.storages);
  list("page", was.pages, now.pages);
  const text = (d) => d.external.filter((x) => x[0] && x[1]).map((x) => x.join("/"));
  list("external", text(was), text(now));
  return out;
}
function Form({ d, put }) {
  const { value } = useRead("", (signal) => call("GET /api/v3/virtual-clusters", { signal }));
  const vcs = [.../* @__PURE__ */ new Set([...ownVCs(), ...(value.value?.items ?? []).map((v) => v.name)])].sort();
  const change = (i, part) => put({ virtualClusters: d.virtualClusters.map((v, j) => j === i ? { ...v, ...part } : v) });
  const left = vcs.filter((v) => !d.virtualClusters.some((x) => x.name === v));
  return /* @__PURE__ */ jsxs6(Fragment7, { children: [
    /* @__PURE__ */ jsx6(Line, { label: t("admin.description"), value: d.description, set: (v) => put({ description: v }) }),
    /* @__PURE__ */ jsx6(Tick, { label: t("admin.grantsAdministration"), hint: t("admin.grantsAdministrationHint"), value: d.administrator, set: (v) => put({ administrator: v }) }),
    /* @__PURE__ */ jsx6(Tick, { label: t("admin.grantsAllVCs"), value: d.allVirtualClusters, set: (v) => put({ allVirtualClusters: v }) }),
    /* @__PURE__ */ jsxs6("div", { class: "field", role: "group", "aria-label": t("vcs"), children: [
      /* @__PURE__ */ jsx6("span", { class: "label", children: t("vcs") }),
      d.virtualClusters.map((v, i) => /* @__PURE__ */ jsxs6("div", { class: "grant", children: [
        /* @__PURE__ */ jsx6("b", { children: v.name }),
        /* @__PURE__ */ jsx6("button", { type: "button", class: "square", "aria-label": t("admin.removeName", { name: v.name }), title: t("admin.removeName", { name: v.name }), onClick: () => put({ virtualClusters: d.virtualClusters.filter((_, j) => j !== i) }), children: /* @__PURE__ */ jsx6(Icon, { name: "close" }) }),
        /* @__PURE__ */ jsx6(Tick, { label: t("admin.seeJobs"), value: v.seeJobs ?? false, set: (x) => change(i, { seeJobs: x || void 0 }) }),
        /* @__PURE__ */ jsx6(Tick, { label: t("admin.hostNetwork"), value: v.hostNetwork ?? false, set: (x) => change(i, { hostNetwork: x || void 0 }) }),
        /* @__PURE__ */ jsxs6("select", { "aria-label": t("admin.maxPriority"), title: t("admin.maxPriority"), value: v.maxPriority ?? "", onChange: (e) => change(i, { maxPriority: e.currentTarget.value || void 0 }), children: [
          /* @__PURE__ */ jsx6("option", { value: "", children: t("admin.upTo", { name: "prod" }) }),
          priorities.map((p) => /* @__PURE__ */ jsx6("option", { value: p, children: t("admin.upTo", { name: p }) }, p))
        ] })
      ] }, v.name)),
      /* @__PURE__ */ jsx6("div", { children: /* @__PURE__ */ jsxs6(
        "select",
        {
          "aria-label": t("admin.addVCTo"),
          value: "",
          disabled: left.length === 0,
          onChange: (e) => {
            if (e.currentTarget.value) put({ virtualClusters: [...d.virtualClusters, { name: e.currentTarget.value }] });
            e.currentTarget.value = "";
          },
          children: [
            /* @__PURE__ */ jsx6("option", { value: "", children: t("admin.addVCTo") }),
            left.map((v) => /* @__PURE__ */ jsx6("option", { value: v, children: v }, v))
          ]
        }
      ) })
    ] }),
    /* @__PURE__ */ jsx6(Names, { label: t("admin.storages"), hint: t("admin.storagesHint"), value: d.storages, set: (v) => put({ storages: v }), add: t("admin.addStorage") }),
    /* @__PURE__ */ jsxs6("div", { class: "field", role: "group", "aria-label": t("admin.pages"), children: [
      /* @__PURE__ */ jsx6("span", { class: "label", children: t("admin.pages") }),
      pages.map((p) => /* @__PURE__ */ jsx6(Tick, { label: t(`admin.page.${p}`), value: d.pages.includes(p), set: (on) => put({ pages: pages.filter((x) => x === p ? on : d.pages.includes(x)) }) }, p))
    ] }),
    /* @__PURE__ */ jsx6(Pairs, { label: t("admin.external"), hint: t("admin.externalHint"), value: d.external, set: (v) => put({ external: v }), second: t("admin.group") })
  ] });
}
var nothing = draftOf({ name: "" });
function NewGroup() {
  const name = useSignal5("");
  const d = useSignal5(nothing);
  const { busy, error, act } = useAct();
  const path = { group: name.value };
  const body = { spec: specOf({ name: name.value }, d.value) };
  const add2 = () => act(async () => {
    await call("PUT /api/v3/groups/{group}", { path, body });
    toast(t("admin.added", { name: name.value }));
    go(address(["admin", "groups", name.value]));
  });
  const line = ["paictl group add", quoted(name.value || "NAME"), ...args(nothing, d.value).map((a) => a.replace(/^--add-/, "--"))].join(" ");
  return /* @__PURE__ */ jsxs6(Fragment7, { children: [
    /* @__PURE__ */ jsx6(Top, { title: t("admin.addGroup"), up: ["groups", t("admin.tab.groups")], paictl: line, curl: curl("PUT /api/v3/groups/{group}", { path: { group: name.value || "NAME" }, body }) }),
    /* @__PURE__ */ jsxs6(
      "form",
      {
        class: "form",
        onSubmit: (e) => {
          e.preventDefault();
          void add2();
        },
        children: [
          /* @__PURE__ */ jsx6(Line, { label: t("name"), hint: t("admin.nameHint"), value: name.value, required: true, set: (v) => name.value = v }),
          /* @__PURE__ */ jsx6(Form, { d: d.value, put: (change) => d.value = { ...d.value, ...change } }),
          error.value ? /* @__PURE__ */ jsx6(Problem, { of: error.value }) : null,
          /* @__PURE__ */ jsxs6("div", { class: "buttons", children: [
            /* @__PURE__ */ jsx6("a", { class: "button", href: address(["admin", "groups"]), children: t("cancel") }),
            /* @__PURE__ */ jsx6("button", { type: "submit", class: "primary", disabled: busy.value || !name.value, children: t("admin.add") })
          ] }),
          /* @__PURE__ */ jsx6(Command, { lines: [line], why: t("admin.asCommand") })
        ]
      }
    )
  ] });
}
function GroupPage({ name }) {
  const path = { group: name };
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/groups/{group}", { path, signal }));
  const base = useSignal5(null);
  const d = useSignal5(null);
  const { busy, error: refused, act } = useAct();
  const g = value.value;
  const spec = ({ members: _, created: __, ...rest }) => rest;
  useEffect4(() => {
    if (!g) return;
    const now = spec(g);
    d.value = d.value && base.value ? rebased(d.value, draftOf(base.value), draftOf(now)) : draftOf(now);
    base.value = now;
    refused.value = null;
  }, [g]);
  if (error.value) return /* @__PURE__ */ jsx6(Problem, { of: error.value, again });
  if (!g || !d.value || !base.value) return /* @__PURE__ */ jsx6(Loading, {});
  const was = draftOf(base.value);
  const changed = !same(was, d.value);
  const next = specOf(base.value, d.value);
  const store = () => act(async () => {
    const now = await call("PUT /api/v3/groups/{group}", { path, body: { was: base.value, spec: next } });
    base.value = spec(now);
    d.value = draftOf(base.value);
    value.value = now;
    toast(t("admin.saved"));
  });
  const difference = args(was, d.value);
  const lines = difference.length ? [`paictl group set ${quoted(name)} ${difference.join(" ")}`] : [];
  return /* @__PURE__ */ jsxs6(Fragment7, { children: [
    /* @__PURE__ */ jsx6(Top, { title: name, up: ["groups", t("admin.tab.groups")], paictl: lines[0] ?? `paictl group show ${quoted(name)}`, curl: changed ? curl("PUT /api/v3/groups/{group}", { path, body: { was: base.value, spec: next } }) : curl("GET /api/v3/groups/{group}", { path }), children: /* @__PURE__ */ jsxs6(
      "button",
      {
        type: "button",
        class: "danger",
        onClick: () => ask({
          title: t("admin.askDeleteGroup", { name }),
          text: t("admin.deleteGroupHint", { n: g.members?.length ?? 0 }),
          yes: t("remove"),
          danger: true,
          act: async () => {
            await call("DELETE /api/v3/groups/{group}", { path });
            toast(t("admin.removed", { name }));
            go(address(["admin", "groups"]));
          }
        }),
        children: [
          /* @__PURE__ */ jsx6(Icon, { name: "trash" }),
          " ",
          t("remove")
        ]
      }
    ) }),
    /* @__PURE__ */ jsxs6("div", { class: "halves", children: [
      /* @__PURE__ */ jsxs6(
        "form",
        {
          class: "form",
          onSubmit: (e) => {
            e.preventDefault();
            void store();
          },
          children: [
            /* @__PURE__ */ jsx6(Form, { d: d.value, put: (change) => d.value = { ...d.value, ...change } }),
            /* @__PURE__ */ jsx6(Refusal, { of: refused.value, again }),
            /* @__PURE__ */ jsxs6("div", { class: "buttons", children: [
              changed ? /* @__PURE__ */ jsx6("button", { type: "button", onClick: () => d.value = was, children: t("admin.discard") }) : null,
              /* @__PURE__ */ jsx6("button", { type: "submit", class: "primary", disabled: busy.value || !changed, children: t("admin.save") })
            ] }),
            /* @__PURE__ */ jsx6(Command, { lines, why: t("admin.asCommand") })
          ]
        }
      ),
      /* @__PURE__ */ jsx6(Members, { group: name, members: g.members ?? [], changed: again })
    ] })
  ] });
}
function Members({ group, members, changed }) {
  const { value, error, again } = useRead(members.join(), (signal) => call("GET /api/v3/users", { signal }));
  const { busy, error: refused, act } = useAct();
  const all = value.value?.items ?? [];
  const removable = (name) => all.find((u) => u.name === name)?.spec?.groups?.includes(group) ?? false;
  const others = all.filter((u) => !members.includes(u.name)).map((u) => u.name);
  const change = (name, to, done) => act(async () => {
    const path = { user: name };
    const was = (await call("GET /api/v3/users/{user}", { path })).spec;
    await call("PUT /api/v3/users/{user}", { path, body: { was, spec: { ...was, groups: to(was.groups ?? []) } } });
    toast(done);
    changed();
  });
  return /* @__PURE__ */ jsxs6("div", { children: [
    /* @__PURE__ */ jsxs6("h2", { children: [
      t("admin.members"),
      " ",
      /* @__PURE__ */ jsx6("span", { class: "faint", children: members.length })
    ] }),
    /* @__PURE__ */ jsxs6("div", { class: "form", children: [
      error.value ? /* @__PURE__ */ jsx6(Problem, { of: error.value, again }) : null,
      /* @__PURE__ */ jsx6(Refusal, { of: refused.value, again: changed }),
      /* @__PURE__ */ jsx6("div", { children: /* @__PURE__ */ jsxs6(
        "select",
        {
          class: "add-member",
          "aria-label": t("admin.addMember"),
          value: "",
          disabled: busy.value || others.length === 0,
          onChange: (e) => {
            const name = e.currentTarget.value;
            e.currentTarget.value = "";
            if (name) void change(name, (groups) => [...groups, group], t("admin.memberAdded", { name, group }));
          },
          children: [
            /* @__PURE__ */ jsx6("option", { value: "", children: t("admin.addMember") }),
            others.map((x) => /* @__PURE__ */ jsx6("option", { value: x, children: x }, x))
          ]
        }
      ) }),
      members.length === 0 ? /* @__PURE__ */ jsx6("p", { class: "faint", children: t("admin.noMembers") }) : null,
      members.length > 0 ? /* @__PURE__ */ jsx6("table", { class: "rows members", children: /* @__PURE__ */ jsx6("tbody", { children: members.map((name) => /* @__PURE__ */ jsxs6("tr", { children: [
        /* @__PURE__ */ jsxs6("td", { children: [
          /* @__PURE__ */ jsx6("a", { href: address(["admin", "people", name]), children: name }),
          " ",
          /* @__PURE__ */ jsx6("span", { class: "faint", children: all.find((u) => u.name === name)?.displayName })
        ] }),
        /* @__PURE__ */ jsx6("td", { class: "num", children: removable(name) ? /* @__PURE__ */ jsx6("button", { type: "button", disabled: busy.value, onClick: () => void change(name, (groups) => groups.filter((x) => x !== group), t("admin.memberRemoved", { name, group })), children: t("admin.removeMember") }) : value.value ? /* @__PURE__ */ jsx6("span", { class: "faint", children: t("admin.byProvider") }) : null })
      ] }, name)) }) }) : null,
      /* @__PURE__ */ jsx6(Command, { lines: [`paictl group add-member ${quoted(group)} NAME`, `paictl group remove-member ${quoted(group)} NAME`] })
    ] })
  ] });
}

// pkg/portal/web/src/admin-people.tsx
import { useSignal as useSignal6 } from "./library.js";
import { useEffect as useEffect5 } from "./library.js";
import { Fragment as Fragment8, jsx as jsx7, jsxs as jsxs7 } from "./library.js";
function PersonState({ u }) {
  return /* @__PURE__ */ jsxs7("span", { class: `state ${u.disabled ? "off" : "good"}`, children: [
    /* @__PURE__ */ jsx7("i", { class: "dot" }),
    t(u.disabled ? "admin.disabled" : "admin.active")
  ] });
}
var columns5 = [
  ["name", (u) => u.name],
  ["displayName", (u) => u.displayName],
  ["email", (u) => u.email],
  ["groups", (u) => u.groups?.join(" ")],
  ["administrator", (u) => u.administrator],
  ["disabled", (u) => u.disabled],
  ["created", (u) => u.created],
  ["lastSignIn", (u) => u.lastSignIn]
];
function People() {
  const q = place.value.query;
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/users", { signal }));
  const most2 = useSignal6(some);
  const word = (q.get("keyword") ?? "").toLowerCase();
  const choice = q.get("state") ?? "";
  const group = q.get("group") ?? "";
  const all = value.value?.items ?? [];
  const groups = [...new Set(all.flatMap((u) => u.groups ?? []).concat(group || []))].sort();
  const rows = all.filter(
    (u) => (!word || [u.name, u.displayName, u.email, ...u.groups ?? []].join("\n").toLowerCase().includes(word)) && (!group || u.groups?.includes(group)) && (choice === "administrators" ? u.administrator : choice === "disabled" ? u.disabled : true)
  );
  return /* @__PURE__ */ jsxs7(Fragment8, { children: [
    /* @__PURE__ */ jsxs7(Top, { title: t("admin.tab.people"), paictl: "paictl user list" + (group ? " --group " + quoted(group) : ""), curl: curl("GET /api/v3/users", {}), children: [
      /* @__PURE__ */ jsxs7("button", { type: "button", title: t("csvMore"), disabled: !value.value, onClick: () => save("people.csv", [csv(rows, columns5)], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx7(Icon, { name: "down" }),
        " ",
        t("csv")
      ] }),
      /* @__PURE__ */ jsxs7("a", { class: "button primary", href: address(["admin", "people"], { add: "true" }), children: [
        /* @__PURE__ */ jsx7(Icon, { name: "plus" }),
        " ",
        t("admin.addPerson")
      ] })
    ] }),
    /* @__PURE__ */ jsxs7("div", { class: "filters", children: [
      /* @__PURE__ */ jsx7(Search, { label: t("admin.searchPeople"), value: q.get("keyword") ?? "" }),
      /* @__PURE__ */ jsx7(
        Segments,
        {
          label: t("state"),
          of: "state",
          value: choice,
          choices: [
            ["", t("everyone")],
            ["administrators", t("admin.administrators")],
            ["disabled", t("admin.disabled")]
          ]
        }
      ),
      /* @__PURE__ */ jsxs7("select", { "aria-label": t("admin.group"), value: group, onChange: (e) => setQuery({ group: e.currentTarget.value || void 0 }), children: [
        /* @__PURE__ */ jsx7("option", { value: "", children: t("admin.anyGroup") }),
        groups.map((g) => /* @__PURE__ */ jsx7("option", { value: g, children: g }, g))
      ] })
    ] }),
    error.value ? /* @__PURE__ */ jsx7(Problem, { of: error.value, again }) : null,
    !value.value ? error.value ? null : /* @__PURE__ */ jsx7(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsx7("p", { class: "empty", children: t("admin.noPerson") }) : /* @__PURE__ */ jsxs7(Fragment8, { children: [
      /* @__PURE__ */ jsxs7("table", { class: "rows people", children: [
        /* @__PURE__ */ jsx7("thead", { children: /* @__PURE__ */ jsxs7("tr", { children: [
          /* @__PURE__ */ jsx7("th", { children: t("name") }),
          /* @__PURE__ */ jsx7("th", { class: "wide", children: t("admin.displayName") }),
          /* @__PURE__ */ jsx7("th", { class: "wide", children: t("admin.groups") }),
          /* @__PURE__ */ jsx7("th", { children: t("state") }),
          /* @__PURE__ */ jsx7("th", { class: "c-time", children: t("admin.lastSignIn") })
        ] }) }),
        /* @__PURE__ */ jsx7("tbody", { children: rows.slice(0, most2.value).map((u) => /* @__PURE__ */ jsxs7("tr", { children: [
          /* @__PURE__ */ jsxs7("td", { class: "c-name", children: [
            /* @__PURE__ */ jsx7("a", { class: "whole", href: address(["admin", "people", u.name]), children: u.name }),
            u.administrator ? /* @__PURE__ */ jsx7("span", { class: "tag strong", children: t("admin.administrator") }) : null
          ] }),
          /* @__PURE__ */ jsx7("td", { class: "wide cut", children: u.displayName || /* @__PURE__ */ jsx7("span", { class: "faint", children: u.email }) }),
          /* @__PURE__ */ jsx7("td", { class: "wide long", children: u.groups?.map((g) => /* @__PURE__ */ jsx7("span", { class: "tag", children: g }, g)) }),
          /* @__PURE__ */ jsx7("td", { children: /* @__PURE__ */ jsx7(PersonState, { u }) }),
          /* @__PURE__ */ jsx7("td", { class: "c-time", children: u.lastSignIn ? /* @__PURE__ */ jsx7(Ago, { time: u.lastSignIn }) : t("admin.never") })
        ] }, u.name)) })
      ] }),
      rows.length > most2.value ? /* @__PURE__ */ jsx7(More, { n: rows.length, most: most2 }) : /* @__PURE__ */ jsx7("p", { class: "under faint", children: t("admin.people", { n: rows.length }) })
    ] })
  ] });
}
function draftOf2(s) {
  return { displayName: s.displayName ?? "", email: s.email ?? "", groups: s.groups ?? [], identities: (s.identities ?? []).map((i) => [i.provider, i.subject]), disabled: s.disabled ?? false };
}
var identities = (d) => d.identities.filter((p) => p[0] || p[1]).map(([provider, subject]) => ({ provider, subject }));
function commands(name, was, now) {
  const who = quoted(name);
  const out = [];
  const set = [];
  if (was.displayName !== now.displayName) set.push("--display-name " + quoted(now.displayName));
  if (was.email !== now.email) set.push("--email " + quoted(now.email));
  if (!same(was.groups, now.groups) && now.groups.length > 0) set.push(...now.groups.map((g) => "--group " + quoted(g)));
  if (set.length > 0) out.push(`paictl user set ${who} ${set.join(" ")}`);
  if (now.groups.length === 0) for (const g of was.groups) out.push(`paictl group remove-member ${quoted(g)} ${who}`);
  const text = (p) => `paictl user link ${who} --provider ${quoted(p[0])} --subject ${quoted(p[1])}`;
  for (const p of was.identities) if (!now.identities.some((x) => same(x, p))) out.push(text(p) + " --remove");
  for (const p of now.identities) if (p[0] && p[1] && !was.identities.some((x) => same(x, p))) out.push(text(p));
  if (was.disabled !== now.disabled) out.push(`paictl user ${now.disabled ? "disable" : "enable"} ${who}`);
  return out;
}
function useGroups() {
  const { value } = useRead("", (signal) => call("GET /api/v3/groups", { signal }));
  return (value.value?.items ?? []).map((g) => g.name);
}
function NewPerson() {
  const groups = useGroups();
  const name = useSignal6("");
  const password = useSignal6("");
  const d = useSignal6({ displayName: "", email: "", groups: [], identities: [], disabled: false });
  const takeOver = useSignal6(false);
  const { busy, error, act } = useAct();
  const put = (change) => d.value = { ...d.value, ...change };
  const body = { name: name.value, displayName: d.value.displayName || void 0, email: d.value.email || void 0, groups: d.value.groups, identities: identities(d.value), takeOverHistory: takeOver.value || void 0 };
  const add2 = () => act(async () => {
    await call("POST /api/v3/users", { body: { ...body, password: password.value || void 0 } });
    toast(t("admin.added", { name: name.value }));
    go(address(["admin", "people", name.value]));
  });
  const command2 = ["paictl user add", quoted(name.value || "NAME")];
  if (d.value.displayName) command2.push("--display-name " + quoted(d.value.displayName));
  if (d.value.email) command2.push("--email " + quoted(d.value.email));
  command2.push(...d.value.groups.map((g) => "--group " + quoted(g)));
  if (takeOver.value) command2.push("--take-over-history");
  if (!password.value) command2.push("--no-password");
  const lines = [command2.join(" "), ...commands(name.value || "NAME", { ...d.value, identities: [] }, d.value)];
  return /* @__PURE__ */ jsxs7(Fragment8, { children: [
    /* @__PURE__ */ jsx7(Top, { title: t("admin.addPerson"), up: ["people", t("admin.tab.people")], paictl: lines.join("\n"), curl: curl("POST /api/v3/users", { body }) }),
    /* @__PURE__ */ jsxs7(
      "form",
      {
        class: "form",
        onSubmit: (e) => {
          e.preventDefault();
          void add2();
        },
        children: [
          /* @__PURE__ */ jsx7(Line, { label: t("name"), hint: t("admin.nameHint"), value: name.value, required: true, set: (v) => name.value = v }),
          /* @__PURE__ */ jsx7(Line, { label: t("admin.displayName"), value: d.value.displayName, set: (v) => put({ displayName: v }) }),
          /* @__PURE__ */ jsx7(Line, { label: t("admin.email"), type: "email", value: d.value.email, set: (v) => put({ email: v }) }),
          /* @__PURE__ */ jsx7(Names, { label: t("admin.groups"), hint: t("admin.defaultGroup"), value: d.value.groups, all: groups, set: (v) => put({ groups: v }), add: t("admin.addGroupTo") }),
          /* @__PURE__ */ jsx7(Username, { name: name.value }),
          /* @__PURE__ */ jsx7(Line, { label: t("admin.password"), hint: t("admin.passwordHint"), type: "password", value: password.value, set: (v) => password.value = v }),
          /* @__PURE__ */ jsx7(Pairs, { label: t("admin.identities"), hint: t("admin.identitiesHint"), value: d.value.identities, set: (v) => put({ identities: v }), second: t("admin.subject") }),
          /* @__PURE__ */ jsx7(Tick, { label: t("admin.takeOver"), hint: t("admin.takeOverHint"), value: takeOver.value, set: (v) => takeOver.value = v }),
          error.value ? /* @__PURE__ */ jsx7(Problem, { of: error.value }) : null,
          /* @__PURE__ */ jsxs7("div", { class: "buttons", children: [
            /* @__PURE__ */ jsx7("a", { class: "button", href: address(["admin", "people"]), children: t("cancel") }),
            /* @__PURE__ */ jsx7("button", { type: "submit", class: "primary", disabled: busy.value || !name.value, children: t("admin.add") })
          ] }),
          /* @__PURE__ */ jsx7(Command, { lines, why: t("admin.asCommand") })
        ]
      }
    )
  ] });
}
function PersonPage({ name }) {
  const path = { user: name };
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/users/{user}", { path, signal }));
  const groups = useGroups();
  const base = useSignal6(null);
  const d = useSignal6(null);
  const { busy, error: refused, act } = useAct();
  const put = (change) => d.value = { ...d.value, ...change };
  const u = value.value;
  useEffect5(() => {
    if (!u?.spec) return;
    const now = draftOf2(u.spec);
    d.value = d.value && base.value ? rebased(d.value, draftOf2(base.value), now) : now;
    base.value = u.spec;
    refused.value = null;
  }, [u]);
  if (error.value) return /* @__PURE__ */ jsx7(Problem, { of: error.value, again });
  if (!u || !d.value || !base.value) return /* @__PURE__ */ jsx7(Loading, {});
  const was = draftOf2(base.value);
  const changed = !same(was, d.value);
  const spec = { ...base.value, displayName: d.value.displayName || void 0, email: d.value.email || void 0, groups: d.value.groups, identities: identities(d.value), disabled: d.value.disabled || void 0 };
  const store = () => act(async () => {
    const now = await call("PUT /api/v3/users/{user}", { path, body: { was: base.value, spec } });
    base.value = now.spec ?? spec;
    d.value = draftOf2(base.value);
    value.value = now;
    toast(t("admin.saved"));
  });
  const lines = commands(name, was, d.value);
  const external = (u.groups ?? []).filter((g) => !was.groups.includes(g));
  return /* @__PURE__ */ jsxs7(Fragment8, { children: [
    /* @__PURE__ */ jsx7(Top, { title: name, up: ["people", t("admin.tab.people")], paictl: lines.length ? lines.join("\n") : `paictl user show ${quoted(name)}`, curl: changed ? curl("PUT /api/v3/users/{user}", { path, body: { was: base.value, spec } }) : curl("GET /api/v3/users/{user}", { path }), children: /* @__PURE__ */ jsx7("a", { class: "button", href: address(["admin", "audit"], { actor: name }), children: t("admin.theirAudit") }) }),
    /* @__PURE__ */ jsxs7("dl", { class: "facts", children: [
      /* @__PURE__ */ jsxs7("div", { children: [
        /* @__PURE__ */ jsx7("dt", { children: t("state") }),
        /* @__PURE__ */ jsxs7("dd", { children: [
          /* @__PURE__ */ jsx7(PersonState, { u }),
          u.administrator ? /* @__PURE__ */ jsx7("span", { class: "tag strong", children: t("admin.administrator") }) : null
        ] })
      ] }),
      /* @__PURE__ */ jsxs7("div", { children: [
        /* @__PURE__ */ jsx7("dt", { children: t("admin.lastSignIn") }),
        /* @__PURE__ */ jsx7("dd", { children: u.lastSignIn ? /* @__PURE__ */ jsx7(Ago, { time: u.lastSignIn }) : t("admin.never") })
      ] }),
      /* @__PURE__ */ jsxs7("div", { children: [
        /* @__PURE__ */ jsx7("dt", { children: t("admin.created") }),
        /* @__PURE__ */ jsx7("dd", { children: /* @__PURE__ */ jsx7(Ago, { time: u.created }) })
      ] }),
      /* @__PURE__ */ jsxs7("div", { children: [
        /* @__PURE__ */ jsx7("dt", { children: t("vcs") }),
        /* @__PURE__ */ jsx7("dd", { children: u.allVirtualClusters ? t("admin.allVCs") : u.virtualClusters?.map((v) => v.name).join(", ") || "–" })
      ] }),
      /* @__PURE__ */ jsxs7("div", { children: [
        /* @__PURE__ */ jsx7("dt", { children: t("admin.storages") }),
        /* @__PURE__ */ jsx7("dd", { children: u.storages?.join(", ") || "–" })
      ] })
    ] }),
    /* @__PURE__ */ jsxs7("div", { class: "halves", children: [
      /* @__PURE__ */ jsxs7(
        "form",
        {
          class: "form",
          onSubmit: (e) => {
            e.preventDefault();
            void store();
          },
          children: [
            /* @__PURE__ */ jsx7(Line, { label: t("admin.displayName"), value: d.value.displayName, set: (v) => put({ displayName: v }) }),
            /* @__PURE__ */ jsx7(Line, { label: t("admin.email"), type: "email", value: d.value.email, set: (v) => put({ email: v }) }),
            /* @__PURE__ */ jsx7(
              Names,
              {
                label: t("admin.groups"),
                hint: external.length ? t("admin.externalGroups", { names: external.join(", ") }) : void 0,
                value: d.value.groups,
                all: groups,
                set: (v) => put({ groups: v }),
                add: t("admin.addGroupTo")
              }
            ),
            /* @__PURE__ */ jsx7(Pairs, { label: t("admin.identities"), hint: t("admin.identitiesHint"), value: d.value.identities, set: (v) => put({ identities: v }), second: t("admin.subject") }),
            /* @__PURE__ */ jsx7(Tick, { label: t("admin.disable"), hint: t("admin.disableHint"), value: d.value.disabled, set: (v) => put({ disabled: v }) }),
            /* @__PURE__ */ jsx7(Refusal, { of: refused.value, again }),
            /* @__PURE__ */ jsxs7("div", { class: "buttons", children: [
              changed ? /* @__PURE__ */ jsx7("button", { type: "button", onClick: () => d.value = was, children: t("admin.discard") }) : null,
              /* @__PURE__ */ jsx7("button", { type: "submit", class: "primary", disabled: busy.value || !changed, children: t("admin.save") })
            ] }),
            /* @__PURE__ */ jsx7(Command, { lines, why: t("admin.asCommand") })
          ]
        }
      ),
      /* @__PURE__ */ jsxs7("div", { children: [
        /* @__PURE__ */ jsx7(Password, { name }),
        /* @__PURE__ */ jsx7(Tokens, { name }),
        /* @__PURE__ */ jsx7("h2", { children: t("admin.removePerson") }),
        /* @__PURE__ */ jsxs7("div", { class: "form", children: [
          /* @__PURE__ */ jsx7("p", { children: t("admin.removeHint") }),
          /* @__PURE__ */ jsx7("div", { class: "buttons", children: /* @__PURE__ */ jsxs7(
            "button",
            {
              type: "button",
              class: "danger",
              onClick: () => ask({
                title: t("admin.askRemove", { name }),
                text: t("admin.removeHint"),
                yes: t("admin.removePerson"),
                danger: true,
                act: async () => {
                  await call("DELETE /api/v3/users/{user}", { path });
                  toast(t("admin.removed", { name }));
                  go(address(["admin", "people"]));
                }
              }),
              children: [
                /* @__PURE__ */ jsx7(Icon, { name: "trash" }),
                " ",
                t("admin.removePerson")
              ]
            }
          ) }),
          /* @__PURE__ */ jsx7(Command, { lines: [`paictl user remove ${quoted(name)}`] })
        ] })
      ] })
    ] })
  ] });
}
var Username = ({ name }) => /* @__PURE__ */ jsx7("input", { type: "text", autocomplete: "username", value: name, readOnly: true, hidden: true });
function Password({ name }) {
  const own = name === me.value?.name;
  const old = useSignal6("");
  const password = useSignal6("");
  const { busy, error, act } = useAct();
  const set = () => act(async () => {
    await call("PUT /api/v3/users/{user}/password", { path: { user: name }, body: { password: password.value, oldPassword: old.value || void 0 } });
    old.value = password.value = "";
    toast(t("admin.passwordSet"));
  });
  return /* @__PURE__ */ jsxs7(Fragment8, { children: [
    /* @__PURE__ */ jsx7("h2", { children: t("admin.password") }),
    /* @__PURE__ */ jsxs7(
      "form",
      {
        class: "form",
        onSubmit: (e) => {
          e.preventDefault();
          void set();
        },
        children: [
          /* @__PURE__ */ jsx7(Username, { name }),
          own ? /* @__PURE__ */ jsx7(Field, { label: t("admin.oldPassword"), children: (id) => /* @__PURE__ */ jsx7("input", { id, type: "password", autocomplete: "current-password", value: old.value, onInput: (e) => old.value = e.currentTarget.value }) }) : null,
          /* @__PURE__ */ jsx7(Line, { label: t("admin.newPassword"), hint: t("admin.newPasswordHint"), type: "password", value: password.value, set: (v) => password.value = v }),
          error.value ? /* @__PURE__ */ jsx7(Problem, { of: error.value }) : null,
          /* @__PURE__ */ jsx7("div", { class: "buttons", children: /* @__PURE__ */ jsx7("button", { type: "submit", disabled: busy.value || !password.value || own && !old.value, children: t("admin.setPassword") }) }),
          /* @__PURE__ */ jsx7(Command, { lines: [`paictl user passwd ${quoted(name)}`] })
        ]
      }
    )
  ] });
}
function Tokens({ name }) {
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/tokens", { query: { user: name }, signal }));
  const items = value.value?.items ?? [];
  const own = (r) => r.id === me.value?.token.id;
  const revoke = (of, title) => ask({
    title,
    text: t(of.some(own) ? "admin.revokeOwn" : "admin.revokeHint"),
    yes: t("admin.revoke"),
    danger: true,
    act: async () => {
      try {
        for (const r of [...of].sort((a, b) => Number(own(a)) - Number(own(b)))) await call("DELETE /api/v3/tokens/{token}", { path: { token: r.id } });
        toast(t("admin.revoked"));
      } finally {
        again();
      }
    }
  });
  return /* @__PURE__ */ jsxs7(Fragment8, { children: [
    /* @__PURE__ */ jsx7("h2", { children: t("admin.tokens") }),
    /* @__PURE__ */ jsxs7("div", { class: "form", children: [
      error.value ? /* @__PURE__ */ jsx7(Problem, { of: error.value, again }) : null,
      value.value && items.length === 0 ? /* @__PURE__ */ jsx7("p", { class: "faint", children: t("admin.noTokens") }) : null,
      items.length > 0 ? /* @__PURE__ */ jsxs7(Fragment8, { children: [
        /* @__PURE__ */ jsx7("table", { class: "rows tokens", children: /* @__PURE__ */ jsx7("tbody", { children: items.map((r) => /* @__PURE__ */ jsxs7("tr", { children: [
          /* @__PURE__ */ jsxs7("td", { class: "cut", title: r.id, children: [
            maybe("admin.kind." + r.kind, r.kind),
            " ",
            r.label ? /* @__PURE__ */ jsx7("b", { children: r.label }) : null,
            /* @__PURE__ */ jsx7("br", {}),
            /* @__PURE__ */ jsxs7("span", { class: "faint small", children: [
              r.used ? t("admin.used") + " " : t("admin.created") + " ",
              /* @__PURE__ */ jsx7(Ago, { time: r.used ?? r.created }),
              " ",
              r.address,
              " ",
              own(r) ? t("admin.thisSession") : null
            ] })
          ] }),
          /* @__PURE__ */ jsx7("td", { class: "num", children: /* @__PURE__ */ jsx7("button", { type: "button", onClick: () => revoke([r], t("admin.askRevoke", { name: r.label || r.id })), children: t("admin.revoke") }) })
        ] }, r.id)) }) }),
        /* @__PURE__ */ jsx7("div", { class: "buttons", children: /* @__PURE__ */ jsx7("button", { type: "button", class: "danger", onClick: () => revoke(items, t("admin.askRevokeAll", { name })), children: t("admin.revokeAll") }) })
      ] }) : null,
      /* @__PURE__ */ jsx7(Command, { lines: [`paictl token revoke --user ${quoted(name)} --all`] })
    ] })
  ] });
}

// pkg/portal/web/src/admin-services.tsx
import { Fragment as Fragment9 } from "./library.js";
import { Fragment as Fragment10, jsx as jsx8, jsxs as jsxs8 } from "./library.js";
var family2 = { ready: "good", starting: "run", failed: "bad", orphan: "wait", unknown: "wait" };
var calm = ["ready", "disabled", "not installed", "stopped"];
var columns6 = [
  ["name", (s) => s.name],
  ["state", (s) => s.state],
  ["readyPods", (s) => s.readyPods],
  ["pods", (s) => s.pods],
  ["chart", (s) => s.chart],
  ["revision", (s) => s.revision],
  ["updated", (s) => s.updated],
  ["configuration", (s) => s.configuration],
  ["problems", (s) => s.problems?.map((p) => `${p.object}: ${p.message}`).join("; ")]
];
function commands2(s) {
  const name = quoted(s.name);
  if (["stopped", "not installed", "disabled"].includes(s.state)) return [s.hint || `paictl service start -n ${name}`];
  if (s.state === "orphan") return [`paictl service stop ${name}`];
  return [`paictl service status -n ${name}`, `paictl service logs ${name} -f`, `paictl service restart -n ${name} --force`, `paictl service stop ${name}`];
}
function Details3({ s }) {
  return /* @__PURE__ */ jsxs8("div", { class: "open", children: [
    s.problems?.map((p, i) => /* @__PURE__ */ jsxs8("div", { class: "said", children: [
      /* @__PURE__ */ jsxs8("p", { children: [
        /* @__PURE__ */ jsx8("code", { children: p.object }),
        " ",
        /* @__PURE__ */ jsx8("b", { children: p.reason })
      ] }),
      /* @__PURE__ */ jsx8("p", { children: p.message }),
      p.hint ? /* @__PURE__ */ jsx8("ul", { class: "remedy", "aria-label": t("whatToDo"), children: /* @__PURE__ */ jsx8("li", { children: p.hint }) }) : null,
      p.log?.length ? /* @__PURE__ */ jsx8("pre", { tabIndex: 0, class: "code", children: p.log.join("\n") }) : null
    ] }, i)),
    !s.problems?.length ? /* @__PURE__ */ jsx8("p", { class: "faint", children: t("admin.noProblems") }) : null,
    /* @__PURE__ */ jsx8("dl", { class: "facts", children: [
      ["admin.namespace", s.namespace],
      ["admin.chart", s.chart],
      ["admin.revision", s.revision],
      ["admin.configuration", s.configuration],
      ["admin.installedBy", s.paictl && "paictl " + s.paictl]
    ].map(
      ([key, x]) => x ? /* @__PURE__ */ jsxs8("div", { children: [
        /* @__PURE__ */ jsx8("dt", { children: t(key) }),
        /* @__PURE__ */ jsx8("dd", { children: x })
      ] }, key) : null
    ) }),
    /* @__PURE__ */ jsx8(Command, { lines: commands2(s), why: t("admin.serviceCommands") })
  ] });
}
function Services() {
  const q = place.value.query;
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/services", { signal }), 1e4);
  const open = q.get("open");
  const word = (q.get("keyword") ?? "").toLowerCase();
  const choice = q.get("state") ?? "";
  const rows = (value.value?.items ?? []).filter((s) => (!word || s.name.toLowerCase().includes(word)) && (choice !== "trouble" || (s.problems?.length ?? 0) > 0 || !calm.includes(s.state)));
  return /* @__PURE__ */ jsxs8(Fragment10, { children: [
    /* @__PURE__ */ jsx8(Top, { title: t("admin.tab.services"), paictl: "paictl service status" + (open ? " -n " + quoted(open) : ""), curl: curl("GET /api/v3/services", {}), children: /* @__PURE__ */ jsxs8("button", { type: "button", title: t("csvMore"), disabled: !value.value, onClick: () => save("services.csv", [csv(rows, columns6)], "text/csv;charset=utf-8"), children: [
      /* @__PURE__ */ jsx8(Icon, { name: "down" }),
      " ",
      t("csv")
    ] }) }),
    /* @__PURE__ */ jsxs8("div", { class: "filters", children: [
      /* @__PURE__ */ jsx8(Search, { label: t("admin.searchServices"), value: q.get("keyword") ?? "" }),
      /* @__PURE__ */ jsx8(
        Segments,
        {
          label: t("state"),
          of: "state",
          value: choice,
          choices: [
            ["", t("state.all")],
            ["trouble", t("admin.trouble")]
          ]
        }
      )
    ] }),
    error.value ? /* @__PURE__ */ jsx8(Problem, { of: error.value, again }) : null,
    value.value?.notes?.map((n) => /* @__PURE__ */ jsxs8("p", { class: "note", children: [
      n.message,
      " ",
      n.remedy ? /* @__PURE__ */ jsx8("span", { class: "faint", children: n.remedy }) : null
    ] }, n.message)),
    !value.value ? error.value ? null : /* @__PURE__ */ jsx8(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsx8("p", { class: "empty", children: t(choice || word ? "admin.noServiceHere" : "admin.noService") }) : /* @__PURE__ */ jsxs8("table", { class: "rows services", children: [
      /* @__PURE__ */ jsx8("thead", { children: /* @__PURE__ */ jsxs8("tr", { children: [
        /* @__PURE__ */ jsx8("th", { children: t("name") }),
        /* @__PURE__ */ jsx8("th", { children: t("state") }),
        /* @__PURE__ */ jsx8("th", { class: "num", children: t("admin.pods") }),
        /* @__PURE__ */ jsx8("th", { class: "wide", children: t("admin.release") }),
        /* @__PURE__ */ jsx8("th", { class: "wide", children: t("admin.configuration") }),
        /* @__PURE__ */ jsx8("th", { class: "c-time wide", children: t("admin.updated") })
      ] }) }),
      /* @__PURE__ */ jsx8("tbody", { children: rows.map((s) => /* @__PURE__ */ jsxs8(Fragment9, { children: [
        /* @__PURE__ */ jsxs8("tr", { children: [
          /* @__PURE__ */ jsx8("td", { class: "c-name", children: /* @__PURE__ */ jsxs8("button", { type: "button", class: "bare whole", "aria-expanded": open === s.name, onClick: () => setQuery({ open: open === s.name ? void 0 : s.name }), children: [
            /* @__PURE__ */ jsx8(Icon, { name: open === s.name ? "drop" : "chevron" }),
            " ",
            s.name
          ] }) }),
          /* @__PURE__ */ jsx8("td", { children: /* @__PURE__ */ jsxs8("span", { class: `state ${family2[s.state] ?? "off"}`, children: [
            /* @__PURE__ */ jsx8("i", { class: "dot" }),
            maybe("admin.service." + s.state, s.state)
          ] }) }),
          /* @__PURE__ */ jsx8("td", { class: "num", children: s.pods ? `${s.readyPods}/${s.pods}` : /* @__PURE__ */ jsx8("span", { class: "faint", children: "–" }) }),
          /* @__PURE__ */ jsxs8("td", { class: "wide", children: [
            s.chart,
            " ",
            s.revision ? /* @__PURE__ */ jsxs8("span", { class: "faint", children: [
              "#",
              s.revision
            ] }) : null
          ] }),
          /* @__PURE__ */ jsx8("td", { class: "wide", children: s.configuration === "up to date" ? /* @__PURE__ */ jsx8("span", { class: "faint", children: t("admin.current") }) : s.configuration }),
          /* @__PURE__ */ jsx8("td", { class: "c-time wide", children: s.updated ? /* @__PURE__ */ jsx8(Ago, { time: s.updated }) : null })
        ] }),
        open === s.name ? /* @__PURE__ */ jsx8("tr", { class: "opened", children: /* @__PURE__ */ jsx8("td", { colSpan: 6, children: /* @__PURE__ */ jsx8(Details3, { s }) }) }) : s.problems?.length ? /* @__PURE__ */ jsx8("tr", { class: "why-row", children: /* @__PURE__ */ jsxs8("td", { colSpan: 6, class: "long", children: [
          /* @__PURE__ */ jsx8("code", { children: s.problems[0].object }),
          " ",
          s.problems[0].message,
          s.problems.length > 1 ? /* @__PURE__ */ jsxs8("span", { class: "faint", children: [
            " ",
            t("admin.andMore", { n: s.problems.length - 1 })
          ] }) : null
        ] }) }) : null
      ] }, s.name)) })
    ] })
  ] });
}

// pkg/portal/web/src/admin-vcs.tsx
import { useSignal as useSignal7 } from "./library.js";
import { useEffect as useEffect6 } from "./library.js";
import { Fragment as Fragment11, jsx as jsx9, jsxs as jsxs9 } from "./library.js";
var often = 5e3;
var useVCs = () => useRead("", (signal) => call("GET /api/v3/virtual-clusters", { signal }), often);
var cpuOnly = (v) => v.guaranteed === 0 && (v.cpuCells?.guaranteed ?? 0) > 0;
var amounts = (v) => cpuOnly(v) ? v.cpuCells : v;
function cellsText(v) {
  return [...(v.virtualCells ?? []).map((c) => `${c.cellNumber} × ${c.cellType}`), ...(v.pinnedCells ?? []).map((id) => t("admin.pinnedCell", { id }))].join(", ");
}
function quotaText(v) {
  const q = v.quota;
  const named = (of, text) => Object.entries(of ?? {}).map(([name, n]) => text(name, n ? String(n) : "∞"));
  return [
    q?.perUser ? t("admin.perUser", { n: q.perUser }) : "",
    q?.perGroup ? t("admin.perGroup", { n: q.perGroup }) : "",
    ...named(q?.users, (name, n) => `${name}: ${n}`),
    ...named(q?.groups, (name, n) => `${t("admin.group")} ${name}: ${n}`)
  ].filter(Boolean).join(", ");
}
var columns7 = [
  ["name", (v) => v.name],
  ["guaranteed", (v) => v.guaranteed],
  ["used", (v) => v.used],
  ["free", (v) => v.free],
  ["bad", (v) => v.bad],
  ["opportunistic", (v) => v.opportunistic],
  ["waitingGangs", (v) => v.waitingGangs],
  ["waitingPods", (v) => v.waitingPods],
  ["cells", (v) => (v.virtualCells ?? []).map((c) => `${c.cellType}=${c.cellNumber}`).join(" ")],
  ["policy", (v) => v.policy]
];
function VirtualClusters() {
  const q = place.value.query;
  const { value, error, again } = useVCs();
  const word = (q.get("keyword") ?? "").toLowerCase();
  const items = value.value?.items ?? [];
  const rows = items.filter((v) => !word || v.name.toLowerCase().includes(word));
  return /* @__PURE__ */ jsxs9(Fragment11, { children: [
    /* @__PURE__ */ jsxs9(Top, { title: t("vcs"), paictl: "paictl vc list", curl: curl("GET /api/v3/virtual-clusters", {}), children: [
      /* @__PURE__ */ jsxs9("button", { type: "button", title: t("csvMore"), disabled: !value.value, onClick: () => save("virtual-clusters.csv", [csv(rows, columns7)], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx9(Icon, { name: "down" }),
        " ",
        t("csv")
      ] }),
      /* @__PURE__ */ jsxs9("a", { class: "button primary", href: address(["admin", "virtual-clusters"], { add: "true" }), children: [
        /* @__PURE__ */ jsx9(Icon, { name: "plus" }),
        " ",
        t("admin.addVC")
      ] })
    ] }),
    items.length > 8 || word ? /* @__PURE__ */ jsx9("div", { class: "filters", children: /* @__PURE__ */ jsx9(Search, { label: t("admin.searchVCs"), value: q.get("keyword") ?? "" }) }) : null,
    error.value ? /* @__PURE__ */ jsx9(Problem, { of: error.value, again }) : null,
    value.value?.problem ? /* @__PURE__ */ jsx9("p", { class: "note", children: t("admin.oldConfiguration", { why: value.value.problem }) }) : null,
    value.value?.note ? /* @__PURE__ */ jsx9("p", { class: "note", children: value.value.note }) : null,
    !value.value ? error.value ? null : /* @__PURE__ */ jsx9(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsx9("p", { class: "empty", children: t("admin.noVC") }) : /* @__PURE__ */ jsxs9("table", { class: "rows vc-table", children: [
      /* @__PURE__ */ jsx9("thead", { children: /* @__PURE__ */ jsxs9("tr", { children: [
        /* @__PURE__ */ jsx9("th", { children: t("name") }),
        /* @__PURE__ */ jsx9("th", { class: "num", children: t("admin.guaranteed") }),
        /* @__PURE__ */ jsx9("th", { class: "num", children: t("admin.inUse") }),
        /* @__PURE__ */ jsx9("th", { class: "num", children: t("admin.free") }),
        /* @__PURE__ */ jsx9("th", { class: "wide" }),
        /* @__PURE__ */ jsx9("th", { class: "num", children: t("admin.waiting") }),
        /* @__PURE__ */ jsx9("th", { class: "wide", children: t("admin.cells") }),
        /* @__PURE__ */ jsx9("th", { class: "wide", children: t("admin.quota") })
      ] }) }),
      /* @__PURE__ */ jsx9("tbody", { children: rows.map((v) => {
        const n = amounts(v);
        return /* @__PURE__ */ jsxs9("tr", { children: [
          /* @__PURE__ */ jsx9("td", { class: "c-name", children: /* @__PURE__ */ jsx9("a", { class: "whole", href: address(["admin", "virtual-clusters", v.name]), children: v.name }) }),
          /* @__PURE__ */ jsxs9("td", { class: "num", children: [
            n.guaranteed,
            " ",
            cpuOnly(v) ? /* @__PURE__ */ jsx9("span", { class: "faint", children: "CPU" }) : null
          ] }),
          /* @__PURE__ */ jsxs9("td", { class: "num", children: [
            n.used,
            n.opportunistic > 0 ? /* @__PURE__ */ jsxs9("span", { class: "faint", title: t("opportunistic", { n: n.opportunistic }), children: [
              " +",
              n.opportunistic
            ] }) : null
          ] }),
          /* @__PURE__ */ jsxs9("td", { class: "num", children: [
            n.free,
            n.bad > 0 ? /* @__PURE__ */ jsxs9("span", { class: "broken", title: t("broken", { n: n.bad }), children: [
              " −",
              n.bad
            ] }) : null
          ] }),
          /* @__PURE__ */ jsx9("td", { class: "wide c-bar", children: /* @__PURE__ */ jsx9(Bar, { total: n.guaranteed, label: t("usage", { used: n.used, free: n.free, bad: n.bad }), parts: [{ n: n.used, class: "used" }, { n: n.bad, class: "bad" }] }) }),
          /* @__PURE__ */ jsx9("td", { class: "num", children: v.waitingGangs > 0 ? /* @__PURE__ */ jsx9("span", { class: "waits", children: v.waitingGangs }) : /* @__PURE__ */ jsx9("span", { class: "faint", children: "–" }) }),
          /* @__PURE__ */ jsx9("td", { class: "wide long", children: cellsText(v) || /* @__PURE__ */ jsx9("span", { class: "faint", children: "–" }) }),
          /* @__PURE__ */ jsx9("td", { class: "wide long", children: quotaText(v) || /* @__PURE__ */ jsx9("span", { class: "faint", children: "–" }) })
        ] }, v.name);
      }) })
    ] }),
    value.value?.deleted?.length ? /* @__PURE__ */ jsx9("p", { class: "note", children: t("admin.deletedVCs", { names: value.value.deleted.map((v) => v.name).join(", ") }) }) : null
  ] });
}
var policies = ["balanced", "fewer-kills", "start-now"];
function draftOf3(v) {
  const pairs = (of) => Object.entries(of ?? {}).map(([name, n]) => [name, String(n)]);
  return {
    cells: (v?.virtualCells ?? []).map((c) => [c.cellType, String(c.cellNumber)]),
    perUser: String(v?.quota?.perUser ?? 0),
    perGroup: String(v?.quota?.perGroup ?? 0),
    users: pairs(v?.quota?.users),
    groups: pairs(v?.quota?.groups),
    pinned: v?.pinnedCells ?? [],
    policy: v?.policy || policies[0],
    takeFrom: ""
  };
}
function requestOf(name, was, now) {
  const out = { name };
  const number = (text) => Number(text || 0);
  const table = (of) => new Map(of.filter(([k]) => k).map(([k, v]) => [k, number(v)]));
  const [before, after] = [table(was.cells), table(now.cells)];
  const cells = [.../* @__PURE__ */ new Set([...before.keys(), ...after.keys()])].filter((k) => (before.get(k) ?? 0) !== (after.get(k) ?? 0)).map((cellType) => ({ cellType, cellNumber: after.get(cellType) ?? 0 }));
  if (cells.length) out.cells = cells;
  const [pin, unpin] = [now.pinned.filter((x) => !was.pinned.includes(x)), was.pinned.filter((x) => !now.pinned.includes(x))];
  if (pin.length) out.pin = pin;
  if (unpin.length) out.unpin = unpin;
  if (number(was.perUser) !== number(now.perUser)) out.perUser = number(now.perUser);
  if (number(was.perGroup) !== number(now.perGroup)) out.perGroup = number(now.perGroup);
  for (const key of ["users", "groups"]) {
    const [a, b] = [table(was[key]), table(now[key])];
    const change = {};
    for (const [k, n] of b) if (a.get(k) !== n) change[k] = n;
    for (const k of a.keys()) if (!b.has(k)) change[k] = null;
    if (Object.keys(change).length) out[key] = change;
  }
  if (was.policy !== now.policy) out.policy = now.policy;
  if (Object.keys(out).length === 1) return null;
  if (now.takeFrom && out.cells) out.takeFrom = now.takeFrom;
  return out;
}
function commandOf(r, message, force) {
  const named = (of) => quoted(Object.entries(of).map(([k, n]) => `${k}=${n ?? "default"}`).join(","));
  const out = [`paictl vc set ${quoted(r.name)}`];
  if (r.delete) out.push("--delete");
  if (r.cells) out.push("--cells " + quoted(r.cells.map((c) => `${c.cellType}=${c.cellNumber}`).join(",")));
  if (r.pin) out.push("--pin " + quoted(r.pin.join(",")));
  if (r.unpin) out.push("--unpin " + quoted(r.unpin.join(",")));
  if (r.perUser !== void 0) out.push("--quota-per-user " + r.perUser);
  if (r.perGroup !== void 0) out.push("--quota-per-group " + r.perGroup);
  if (r.users) out.push("--quota-user " + named(r.users));
  if (r.groups) out.push("--quota-group " + named(r.groups));
  if (r.policy) out.push("--policy " + r.policy);
  if (r.takeFrom) out.push("--take-from " + quoted(r.takeFrom));
  if (message) out.push("-m " + quoted(message));
  if (force) out.push("--force");
  return out.join(" ");
}
function Numbers({ label, value, set, name, types, hint }) {
  const change = (i, pair) => set(value.map((x, j) => j === i ? pair : x));
  return /* @__PURE__ */ jsxs9("div", { class: "field", role: "group", "aria-label": label, children: [
    /* @__PURE__ */ jsx9("span", { class: "label", children: label }),
    value.map(([k, n], i) => /* @__PURE__ */ jsxs9("div", { class: "pair", children: [
      /* @__PURE__ */ jsx9("input", { "aria-label": name, placeholder: name, value: k, list: types ? "cell-types" : void 0, autocomplete: "off", spellcheck: false, onInput: (e) => change(i, [e.currentTarget.value, n]) }),
      /* @__PURE__ */ jsx9("input", { "aria-label": t("admin.number"), type: "number", min: "0", step: "1", value: n, onInput: (e) => change(i, [k, e.currentTarget.value]) }),
      /* @__PURE__ */ jsx9("button", { type: "button", class: "square", "aria-label": t("admin.removeName", { name: k }), title: t("admin.removeName", { name: k }), onClick: () => set(value.filter((_, j) => j !== i)), children: /* @__PURE__ */ jsx9(Icon, { name: "close" }) })
    ] }, i)),
    types ? /* @__PURE__ */ jsx9("datalist", { id: "cell-types", children: types.map((x) => /* @__PURE__ */ jsx9("option", { value: x }, x)) }) : null,
    /* @__PURE__ */ jsx9("div", { children: /* @__PURE__ */ jsx9("button", { type: "button", class: "link", onClick: () => set([...value, [types?.find((x) => !value.some(([k]) => k === x)) ?? "", types ? "1" : "0"]]), children: t("admin.addPair") }) }),
    hint ? /* @__PURE__ */ jsx9("small", { children: hint }) : null
  ] });
}
function Form2({ d, put, types, others }) {
  return /* @__PURE__ */ jsxs9(Fragment11, { children: [
    /* @__PURE__ */ jsx9(Numbers, { label: t("admin.cells"), hint: t("admin.cellsHint"), name: t("admin.cellType"), value: d.cells, types, set: (v) => put({ cells: v }) }),
    /* @__PURE__ */ jsx9(Names, { label: t("admin.pinned"), hint: t("admin.pinnedHint"), value: d.pinned, set: (v) => put({ pinned: v }), add: t("admin.addPinned") }),
    others.length ? /* @__PURE__ */ jsx9(Field, { label: t("admin.takeFrom"), hint: t("admin.takeFromHint"), children: (id) => /* @__PURE__ */ jsxs9("select", { id, value: d.takeFrom, onChange: (e) => put({ takeFrom: e.currentTarget.value }), children: [
      /* @__PURE__ */ jsx9("option", { value: "", children: t("admin.takeFromNone") }),
      others.map((x) => /* @__PURE__ */ jsx9("option", { value: x, children: x }, x))
    ] }) }) : null,
    /* @__PURE__ */ jsxs9("div", { class: "pair", children: [
      /* @__PURE__ */ jsx9(Line, { label: t("admin.quotaPerUser"), hint: t("admin.noLimit"), type: "number", value: d.perUser, set: (v) => put({ perUser: v }) }),
      /* @__PURE__ */ jsx9(Line, { label: t("admin.quotaPerGroup"), hint: t("admin.noLimit"), type: "number", value: d.perGroup, set: (v) => put({ perGroup: v }) })
    ] }),
    /* @__PURE__ */ jsx9(Numbers, { label: t("admin.quotaUsers"), name: t("admin.person"), value: d.users, set: (v) => put({ users: v }) }),
    /* @__PURE__ */ jsx9(Numbers, { label: t("admin.quotaGroups"), name: t("admin.group"), value: d.groups, set: (v) => put({ groups: v }) }),
    /* @__PURE__ */ jsx9(Field, { label: t("admin.policy"), hint: maybe("admin.policy." + d.policy, ""), children: (id) => /* @__PURE__ */ jsx9("select", { id, value: d.policy, onChange: (e) => put({ policy: e.currentTarget.value }), children: [.../* @__PURE__ */ new Set([...policies, d.policy])].map((x) => /* @__PURE__ */ jsx9("option", { value: x, children: x }, x)) }) })
  ] });
}
function Owns({ v }) {
  return v ? /* @__PURE__ */ jsxs9(Fragment11, { children: [
    /* @__PURE__ */ jsx9("b", { children: amounts(v).guaranteed }),
    " ",
    t(cpuOnly(v) ? "admin.cpuCells" : "gpus"),
    cellsText(v) ? /* @__PURE__ */ jsxs9("span", { class: "faint", children: [
      " (",
      cellsText(v),
      ")"
    ] }) : null
  ] }) : /* @__PURE__ */ jsx9("span", { class: "faint", children: "–" });
}
function Effect({ out }) {
  const e = out.effect;
  const problems = [...e?.problems ?? [], ...(out.warnings ?? []).map((w) => ({ ...w, path: w.field }))];
  const changes = e?.changes ?? [];
  return /* @__PURE__ */ jsxs9(Fragment11, { children: [
    out.problem ? /* @__PURE__ */ jsx9("p", { class: "note", children: t("admin.oldConfiguration", { why: out.problem }) }) : null,
    out.note ? /* @__PURE__ */ jsx9("p", { class: "note", children: out.note }) : null,
    problems.length ? /* @__PURE__ */ jsx9("ul", { class: "findings", children: problems.map((p, i) => /* @__PURE__ */ jsxs9("li", { class: p.severity === "warning" ? "warn" : "bad", children: [
      p.path ? /* @__PURE__ */ jsx9("code", { children: p.path }) : null,
      " ",
      p.message,
      " ",
      p.remedy ? /* @__PURE__ */ jsx9("span", { class: "faint", children: p.remedy }) : null
    ] }, i)) }) : null,
    e?.virtualClusters?.length ? /* @__PURE__ */ jsxs9("table", { class: "rows owns", children: [
      /* @__PURE__ */ jsx9("thead", { children: /* @__PURE__ */ jsxs9("tr", { children: [
        /* @__PURE__ */ jsx9("th", { children: t("vc") }),
        /* @__PURE__ */ jsx9("th", { children: t("admin.ownsNow") }),
        /* @__PURE__ */ jsx9("th", { children: t("admin.ownsThen") })
      ] }) }),
      /* @__PURE__ */ jsx9("tbody", { children: e.virtualClusters.map((c) => /* @__PURE__ */ jsxs9("tr", { children: [
        /* @__PURE__ */ jsx9("td", { children: c.name }),
        /* @__PURE__ */ jsx9("td", { class: "long", children: /* @__PURE__ */ jsx9(Owns, { v: c.before }) }),
        /* @__PURE__ */ jsx9("td", { class: "long", children: /* @__PURE__ */ jsx9(Owns, { v: c.after }) })
      ] }, c.name)) })
    ] }) : null,
    changes.length ? /* @__PURE__ */ jsxs9(Fragment11, { children: [
      /* @__PURE__ */ jsx9("h3", { children: t("admin.jobsAffected", { n: changes.length }) }),
      /* @__PURE__ */ jsx9("table", { class: "rows effects", children: /* @__PURE__ */ jsx9("tbody", { children: changes.map((c) => /* @__PURE__ */ jsxs9("tr", { children: [
        /* @__PURE__ */ jsxs9("td", { class: "long", children: [
          /* @__PURE__ */ jsx9("b", { children: c.group }),
          /* @__PURE__ */ jsxs9("div", { class: "faint small", children: [
            c.user,
            " · ",
            c.vc,
            " · ",
            c.cpuCells ? `${c.cpuCells} ${t("admin.cpuCells")}` : `${c.gpus} ${t("gpus")}`
          ] })
        ] }),
        /* @__PURE__ */ jsxs9("td", { class: `long effect-${c.effect}`, children: [
          maybe("admin.effect." + c.effect, c.effect),
          c.reason ? /* @__PURE__ */ jsx9("div", { class: "faint small", children: c.reason }) : null
        ] })
      ] }, c.vc + c.group)) }) })
    ] }) : e?.valid && !out.note ? /* @__PURE__ */ jsxs9("p", { class: "good", children: [
      /* @__PURE__ */ jsx9(Icon, { name: "check" }),
      " ",
      t("admin.noJobAffected")
    ] }) : null,
    out.diff ? /* @__PURE__ */ jsxs9("details", { open: true, children: [
      /* @__PURE__ */ jsx9("summary", { children: t("admin.diff") }),
      /* @__PURE__ */ jsx9("pre", { tabIndex: 0, class: "code diff", children: out.diff.split("\n").map((line, i) => /* @__PURE__ */ jsx9("span", { class: /^\+(?!\+\+)/.test(line) ? "plus" : /^-(?!--)/.test(line) ? "minus" : "", children: line + "\n" }, i)) })
    ] }) : null
  ] });
}
function Change({ request, done }) {
  const text = JSON.stringify(request);
  const seen = useSignal7(null);
  const stored = useSignal7(null);
  const message = useSignal7("");
  const force = useSignal7(false);
  const { busy, error, act } = useAct();
  useEffect6(() => {
    error.value = null;
    force.value = false;
  }, [text]);
  const preview = () => act(async () => {
    force.value = false;
    stored.value = null;
    seen.value = null;
    seen.value = { of: text, out: await call("PATCH /api/v3/virtual-clusters", { body: { changes: [request], dryRun: true } }) };
  });
  const out = seen.value?.of === text ? seen.value.out : null;
  const change = { changes: request ? [request] : [], revision: out?.base, message: message.value || void 0, force: out?.refused && force.value || void 0 };
  const apply = () => act(async () => {
    const now = await call("PATCH /api/v3/virtual-clusters", { body: change });
    stored.value = { of: text, out: now };
    seen.value = null;
    message.value = "";
    toast(t("admin.stored", { n: now.revision ?? now.base }));
    done();
  });
  const shown = stored.value && (!request || stored.value.of === text) ? stored.value.out : null;
  const possible = out && (out.changed || out.pending) && out.effect?.valid !== false && (!out.refused || force.value);
  return /* @__PURE__ */ jsxs9(Fragment11, { children: [
    shown ? /* @__PURE__ */ jsxs9("p", { class: "note stored", children: [
      /* @__PURE__ */ jsx9(Icon, { name: "check" }),
      " ",
      t(shown.installed ? "admin.storedAndLoaded" : "admin.storedOnly", { n: shown.revision ?? shown.base })
    ] }) : null,
    request && !shown ? /* @__PURE__ */ jsxs9(Fragment11, { children: [
      /* @__PURE__ */ jsx9("div", { class: "buttons start", children: /* @__PURE__ */ jsx9("button", { type: "button", class: out ? "" : "primary", disabled: busy.value, onClick: () => void preview(), children: t(out ? "admin.previewAgain" : "admin.preview") }) }),
      /* @__PURE__ */ jsx9(Refusal, { of: error.value, again: () => void preview() }),
      out ? /* @__PURE__ */ jsxs9("div", { class: "outcome", role: "status", children: [
        !out.changed && !out.pending ? /* @__PURE__ */ jsx9("p", { class: "faint", children: t("admin.nothingChanges", { n: out.base }) }) : null,
        out.pending ? /* @__PURE__ */ jsx9("p", { class: "note", children: t("admin.pending", { n: out.base }) }) : null,
        out.effect?.valid === false ? /* @__PURE__ */ jsx9("p", { class: "bad", children: t("admin.invalid") }) : null,
        out.refused ? /* @__PURE__ */ jsxs9("div", { class: "problem refused", role: "alert", children: [
          /* @__PURE__ */ jsx9(Icon, { name: "warn" }),
          /* @__PURE__ */ jsxs9("div", { children: [
            /* @__PURE__ */ jsx9("p", { class: "says", children: out.refused }),
            out.remedy ? /* @__PURE__ */ jsx9("p", { children: out.remedy }) : null
          ] })
        ] }) : null,
        /* @__PURE__ */ jsx9(Effect, { out }),
        (out.changed || out.pending) && out.effect?.valid !== false ? /* @__PURE__ */ jsxs9(
          "form",
          {
            class: "apply",
            onSubmit: (e) => {
              e.preventDefault();
              void apply();
            },
            children: [
              /* @__PURE__ */ jsx9(Line, { label: t("admin.reason"), hint: t("admin.reasonHint"), value: message.value, set: (v) => message.value = v }),
              out.refused ? /* @__PURE__ */ jsxs9("label", { class: "tick", children: [
                /* @__PURE__ */ jsx9("input", { type: "checkbox", name: "force", checked: force.value, onChange: (e) => force.value = e.currentTarget.checked }),
                /* @__PURE__ */ jsxs9("span", { children: [
                  t("admin.force"),
                  /* @__PURE__ */ jsx9("small", { children: t("admin.forceHint") })
                ] })
              ] }) : null,
              /* @__PURE__ */ jsx9("div", { class: "buttons", children: /* @__PURE__ */ jsx9("button", { type: "submit", class: out.refused ? "primary danger" : "primary", disabled: busy.value || !possible, children: t("admin.apply", { n: out.base }) }) })
            ]
          }
        ) : null
      ] }) : null,
      /* @__PURE__ */ jsx9(Command, { lines: [commandOf(request, message.value, Boolean(change.force))], why: t("admin.asCommand") })
    ] }) : null
  ] });
}
var typesOf = (all) => [...new Set(all.flatMap((v) => (v.virtualCells ?? []).map((c) => c.cellType)))].sort();
function NewVC() {
  const { value, error, again } = useVCs();
  const name = useSignal7("");
  const d = useSignal7(draftOf3(null));
  const all = value.value?.items ?? [];
  const request = name.value ? requestOf(name.value, draftOf3(null), d.value) : null;
  const example = request ?? { name: "NAME", cells: [{ cellType: typesOf(all)[0] ?? "TYPE", cellNumber: 1 }] };
  return /* @__PURE__ */ jsxs9(Fragment11, { children: [
    /* @__PURE__ */ jsx9(Top, { title: t("admin.addVC"), up: ["virtual-clusters", t("vcs")], paictl: commandOf(example, "", false), curl: curl("PATCH /api/v3/virtual-clusters", { body: { changes: [example], dryRun: true } }) }),
    error.value ? /* @__PURE__ */ jsx9(Problem, { of: error.value, again }) : null,
    value.value?.note ? /* @__PURE__ */ jsx9("p", { class: "note", children: value.value.note }) : null,
    /* @__PURE__ */ jsxs9("div", { class: "halves", children: [
      /* @__PURE__ */ jsxs9("div", { class: "form", children: [
        /* @__PURE__ */ jsx9(Line, { label: t("name"), value: name.value, required: true, set: (v) => name.value = v }),
        /* @__PURE__ */ jsx9(Form2, { d: d.value, put: (change) => d.value = { ...d.value, ...change }, types: typesOf(all), others: all.map((v) => v.name) })
      ] }),
      /* @__PURE__ */ jsxs9("div", { children: [
        all.some((v) => v.name === name.value) ? /* @__PURE__ */ jsx9("p", { class: "note", children: t("admin.vcExists", { name: name.value }) }) : null,
        /* @__PURE__ */ jsx9(Change, { request, done: () => go(address(["admin", "virtual-clusters"])) }),
        request ? null : /* @__PURE__ */ jsx9("p", { class: "empty", children: t("admin.previewHint") })
      ] })
    ] })
  ] });
}
function VCPage({ name }) {
  const { value, error, again } = useVCs();
  const was = useSignal7(null);
  const d = useSignal7(null);
  const deletes = useSignal7(false);
  const heir = useSignal7("");
  const all = value.value?.items ?? [];
  const v = all.find((x) => x.name === name);
  const known = JSON.stringify(v && draftOf3(v));
  useEffect6(() => {
    if (!v) return;
    const now = draftOf3(v);
    d.value = d.value && was.value ? rebased(d.value, was.value, now) : now;
    was.value = now;
  }, [known]);
  const top = (r) => ({ title: name, up: ["virtual-clusters", t("vcs")], paictl: r ? commandOf(r, "", false) : `paictl vc show ${quoted(name)}`, curl: r ? curl("PATCH /api/v3/virtual-clusters", { body: { changes: [r], dryRun: true } }) : curl("GET /api/v3/virtual-clusters", {}) });
  if (error.value && !v) return /* @__PURE__ */ jsx9(Problem, { of: error.value, again });
  if (!value.value) return /* @__PURE__ */ jsx9(Loading, {});
  if (!v)
    return /* @__PURE__ */ jsxs9(Fragment11, { children: [
      /* @__PURE__ */ jsx9(Top, { ...top(null) }),
      /* @__PURE__ */ jsx9("p", { class: "empty", children: t("admin.noSuchVC", { name }) })
    ] });
  if (!d.value || !was.value) return /* @__PURE__ */ jsx9(Loading, {});
  const others = all.map((x) => x.name).filter((x) => x !== name);
  const request = deletes.value ? { name, delete: true, takeFrom: heir.value || void 0 } : requestOf(name, was.value, d.value);
  const n = amounts(v);
  return /* @__PURE__ */ jsxs9(Fragment11, { children: [
    /* @__PURE__ */ jsx9(Top, { ...top(request), children: /* @__PURE__ */ jsxs9("button", { type: "button", class: "danger", "aria-pressed": deletes.value, onClick: () => deletes.value = !deletes.value, children: [
      /* @__PURE__ */ jsx9(Icon, { name: deletes.value ? "close" : "trash" }),
      " ",
      t(deletes.value ? "admin.keep" : "remove")
    ] }) }),
    error.value ? /* @__PURE__ */ jsx9(Problem, { of: error.value, again }) : null,
    value.value.problem ? /* @__PURE__ */ jsx9("p", { class: "note", children: t("admin.oldConfiguration", { why: value.value.problem }) }) : null,
    value.value.note ? /* @__PURE__ */ jsx9("p", { class: "note", children: value.value.note }) : null,
    /* @__PURE__ */ jsxs9("dl", { class: "facts", children: [
      [
        ["admin.guaranteed", n.guaranteed],
        ["admin.inUse", n.used],
        ["admin.free", n.free],
        ["admin.broken", n.bad],
        ["admin.lent", n.opportunistic],
        ["admin.waiting", v.waitingGangs]
      ].map(([key, x]) => /* @__PURE__ */ jsxs9("div", { children: [
        /* @__PURE__ */ jsx9("dt", { children: t(key) }),
        /* @__PURE__ */ jsx9("dd", { children: x })
      ] }, key)),
      /* @__PURE__ */ jsxs9("div", { children: [
        /* @__PURE__ */ jsx9("dt", { children: t("admin.cells") }),
        /* @__PURE__ */ jsx9("dd", { children: cellsText(v) || "–" })
      ] })
    ] }),
    /* @__PURE__ */ jsxs9("div", { class: "halves", children: [
      deletes.value ? /* @__PURE__ */ jsxs9("div", { class: "form", children: [
        /* @__PURE__ */ jsx9("h2", { children: t("admin.deleteVC", { name }) }),
        /* @__PURE__ */ jsx9("p", { children: t("admin.deleteVCHint") }),
        /* @__PURE__ */ jsx9(Field, { label: t("admin.heir"), children: (id) => /* @__PURE__ */ jsxs9("select", { id, value: heir.value, onChange: (e) => heir.value = e.currentTarget.value, children: [
          /* @__PURE__ */ jsx9("option", { value: "", children: t("admin.noHeir") }),
          others.map((x) => /* @__PURE__ */ jsx9("option", { value: x, children: x }, x))
        ] }) })
      ] }) : /* @__PURE__ */ jsxs9("div", { class: "form", children: [
        /* @__PURE__ */ jsx9(Form2, { d: d.value, put: (change) => d.value = { ...d.value, ...change }, types: typesOf(all), others }),
        same(d.value, was.value) ? null : /* @__PURE__ */ jsx9("div", { class: "buttons", children: /* @__PURE__ */ jsx9("button", { type: "button", onClick: () => d.value = was.value, children: t("admin.discard") }) })
      ] }),
      /* @__PURE__ */ jsxs9("div", { children: [
        /* @__PURE__ */ jsx9(
          Change,
          {
            request,
            done: () => {
              if (deletes.value) go(address(["admin", "virtual-clusters"]));
              else again();
            }
          }
        ),
        request ? null : /* @__PURE__ */ jsx9("p", { class: "empty", children: t("admin.previewHint") })
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/text-admin.ts
var en = {
  "admin.tab.people": "People",
  "admin.tab.groups": "Groups",
  "admin.tab.virtual-clusters": "Virtual clusters",
  "admin.tab.services": "Services",
  "admin.tab.alerts": "Alerts",
  "admin.tab.actions": "Actions",
  "admin.operation": "Operation",
  "admin.target": "Target",
  "admin.by": "By",
  "admin.requested": "Requested",
  "admin.expires": "Expires",
  "admin.withdrawn": "Withdrawn",
  "admin.ofMachine": "Name of a machine",
  "admin.openActions": "Open",
  "admin.endedActions": "Ended",
  "admin.noAction": "No actions yet. The page of a machine requests one, and policies of the alert handler make them.",
  "admin.noActionHere": "No action matches.",
  "admin.silence": "Silence",
  "admin.newSilence": "New silence",
  "admin.silences": "Silences",
  "admin.noSilences": "No alerts are silenced.",
  "admin.silenceTitle": "Silence alerts",
  "admin.silenceMore": "Their notifications are kept back, and the alert handler doesn't get them. The alerts still fire. Alerts that begin later are silenced, too, if all labels match.",
  "admin.matchers": "Labels that alerts must have",
  "admin.label": "Label {n}",
  "admin.comparison": "Comparison {n}",
  "admin.labelValue": "Value {n}",
  "admin.addMatcher": "Add a label",
  "admin.badExpression": "An expression isn't valid.",
  "admin.matchesNow": "Firing alerts that match now: {n}",
  "admin.silenceFor": "For",
  "admin.silenced": "Silenced. Firing alerts: {n}",
  "admin.askUnsilence": "End the silence?",
  "admin.askUnsilenceMore": "Notifications of alerts with {matchers} are sent again.",
  "admin.unsilence": "End",
  "admin.unsilenced": "The silence has ended.",
  "admin.ends": "Ends",
  "admin.reasonHere": "WHY",
  "admin.openMachine": "Open {name}",
  "admin.tab.audit": "Audit",
  "admin.removeName": "Remove {name}",
  "admin.provider": "Provider",
  "admin.addPair": "Add",
  "admin.conflict": "Read it again to see what has changed. Your own changes stay in the form.",
  "admin.readAgain": "Read again",
  "admin.shownOf": "{n} of {all}",
  "admin.showMore": "Show more",
  "admin.disabled": "Disabled",
  "admin.active": "Active",
  "admin.administrator": "Administrator",
  "admin.administrators": "Administrators",
  "admin.addPerson": "Add a person",
  "admin.searchPeople": "Search people",
  "admin.group": "Group",
  "admin.anyGroup": "All groups",
  "admin.noPerson": "No person matches.",
  "admin.people": "{n} people",
  "admin.displayName": "Display name",
  "admin.email": "E-mail",
  "admin.groups": "Groups",
  "admin.lastSignIn": "Last sign-in",
  "admin.never": "never",
  "admin.created": "Created",
  "admin.added": "{name} was added.",
  "admin.nameHint": "Letters, digits, and . _ - between them. It can't be changed later.",
  "admin.defaultGroup": "Without a group, the person is in the group default.",
  "admin.addGroupTo": "Add a group…",
  "admin.password": "Password",
  "admin.passwordHint": "At least 10 characters. Without a password, the person needs an identity at a provider.",
  "admin.identities": "Identities at providers of sign-ins",
  "admin.identitiesHint": "Anyone who signs in at the provider with this subject is this person.",
  "admin.subject": "Subject",
  "admin.takeOver": "Take over the jobs of an earlier person of this name",
  "admin.takeOverHint": "A name that jobs have is refused otherwise.",
  "admin.add": "Add",
  "admin.asCommand": "As a command:",
  "admin.saved": "Saved.",
  "admin.save": "Save",
  "admin.discard": "Discard changes",
  "admin.theirAudit": "Audit",
  "admin.allVCs": "all",
  "admin.storages": "Storages",
  "admin.externalGroups": "Also in {names}, by a provider of sign-ins.",
  "admin.disable": "Disabled",
  "admin.disableHint": "A disabled person can't sign in, and their tokens are refused.",
  "admin.removePerson": "Remove person",
  "admin.removeHint": "Their jobs are stopped. Their password, tokens and job templates are deleted, and can't be restored. The name stays taken, because jobs have it.",
  "admin.askRemove": "Remove {name}?",
  "admin.removed": "{name} was removed.",
  "admin.oldPassword": "Your current password",
  "admin.newPassword": "New password",
  "admin.newPasswordHint": "All sessions of the person end. Application tokens stay valid.",
  "admin.setPassword": "Set password",
  "admin.passwordSet": "The password was set.",
  "admin.tokens": "Tokens and sessions",
  "admin.noTokens": "No tokens.",
  "admin.kind.session": "Session of paictl",
  "admin.kind.browser": "Browser",
  "admin.kind.application": "Application token",
  "admin.used": "used",
  "admin.thisSession": "(this session)",
  "admin.revoke": "Revoke",
  "admin.revokeAll": "Revoke all",
  "admin.revokeHint": "Requests with it are refused within a second.",
  "admin.revokeOwn": "Your own session ends, too. Then sign in again.",
  "admin.revoked": "Revoked.",
  "admin.askRevoke": "Revoke {name}?",
  "admin.askRevokeAll": "Revoke all tokens and sessions of {name}?",
  "admin.addGroup": "Add a group",
  "admin.searchGroups": "Search groups",
  "admin.noGroup": "No group matches.",
  "admin.members": "Members",
  "admin.pages": "Pages",
  "admin.allPages": "all",
  "admin.description": "Description",
  "admin.grantsAdministration": "Members are administrators",
  "admin.grantsAdministrationHint": "They may do everything except use storages.",
  "admin.grantsAllVCs": "Members may use all virtual clusters, including later ones",
  "admin.seeJobs": "see each other's jobs",
  "admin.hostNetwork": "machines' network",
  "admin.maxPriority": "Highest priority",
  "admin.upTo": "up to {name}",
  "admin.addVCTo": "Grant a virtual cluster…",
  "admin.storagesHint": "The first is the default storage of the group.",
  "admin.addStorage": "Add a storage",
  "admin.page.monitoring": "Monitoring",
  "admin.page.alerts": "Alerts",
  "admin.page.monitoring-write": "Silence alerts",
  "admin.external": "Groups at providers of sign-ins",
  "admin.externalHint": "Members of these groups are members of this group.",
  "admin.askDeleteGroup": "Delete the group {name}?",
  "admin.deleteGroupHint": "Its {n} members lose what it grants.",
  "admin.addMember": "Add a member…",
  "admin.noMembers": "Nobody is in this group.",
  "admin.removeMember": "Remove",
  "admin.byProvider": "by a provider",
  "admin.memberAdded": "{name} is in {group} now.",
  "admin.memberRemoved": "{name} isn't in {group} any longer.",
  "admin.addVC": "Add a virtual cluster",
  "admin.searchVCs": "Search virtual clusters",
  "admin.noVC": "There are no virtual clusters.",
  "admin.noSuchVC": "The virtual cluster {name} doesn't exist.",
  "admin.vcExists": "The virtual cluster {name} exists already, and the change would be one of it.",
  "admin.pinnedCell": "pinned {id}",
  "admin.pinned": "Pinned cells",
  "admin.pinnedHint": "Certain cells of the hardware, by their names (pinnedCellId).",
  "admin.addPinned": "Name of a pinned cell",
  "admin.perUser": "{n} per user",
  "admin.perGroup": "{n} per group",
  "admin.guaranteed": "Guaranteed",
  "admin.inUse": "In use",
  "admin.free": "Free",
  "admin.waiting": "Waiting",
  "admin.broken": "Out of order",
  "admin.lent": "Opportunistic",
  "admin.cells": "Cells",
  "admin.quota": "Quota",
  "admin.oldConfiguration": "The scheduler refused the latest configuration and uses an earlier one: {why}",
  "admin.deletedVCs": "Deleted, but jobs still run in them: {names}",
  "admin.cellType": "Type of cell",
  "admin.number": "Number",
  "admin.cellsHint": "The machines, or parts of machines, that it owns. 0 removes a type.",
  "admin.cpuCells": "CPU cells",
  "admin.takeFrom": "Exchange cells with",
  "admin.takeFromNone": "no other virtual cluster",
  "admin.takeFromHint": "It loses the cells that this one gets, and gets those that this one loses.",
  "admin.quotaPerUser": "GPUs per user",
  "admin.quotaPerGroup": "GPUs per group",
  "admin.noLimit": "0 means no limit.",
  "admin.quotaUsers": "Different quota of users",
  "admin.quotaGroups": "Different quota of groups",
  "admin.person": "Person",
  "admin.policy": "Preemption",
  "admin.policy.balanced": "Short waits for all.",
  "admin.policy.fewer-kills": "Fewer opportunistic jobs are preempted, but they wait longer.",
  "admin.policy.start-now": "Opportunistic jobs start whenever there is room, but are preempted more often.",
  "admin.preview": "Preview",
  "admin.previewAgain": "Preview again",
  "admin.previewHint": "Change something to preview its effect. Nothing is stored before you apply it.",
  "admin.ownsNow": "Owns now",
  "admin.ownsThen": "Would own",
  "admin.jobsAffected": "Jobs affected: {n}",
  "admin.noJobAffected": "No job is affected.",
  "admin.diff": "Change of the configuration",
  "admin.effect.downgraded": "Loses its guarantee: it continues to run, and the owners of its cells may preempt it.",
  "admin.effect.restored": "Has its guarantee again.",
  "admin.effect.refused": "Waits, and could never start.",
  "admin.effect.orphaned": "Continues to run without a guarantee; a retry would be refused.",
  "admin.nothingChanges": "Nothing to change: revision {n} already has these values.",
  "admin.pending": "Revision {n} already has these values, and the scheduler doesn't have them yet.",
  "admin.invalid": "The scheduler would refuse this change.",
  "admin.reason": "Reason",
  "admin.reasonHint": "The history of the configuration keeps it.",
  "admin.force": "Apply it although jobs are inside",
  "admin.forceHint": "Running jobs continue without a guarantee, and waiting jobs never start.",
  "admin.apply": "Apply to revision {n}",
  "admin.stored": "Revision {n} is stored.",
  "admin.storedAndLoaded": "Revision {n} is stored, and the scheduler loads it.",
  "admin.storedOnly": "Revision {n} is stored. It takes effect with: paictl service start -n scheduler",
  "admin.deleteVC": "Delete {name}",
  "admin.deleteVCHint": "The preview names the jobs that would lose their virtual cluster.",
  "admin.heir": "Its cells go to",
  "admin.noHeir": "no virtual cluster",
  "admin.keep": "Keep",
  "admin.searchServices": "Search services",
  "admin.trouble": "Needs attention",
  "admin.pods": "Pods",
  "admin.release": "Release",
  "admin.configuration": "Configuration",
  "admin.updated": "Updated",
  "admin.current": "up to date",
  "admin.noService": "There are no services.",
  "admin.noServiceHere": "No service matches.",
  "admin.andMore": "and {n} more",
  "admin.noProblems": "It has no problems.",
  "admin.namespace": "Namespace",
  "admin.chart": "Chart",
  "admin.revision": "Revision",
  "admin.installedBy": "Installed by",
  "admin.serviceCommands": "The server doesn't manage services. Run these with a kubeconfig:",
  "admin.service.ready": "Ready",
  "admin.service.starting": "Starting",
  "admin.service.failed": "Failed",
  "admin.service.stopped": "Stopped",
  "admin.service.not installed": "Not installed",
  "admin.service.disabled": "Disabled",
  "admin.service.orphan": "Not in the configuration",
  "admin.service.unknown": "Unknown",
  "admin.alert": "Alert",
  "admin.severity": "Severity",
  "admin.severity.critical": "Critical",
  "admin.severity.warning": "Warning",
  "admin.severity.info": "Info",
  "admin.severity.silenced": "Silenced",
  "admin.since": "Since",
  "admin.summary": "Summary",
  "admin.runbook": "Runbook",
  "admin.noAlert": "No alert fires.",
  "admin.noAlertHere": "No alert matches.",
  "admin.actor": "Person",
  "admin.verb": "Action",
  "admin.kind": "Kind",
  "admin.from": "From",
  "admin.until": "Until",
  "admin.outcome": "Outcome",
  "admin.outcome.done": "Done",
  "admin.outcome.refused": "Refused",
  "admin.outcome.failed": "Failed",
  "admin.anyTime": "Any time",
  "admin.last.1h": "1 hour",
  "admin.last.24h": "1 day",
  "admin.last.7d": "7 days",
  "admin.last.30d": "30 days",
  "admin.noRecord": "The audit has no records yet.",
  "admin.noRecordHere": "No record matches these filters.",
  "admin.records": "{n} records",
  "admin.olderRecords": "Show older records",
  "admin.csvCut": "The file has the latest {n} records. Choose a shorter time for the others.",
  "admin.status": "Status",
  "admin.token": "Token",
  "admin.request": "Request",
  "admin.actorUID": "UID of the person",
  "admin.record": "Record"
};
var zh = {
  "admin.tab.people": "用户",
  "admin.tab.groups": "用户组",
  "admin.tab.virtual-clusters": "虚拟集群",
  "admin.tab.services": "服务",
  "admin.tab.alerts": "告警",
  "admin.tab.actions": "操作",
  "admin.operation": "操作",
  "admin.target": "对象",
  "admin.by": "发起者",
  "admin.requested": "请求时间",
  "admin.expires": "过期时间",
  "admin.withdrawn": "撤回原因",
  "admin.ofMachine": "机器名称",
  "admin.openActions": "未结束",
  "admin.endedActions": "已结束",
  "admin.noAction": "还没有操作。可以在机器页面发起，告警处理程序的策略也会创建操作。",
  "admin.noActionHere": "没有符合条件的操作。",
  "admin.silence": "静默",
  "admin.newSilence": "新建静默",
  "admin.silences": "静默规则",
  "admin.noSilences": "没有被静默的告警。",
  "admin.silenceTitle": "静默告警",
  "admin.silenceMore": "这些告警的通知不会发送，告警处理程序也不会收到。告警本身仍会触发；之后触发的告警，只要标签全部匹配，也会被静默。",
  "admin.matchers": "告警须具有的标签",
  "admin.label": "标签 {n}",
  "admin.comparison": "比较方式 {n}",
  "admin.labelValue": "值 {n}",
  "admin.addMatcher": "添加标签",
  "admin.badExpression": "表达式无效。",
  "admin.matchesNow": "当前匹配的告警：{n} 条",
  "admin.silenceFor": "时长",
  "admin.silenced": "已静默。当前触发的告警：{n} 条",
  "admin.askUnsilence": "结束静默？",
  "admin.askUnsilenceMore": "将重新发送带有 {matchers} 的告警通知。",
  "admin.unsilence": "结束",
  "admin.unsilenced": "静默已结束。",
  "admin.ends": "结束时间",
  "admin.reasonHere": "原因",
  "admin.openMachine": "打开 {name}",
  "admin.tab.audit": "审计",
  "admin.removeName": "移除 {name}",
  "admin.provider": "身份提供方",
  "admin.addPair": "添加",
  "admin.conflict": "重新读取可查看变化。您的修改会保留在表单中。",
  "admin.readAgain": "重新读取",
  "admin.shownOf": "{n} / {all}",
  "admin.showMore": "显示更多",
  "admin.disabled": "已禁用",
  "admin.active": "正常",
  "admin.administrator": "管理员",
  "admin.administrators": "管理员",
  "admin.addPerson": "添加用户",
  "admin.searchPeople": "搜索用户",
  "admin.group": "用户组",
  "admin.anyGroup": "所有用户组",
  "admin.noPerson": "没有符合条件的用户。",
  "admin.people": "{n} 个用户",
  "admin.displayName": "显示名称",
  "admin.email": "邮箱",
  "admin.groups": "用户组",
  "admin.lastSignIn": "上次登录",
  "admin.never": "从未",
  "admin.created": "创建时间",
  "admin.added": "已添加 {name}。",
  "admin.nameHint": "由字母、数字组成，中间可以包含 . _ -，之后不能更改。",
  "admin.defaultGroup": "未选择用户组时，该用户属于用户组 default。",
  "admin.addGroupTo": "添加用户组…",
  "admin.password": "密码",
  "admin.passwordHint": "至少 10 个字符。不设密码的用户须关联身份提供方的身份。",
  "admin.identities": "身份提供方中的身份",
  "admin.identitiesHint": "在该身份提供方以此标识登录的人就是该用户。",
  "admin.subject": "标识",
  "admin.takeOver": "接管此前同名用户的作业",
  "admin.takeOverHint": "如不勾选，已有作业使用的名称会被拒绝。",
  "admin.add": "添加",
  "admin.asCommand": "对应的命令：",
  "admin.saved": "已保存。",
  "admin.save": "保存",
  "admin.discard": "放弃修改",
  "admin.theirAudit": "审计",
  "admin.allVCs": "全部",
  "admin.storages": "存储",
  "admin.externalGroups": "另通过身份提供方属于：{names}。",
  "admin.disable": "禁用",
  "admin.disableHint": "被禁用的用户无法登录，其令牌会被拒绝。",
  "admin.removePerson": "删除用户",
  "admin.removeHint": "该用户的作业会停止，密码、令牌和作业模板会被删除，且无法恢复。用户名不会释放，因为作业仍使用它。",
  "admin.askRemove": "删除 {name}？",
  "admin.removed": "已删除 {name}。",
  "admin.oldPassword": "您当前的密码",
  "admin.newPassword": "新密码",
  "admin.newPasswordHint": "该用户的所有会话都会结束。应用令牌仍然有效。",
  "admin.setPassword": "设置密码",
  "admin.passwordSet": "密码已设置。",
  "admin.tokens": "令牌和会话",
  "admin.noTokens": "没有令牌。",
  "admin.kind.session": "paictl 会话",
  "admin.kind.browser": "浏览器",
  "admin.kind.application": "应用令牌",
  "admin.used": "上次使用",
  "admin.thisSession": "（当前会话）",
  "admin.revoke": "吊销",
  "admin.revokeAll": "全部吊销",
  "admin.revokeHint": "使用它的请求会在一秒内被拒绝。",
  "admin.revokeOwn": "您自己的会话也会结束，之后请重新登录。",
  "admin.revoked": "已吊销。",
  "admin.askRevoke": "吊销 {name}？",
  "admin.askRevokeAll": "吊销 {name} 的所有令牌和会话？",
  "admin.addGroup": "添加用户组",
  "admin.searchGroups": "搜索用户组",
  "admin.noGroup": "没有符合条件的用户组。",
  "admin.members": "成员",
  "admin.pages": "页面",
  "admin.allPages": "全部",
  "admin.description": "说明",
  "admin.grantsAdministration": "成员是管理员",
  "admin.grantsAdministrationHint": "成员可以执行除使用存储以外的所有操作。",
  "admin.grantsAllVCs": "成员可以使用所有虚拟集群，包括之后新建的",
  "admin.seeJobs": "互相查看作业",
  "admin.hostNetwork": "主机网络",
  "admin.maxPriority": "最高优先级",
  "admin.upTo": "最高 {name}",
  "admin.addVCTo": "授予虚拟集群…",
  "admin.storagesHint": "第一个是该用户组的默认存储。",
  "admin.addStorage": "添加存储",
  "admin.page.monitoring": "监控",
  "admin.page.alerts": "告警",
  "admin.page.monitoring-write": "静默告警",
  "admin.external": "身份提供方中的用户组",
  "admin.externalHint": "这些用户组的成员也是该用户组的成员。",
  "admin.askDeleteGroup": "删除用户组 {name}？",
  "admin.deleteGroupHint": "其 {n} 名成员将失去它授予的权限。",
  "admin.addMember": "添加成员…",
  "admin.noMembers": "该用户组没有成员。",
  "admin.removeMember": "移除",
  "admin.byProvider": "来自身份提供方",
  "admin.memberAdded": "{name} 已加入 {group}。",
  "admin.memberRemoved": "已将 {name} 移出 {group}。",
  "admin.addVC": "添加虚拟集群",
  "admin.searchVCs": "搜索虚拟集群",
  "admin.noVC": "没有虚拟集群。",
  "admin.noSuchVC": "虚拟集群 {name} 不存在。",
  "admin.vcExists": "虚拟集群 {name} 已存在，此操作会修改它。",
  "admin.pinnedCell": "固定单元 {id}",
  "admin.pinned": "固定单元",
  "admin.pinnedHint": "按名称（pinnedCellId）指定的硬件单元。",
  "admin.addPinned": "固定单元的名称",
  "admin.perUser": "每用户 {n}",
  "admin.perGroup": "每用户组 {n}",
  "admin.guaranteed": "保障",
  "admin.inUse": "使用中",
  "admin.free": "空闲",
  "admin.waiting": "等待",
  "admin.broken": "故障",
  "admin.lent": "机会型",
  "admin.cells": "单元",
  "admin.quota": "配额",
  "admin.oldConfiguration": "调度器拒绝了最新的配置，仍使用较早的配置：{why}",
  "admin.deletedVCs": "已删除，但仍有作业在运行：{names}",
  "admin.cellType": "单元类型",
  "admin.number": "数量",
  "admin.cellsHint": "它拥有的机器或机器的一部分。0 表示移除该类型。",
  "admin.cpuCells": "CPU 单元",
  "admin.takeFrom": "与之交换单元",
  "admin.takeFromNone": "不与其他虚拟集群交换",
  "admin.takeFromHint": "对方失去本虚拟集群获得的单元，获得本虚拟集群失去的单元。",
  "admin.quotaPerUser": "每用户 GPU 数",
  "admin.quotaPerGroup": "每用户组 GPU 数",
  "admin.noLimit": "0 表示不限。",
  "admin.quotaUsers": "特定用户的配额",
  "admin.quotaGroups": "特定用户组的配额",
  "admin.person": "用户",
  "admin.policy": "抢占策略",
  "admin.policy.balanced": "所有作业的等待时间都较短。",
  "admin.policy.fewer-kills": "较少抢占机会型作业，但它们的等待时间更长。",
  "admin.policy.start-now": "只要有空闲资源，机会型作业就会启动，但更常被抢占。",
  "admin.preview": "预览",
  "admin.previewAgain": "重新预览",
  "admin.previewHint": "修改后可预览其影响。应用之前不会保存任何内容。",
  "admin.ownsNow": "当前拥有",
  "admin.ownsThen": "将拥有",
  "admin.jobsAffected": "受影响的作业：{n}",
  "admin.noJobAffected": "没有作业受影响。",
  "admin.diff": "配置的变化",
  "admin.effect.downgraded": "失去保障：继续运行，但单元的所有者可以抢占它。",
  "admin.effect.restored": "重新获得保障。",
  "admin.effect.refused": "正在等待，且永远无法启动。",
  "admin.effect.orphaned": "在没有保障的情况下继续运行；重试会被拒绝。",
  "admin.nothingChanges": "无需修改：修订版本 {n} 已有这些值。",
  "admin.pending": "修订版本 {n} 已有这些值，但调度器尚未加载。",
  "admin.invalid": "调度器会拒绝此修改。",
  "admin.reason": "原因",
  "admin.reasonHint": "将保存在配置的历史记录中。",
  "admin.force": "即使其中仍有作业也应用",
  "admin.forceHint": "运行中的作业会在没有保障的情况下继续，等待中的作业永远无法启动。",
  "admin.apply": "应用到修订版本 {n}",
  "admin.stored": "已保存修订版本 {n}。",
  "admin.storedAndLoaded": "已保存修订版本 {n}，调度器会加载它。",
  "admin.storedOnly": "已保存修订版本 {n}。执行以下命令后生效：paictl service start -n scheduler",
  "admin.deleteVC": "删除 {name}",
  "admin.deleteVCHint": "预览会列出将失去虚拟集群的作业。",
  "admin.heir": "单元转交给",
  "admin.noHeir": "不转交",
  "admin.keep": "保留",
  "admin.searchServices": "搜索服务",
  "admin.trouble": "需要关注",
  "admin.pods": "Pod",
  "admin.release": "Release",
  "admin.configuration": "配置",
  "admin.updated": "更新时间",
  "admin.current": "已是最新",
  "admin.noService": "没有服务。",
  "admin.noServiceHere": "没有符合条件的服务。",
  "admin.andMore": "另有 {n} 个",
  "admin.noProblems": "没有问题。",
  "admin.namespace": "命名空间",
  "admin.chart": "Chart",
  "admin.revision": "修订版本",
  "admin.installedBy": "安装者",
  "admin.serviceCommands": "服务器不管理服务。请使用 kubeconfig 运行以下命令：",
  "admin.service.ready": "就绪",
  "admin.service.starting": "启动中",
  "admin.service.failed": "失败",
  "admin.service.stopped": "已停止",
  "admin.service.not installed": "未安装",
  "admin.service.disabled": "已禁用",
  "admin.service.orphan": "不在配置中",
  "admin.service.unknown": "未知",
  "admin.alert": "告警",
  "admin.severity": "级别",
  "admin.severity.critical": "严重",
  "admin.severity.warning": "警告",
  "admin.severity.info": "信息",
  "admin.severity.silenced": "已静默",
  "admin.since": "开始于",
  "admin.summary": "摘要",
  "admin.runbook": "处理手册",
  "admin.noAlert": "没有触发的告警。",
  "admin.noAlertHere": "没有符合条件的告警。",
  "admin.actor": "用户",
  "admin.verb": "操作",
  "admin.kind": "类型",
  "admin.from": "从",
  "admin.until": "到",
  "admin.outcome": "结果",
  "admin.outcome.done": "完成",
  "admin.outcome.refused": "被拒绝",
  "admin.outcome.failed": "失败",
  "admin.anyTime": "任意时间",
  "admin.last.1h": "1 小时",
  "admin.last.24h": "1 天",
  "admin.last.7d": "7 天",
  "admin.last.30d": "30 天",
  "admin.noRecord": "审计日志中还没有记录。",
  "admin.noRecordHere": "没有符合筛选条件的记录。",
  "admin.records": "{n} 条记录",
  "admin.olderRecords": "显示更早的记录",
  "admin.csvCut": "文件只包含最近的 {n} 条记录。如需其他记录，请缩短时间范围。",
  "admin.status": "状态码",
  "admin.token": "令牌",
  "admin.request": "请求",
  "admin.actorUID": "用户的 UID",
  "admin.record": "记录"
};
add({ en, zh });

// pkg/portal/web/src/admin.tsx
import { jsx as jsx10, jsxs as jsxs10 } from "./library.js";
var tabs = ["people", "groups", "virtual-clusters", "services", "alerts", "actions", "audit"];
function Refused() {
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/tokens", { query: { all: true }, signal }));
  useEffect7(() => {
    if (value.value) void begin();
  }, [value.value]);
  return /* @__PURE__ */ jsx10("section", { class: "page", children: error.value ? /* @__PURE__ */ jsx10(Problem, { of: error.value, again }) : /* @__PURE__ */ jsx10(Loading, {}) });
}
function Content({ tab, name }) {
  const adds = name === void 0 && place.value.query.has("add");
  switch (tab) {
    case "people":
      return name !== void 0 ? /* @__PURE__ */ jsx10(PersonPage, { name }, name) : adds ? /* @__PURE__ */ jsx10(NewPerson, {}) : /* @__PURE__ */ jsx10(People, {});
    case "groups":
      return name !== void 0 ? /* @__PURE__ */ jsx10(GroupPage, { name }, name) : adds ? /* @__PURE__ */ jsx10(NewGroup, {}) : /* @__PURE__ */ jsx10(Groups, {});
    case "virtual-clusters":
      return name !== void 0 ? /* @__PURE__ */ jsx10(VCPage, { name }, name) : adds ? /* @__PURE__ */ jsx10(NewVC, {}) : /* @__PURE__ */ jsx10(VirtualClusters, {});
    case "services":
      return /* @__PURE__ */ jsx10(Services, {});
    case "alerts":
      return /* @__PURE__ */ jsx10(Alerts, {});
    case "actions":
      return /* @__PURE__ */ jsx10(Actions, {});
    case "audit":
      return /* @__PURE__ */ jsx10(Audit, {});
  }
  return /* @__PURE__ */ jsx10("p", { class: "empty", children: t("notFound") });
}
function Admin({ tab = "people", name }) {
  if (!me.value?.grants.administrator) return /* @__PURE__ */ jsx10(Refused, {});
  return /* @__PURE__ */ jsxs10("section", { class: "page admin", children: [
    /* @__PURE__ */ jsx10("nav", { class: "tabs", role: "tablist", "aria-label": t("admin"), children: tabs.map((x) => /* @__PURE__ */ jsx10("a", { role: "tab", "aria-selected": x === tab, href: address(["admin", x]), children: t(`admin.tab.${x}`) }, x)) }),
    /* @__PURE__ */ jsx10(Content, { tab, name })
  ] });
}
export {
  Admin
};
