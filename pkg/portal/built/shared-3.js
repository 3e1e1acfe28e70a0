import {
  me
} from "./shared-6.js";
import {
  Icon,
  Problem,
  State,
  address,
  addressOf,
  call,
  failure,
  go,
  language,
  languages,
  speak,
  t
} from "./shared.js";

// pkg/portal/web/src/shell.ts
function quoted(word) {
  if (/[\u0000-\u001f\u007f]/.test(word)) return "$'" + word.replace(/[\\'\u0000-\u001f\u007f]/g, (c) => "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0")) + "'";
  return /^[A-Za-z0-9_./~:@%+,-][A-Za-z0-9_./~:@%+,=-]*$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}
function curl(route, args) {
  const method = route.slice(0, route.indexOf(" "));
  const body = args.body === void 0 ? "" : `-H "Content-Type: application/json" -d ${quoted(JSON.stringify(args.body))} `;
  return `curl ${method === "GET" ? "" : `-X ${method} `}-H "Authorization: Bearer $PAI_TOKEN" ${body}${quoted(location.origin + addressOf(route, args))}`;
}

// pkg/portal/web/src/palette.tsx
import { signal, useSignal } from "./library.js";
import { useEffect, useRef } from "./library.js";
import { jsx, jsxs } from "./library.js";
var open = signal(false);
function fixed() {
  const page = (path, icon, title) => ({ key: "/" + path.join("/"), icon, title, run: () => go(address(path)) });
  const mine = me.value?.name;
  return [
    page([], "home", t("home")),
    page(["jobs"], "jobs", t("jobs")),
    { key: "mine", icon: "jobs", title: t("allMine"), run: () => go(address(["jobs"], { user: mine })) },
    page(["submit"], "plus", t("newJob")),
    page(["templates"], "file", t("templates")),
    page(["queue"], "queue", t("queue")),
    page(["machines"], "machines", t("machines")),
    page(["usage"], "usage", t("usagePage")),
    page(["profile"], "person", t("profile")),
    ...me.value?.grants.administrator ? [page(["admin"], "shield", t("admin"))] : [],
    ...languages.filter(([code]) => code !== language.value).map(([code, name]) => ({ key: "language " + code, icon: "globe", title: name, run: () => speak(code) }))
  ];
}
function fits(title, words) {
  const low = title.toLowerCase();
  return words.every((w) => low.includes(w));
}
var most = 8;
var pause = 150;
async function found(text, signal3) {
  const [jobs, templates] = await Promise.all([call("GET /api/v3/jobs", { query: { keyword: text, limit: most }, signal: signal3 }), call("GET /api/v3/templates", { query: { keyword: text }, signal: signal3 })]);
  return [
    ...(jobs.items ?? []).map((j) => ({ key: j.uid, icon: "jobs", title: j.name, more: j.user, state: j.state, run: () => go(address(["jobs", j.user, j.name])) })),
    ...(templates.items ?? []).slice(0, most).map((x) => ({ key: x.id, icon: "file", title: x.name, more: x.builtIn ? t("builtIn") : x.author, run: () => go(address(["templates", x.id])) }))
  ];
}
function Palette() {
  return open.value ? /* @__PURE__ */ jsx(Box, {}) : null;
}
function Box() {
  const dialog = useRef(null);
  const list = useRef(null);
  const text = useSignal("");
  const at = useSignal(0);
  const more = useSignal([]);
  const error = useSignal(null);
  const close = () => open.value = false;
  useEffect(() => {
    const before2 = document.activeElement;
    dialog.current.showModal();
    return () => before2?.focus?.();
  }, []);
  useEffect(() => {
    const word = text.value.trim();
    at.value = 0;
    if (!word) {
      more.value = [];
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(() => {
      found(word, stop.signal).then(
        (all2) => {
          more.value = all2;
          error.value = null;
        },
        (e) => {
          if (!stop.signal.aborted) error.value = failure(e);
        }
      );
    }, pause);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text.value]);
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const entries = [...fixed().filter((e) => fits(e.title, words)), ...more.value];
  const chosen = Math.min(at.value, entries.length - 1);
  const run = (e) => {
    if (!e) return;
    close();
    e.run();
  };
  const keys = (e) => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step && entries.length) {
      at.value = (chosen + step + entries.length) % entries.length;
      list.current?.children[at.value]?.scrollIntoView({ block: "nearest" });
    } else if (e.key === "Enter" && !e.isComposing) run(entries[chosen]);
    else return;
    e.preventDefault();
  };
  return /* @__PURE__ */ jsxs("dialog", { ref: dialog, class: "palette", onClose: close, onClick: (e) => e.target === dialog.current && close(), "aria-label": t("palette"), children: [
    /* @__PURE__ */ jsxs("label", { class: "search", children: [
      /* @__PURE__ */ jsx(Icon, { name: "search" }),
      /* @__PURE__ */ jsx(
        "input",
        {
          type: "text",
          autofocus: true,
          role: "combobox",
          "aria-expanded": "true",
          "aria-controls": "found",
          "aria-activedescendant": entries[chosen] ? "found-" + chosen : void 0,
          placeholder: t("paletteHint"),
          "aria-label": t("paletteHint"),
          onInput: (e) => text.value = e.currentTarget.value,
          onKeyDown: keys
        }
      )
    ] }),
    error.value ? /* @__PURE__ */ jsx(Problem, { of: error.value }) : null,
    /* @__PURE__ */ jsx("ul", { id: "found", role: "listbox", ref: list, children: entries.map((e, i) => /* @__PURE__ */ jsxs("li", { id: "found-" + i, role: "option", "aria-selected": i === chosen, onPointerMove: () => at.value = i, onClick: () => run(e), children: [
      /* @__PURE__ */ jsx(Icon, { name: e.icon }),
      /* @__PURE__ */ jsx("span", { class: "name", children: e.title }),
      e.more ? /* @__PURE__ */ jsx("span", { class: "faint", children: e.more }) : null,
      /* @__PURE__ */ jsx("span", { class: "grow" }),
      e.state ? /* @__PURE__ */ jsx(State, { state: e.state }) : null
    ] }, e.key)) }),
    entries.length === 0 ? /* @__PURE__ */ jsx("p", { class: "empty", children: t("nothingFound") }) : null
  ] });
}

// pkg/portal/web/src/keys.ts
import { signal as signal2 } from "./library.js";
import { useEffect as useEffect2 } from "./library.js";
var mac = /^Mac/.test(navigator.platform);
var pages = [];
var help = signal2(false);
var before = "";
var all = [
  ["/", "key.search"],
  ["j  ↓", "key.next"],
  ["k  ↑", "key.prev"],
  ["Enter", "key.open"],
  ["1 – 6", "key.tabs"],
  ["Ctrl Enter", "key.send"],
  ["Ctrl Space", "key.complete"],
  ["Ctrl F6", "key.leave"],
  ["g h", "key.home"],
  ["g j", "key.jobs"],
  ["g m", "key.machines"],
  ["g t", "key.templates"],
  ["g u", "key.usage"],
  ["n", "key.submit"],
  ["c  d", "key.machine"],
  ["Ctrl K", "key.palette"],
  ["?", "key.help"]
];
var everywhere = {
  "g h": () => go(address([])),
  "g j": () => go(address(["jobs"])),
  "g m": () => go(address(["machines"])),
  "g t": () => go(address(["templates"])),
  "g u": () => go(address(["usage"])),
  n: () => go(address(["submit"])),
  "?": () => help.value = !help.value
};
function listen() {
  addEventListener("keydown", (e) => {
    if (e.key === "k" && (mac ? e.metaKey : e.ctrlKey) && !e.altKey && !e.shiftKey && !document.querySelector("dialog[open]") && !e.target.closest?.(".shell")) {
      e.preventDefault();
      open.value = true;
      return;
    }
    const at = e.target;
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]") || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || at.isContentEditable) return;
    const two = before + " " + e.key;
    before = e.key;
    for (const keys of [...pages].reverse().concat(everywhere)) {
      const act = keys[two] ?? keys[e.key];
      if (act) {
        if (e.key === "Enter" && at !== document.body) return;
        e.preventDefault();
        before = "";
        act(e);
        return;
      }
    }
  });
}
function useKeys(keys) {
  useEffect2(() => {
    pages.push(keys);
    return () => void pages.splice(pages.indexOf(keys), 1);
  });
}

export {
  quoted,
  curl,
  Palette,
  help,
  all,
  listen,
  useKeys
};
