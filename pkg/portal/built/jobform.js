import {
  load,
  written
} from "./shared-4.js";
import {
  me,
  ownVCs
} from "./shared-6.js";
import {
  Icon,
  Loading,
  add,
  t
} from "./shared.js";

// pkg/portal/web/src/jobform.tsx
import { useSignal as useSignal2 } from "./library.js";
import { useEffect } from "./library.js";

// pkg/portal/web/src/formparts.tsx
import { useSignal } from "./library.js";
import { useRef } from "./library.js";
import { Fragment, jsx, jsxs } from "./library.js";
var fields = 0;
function Labelled({ d, path, label, hint, wide, able, children }) {
  const id = useRef("");
  id.current ||= "job-" + ++fields;
  const n = d.node(path);
  return /* @__PURE__ */ jsxs("div", { class: wide ? "field whole-row" : "field", children: [
    /* @__PURE__ */ jsx("label", { for: id.current, children: label }),
    able ? children(id.current) : /* @__PURE__ */ jsx("button", { type: "button", id: id.current, class: "link", onClick: () => d.refuse(n?.from ?? 0), children: t("form.inDocument") }),
    hint ? /* @__PURE__ */ jsx("small", { children: hint }) : null
  ] });
}
function useTyping(now, write, remove, clean = (text) => text) {
  const typing = useSignal(null);
  return {
    value: typing.value?.file === now ? typing.value.text : now,
    typed: (text) => {
      const empty = text.trim() === "";
      typing.value = { text, file: empty ? now : clean(text) };
      if (!empty) write(text);
    },
    left: () => {
      if (typing.value?.file === now && typing.value.text.trim() === "") remove();
      typing.value = null;
    }
  };
}
function Line({ number, wide, ...f }) {
  const { d, path } = f;
  const { value, typed, left } = useTyping(
    d.value(path),
    (text) => number ? d.setNumber(path, text.trim()) : d.set(path, text),
    () => d.set(path, void 0),
    (text) => number ? text.trim() : text
  );
  return /* @__PURE__ */ jsx(Labelled, { ...f, wide, able: d.isText(path), children: (id) => /* @__PURE__ */ jsx("input", { id, type: "text", name: path.join("."), inputMode: number ? "decimal" : void 0, value, placeholder: number ? "–" : void 0, autocomplete: "off", autocapitalize: "off", spellcheck: false, onInput: (e) => typed(e.currentTarget.value), onBlur: left }) });
}
function Name({ label, name, value, change }) {
  const id = useRef("");
  id.current ||= "job-" + ++fields;
  return /* @__PURE__ */ jsxs("div", { class: "field", children: [
    /* @__PURE__ */ jsx("label", { for: id.current, children: label }),
    /* @__PURE__ */ jsx("input", { id: id.current, type: "text", name, value, autocomplete: "off", autocapitalize: "off", spellcheck: false, onChange: (e) => e.currentTarget.value.trim() && e.currentTarget.value.trim() !== value ? change(e.currentTarget.value.trim()) : e.currentTarget.value = value })
  ] });
}
function Choice({ options, none, ...f }) {
  const { d, path } = f;
  const now = d.value(path);
  const all = options.map((o) => typeof o === "string" ? [o, o] : o);
  if (now && !all.some(([v]) => v === now)) all.push([now, now]);
  return /* @__PURE__ */ jsx(Labelled, { ...f, able: d.isText(path), children: (id) => /* @__PURE__ */ jsxs("select", { id, name: path.join("."), value: now, onChange: (e) => d.set(path, e.currentTarget.value || void 0), children: [
    none !== void 0 || !now ? /* @__PURE__ */ jsx("option", { value: "", children: none ?? "" }) : null,
    all.map(([v, text]) => /* @__PURE__ */ jsx("option", { value: v, children: text }, v))
  ] }) });
}
function Tick({ d, path, label, hint, without = false }) {
  const now = d.value(path);
  const checked2 = now === "" ? without : /^(true|yes|on|1)$/i.test(now);
  return /* @__PURE__ */ jsxs("label", { class: "tick", children: [
    /* @__PURE__ */ jsx("input", { type: "checkbox", name: path.join("."), checked: checked2, disabled: !d.isText(path), onChange: (e) => d.set(path, e.currentTarget.checked === without ? void 0 : e.currentTarget.checked) }),
    /* @__PURE__ */ jsxs("span", { children: [
      label,
      hint ? /* @__PURE__ */ jsx("small", { children: hint }) : null
    ] })
  ] });
}
function withoutEnd(text) {
  return text.replace(/\n+$/, "");
}
function Lines({ mono = true, ...f }) {
  const { d, path } = f;
  const all = d.texts(path);
  const several = all?.some((x) => x.includes("\n"));
  const { value, typed, left } = useTyping(
    all?.join("\n") ?? "",
    (text) => d.set(path, withoutEnd(text).split("\n")),
    () => d.set(path, void 0),
    withoutEnd
  );
  return /* @__PURE__ */ jsx(Labelled, { ...f, hint: several ? void 0 : f.hint, wide: true, able: all !== null, children: (id) => several ? /* @__PURE__ */ jsxs("div", { class: "items", children: [
    all.map((x, i) => /* @__PURE__ */ jsx(Item, { d, path: [...path, i], id: i ? void 0 : id, label: `${f.label} ${i + 1}`, value: x }, i)),
    /* @__PURE__ */ jsx("button", { type: "button", class: "link", onClick: () => d.set([...path, all.length], "echo"), children: t("form.addCommand") })
  ] }) : /* @__PURE__ */ jsx("textarea", { id, name: path.join("."), class: mono ? "mono" : "", rows: Math.min(16, Math.max(2, value.split("\n").length)), wrap: "off", value, spellcheck: false, autocomplete: "off", autocapitalize: "off", onInput: (e) => typed(e.currentTarget.value), onBlur: left }) });
}
function Item({ d, path, id, label, value: now }) {
  const { value, typed, left } = useTyping(now, (text) => d.set(path, text), () => d.set(path, void 0));
  return /* @__PURE__ */ jsxs("div", { class: "item", children: [
    /* @__PURE__ */ jsx("textarea", { id, "aria-label": label, name: path.join("."), class: "mono", rows: Math.min(16, value.replace(/\n$/, "").split("\n").length), wrap: "off", value, spellcheck: false, autocomplete: "off", autocapitalize: "off", onInput: (e) => typed(e.currentTarget.value), onBlur: left }),
    /* @__PURE__ */ jsx(Remove, { label, run: () => d.set(path, void 0) })
  ] });
}
function Remove({ label, run, disabled }) {
  return /* @__PURE__ */ jsx("button", { type: "button", class: "square", "aria-label": t("form.remove", { name: label }), title: t("form.remove", { name: label }), disabled, onClick: run, children: /* @__PURE__ */ jsx(Icon, { name: "close" }) });
}
function Add({ label, run }) {
  return /* @__PURE__ */ jsxs("button", { type: "button", class: "link", onClick: run, children: [
    /* @__PURE__ */ jsx(Icon, { name: "plus" }),
    " ",
    label
  ] });
}
function Pairs({ d, path, label, add: add2, first, number, names }) {
  const n = d.node(path);
  const keys = d.keys(path);
  const fresh2 = () => {
    for (let i = 1; ; i++) if (!keys.includes(`name${i}`)) return `name${i}`;
  };
  return /* @__PURE__ */ jsxs("div", { class: "field whole-row", role: "group", "aria-label": label, children: [
    /* @__PURE__ */ jsx("span", { class: "label", children: label }),
    n && n.kind !== "map" ? /* @__PURE__ */ jsx("button", { type: "button", class: "link", onClick: () => d.refuse(n.from), children: t("form.inDocument") }) : /* @__PURE__ */ jsxs(Fragment, { children: [
      keys.map((k) => /* @__PURE__ */ jsxs("div", { class: "pair", children: [
        /* @__PURE__ */ jsx(Name, { label: t("name"), name: [...path, k, ""].join("."), value: k, change: (to) => d.rename([...path, k], to) }),
        names ? /* @__PURE__ */ jsx("span", {}) : /* @__PURE__ */ jsx(Line, { d, path: [...path, k], label: t("form.value"), number }),
        /* @__PURE__ */ jsx(Remove, { label: k, run: () => d.set([...path, k], void 0) })
      ] }, k)),
      /* @__PURE__ */ jsx(Add, { label: add2, run: () => d.set([...path, fresh2()], first) })
    ] })
  ] });
}
function Ticks({ d, path, label, all }) {
  const now = d.texts(path);
  const shown = [.../* @__PURE__ */ new Set([...all, ...now ?? []])];
  if (shown.length === 0) return null;
  return /* @__PURE__ */ jsxs("fieldset", { class: "field whole-row ticks", children: [
    /* @__PURE__ */ jsx("legend", { children: label }),
    shown.map((name) => /* @__PURE__ */ jsxs("label", { class: "tick", children: [
      /* @__PURE__ */ jsx(
        "input",
        {
          type: "checkbox",
          checked: now?.includes(name) ?? false,
          disabled: now === null,
          onChange: (e) => {
            const rest = e.currentTarget.checked ? [...now, name] : now.filter((x) => x !== name);
            d.set(path, rest.length ? rest : void 0);
          }
        }
      ),
      /* @__PURE__ */ jsx("span", { children: name })
    ] }, name))
  ] });
}
function More({ label, open, children }) {
  return /* @__PURE__ */ jsxs("details", { class: "whole-row", open, children: [
    /* @__PURE__ */ jsx("summary", { children: label }),
    /* @__PURE__ */ jsx("div", { class: "grid", children })
  ] });
}

// pkg/portal/web/src/yaml.ts
var Unreadable = class extends Error {
  constructor(at2) {
    super("unreadable");
    this.at = at2;
  }
  at;
};
function read(text, parser) {
  const stream = parser.parse(text).topNode;
  const broken = firstError(stream);
  if (broken >= 0) throw new Unreadable(broken);
  const documents = stream.getChildren("Document").filter((d) => d.firstChild);
  if (documents.length > 1) throw new Unreadable(documents[1].from);
  const root = documents[0] && contents(documents[0])[0];
  if (!root) return null;
  const node = nodeOf(root, text);
  if (node.kind !== "map") throw new Unreadable(root.from);
  return node;
}
function firstError(top) {
  const c = top.cursor();
  do
    if (c.type.isError) return c.from;
  while (c.next());
  return -1;
}
var values = /^(Literal|QuotedLiteral|BlockLiteral|BlockMapping|BlockSequence|FlowMapping|FlowSequence|Anchored|Tagged|Alias)$/;
function contents(n) {
  const out = [];
  for (let c = n.firstChild; c; c = c.nextSibling) if (values.test(c.name)) out.push(c);
  return out;
}
function nodeOf(n, text) {
  const raw = text.slice(n.from, n.to);
  const part = { from: n.from, to: n.to };
  switch (n.name) {
    case "Literal":
      return { kind: "scalar", ...part, value: folded(raw), style: "" };
    case "QuotedLiteral":
      return { kind: "scalar", ...part, value: unquoted(raw), style: raw[0] };
    case "BlockLiteral": {
      const header = n.getChild("BlockLiteralHeader");
      const marks = header ? text.slice(header.from, header.to) : "|";
      if (/[\d+]/.test(marks)) return { kind: "opaque", ...part };
      return { kind: "scalar", ...part, value: block(text.slice(n.from, n.to), marks), style: marks[0] };
    }
    case "BlockMapping":
    case "FlowMapping":
      return mapping(n, text);
    case "BlockSequence":
    case "FlowSequence": {
      const flow = n.name === "FlowSequence";
      const items = [];
      let dash = -1;
      for (let c = n.firstChild; c; c = c.nextSibling) {
        if (c.name === "-") dash = c.from;
        else if (c.name === "Item") {
          const inside = contents(c)[0];
          if (!inside && c.firstChild) throw new Unreadable(c.from);
          items.push({ from: flow || dash < 0 ? c.from : dash, to: inside ? inside.to : c.to, value: inside ? nodeOf(inside, text) : null });
          dash = -1;
        }
      }
      if (dash >= 0) items.push({ from: dash, to: dash + 1, value: null });
      return { kind: "list", ...part, flow, items };
    }
  }
  return { kind: "opaque", ...part };
}
function mapping(n, text) {
  const out = { kind: "map", from: n.from, to: n.to, flow: n.name === "FlowMapping", entries: [] };
  const names = /* @__PURE__ */ new Set();
  for (let c = n.firstChild; c; c = c.nextSibling) {
    if (c.name === "?") throw new Unreadable(c.from);
    if (c.name !== "Pair") continue;
    const name = c.getChild("Key")?.firstChild;
    const key = name && nodeOf(name, text);
    if (!key || key.kind !== "scalar" || names.has(key.value) || key.value === "<<") throw new Unreadable(c.from);
    names.add(key.value);
    const value = contents(c)[0];
    out.entries.push({ from: c.from, to: c.to, key, value: value ? nodeOf(value, text) : null });
  }
  const first = out.entries[0];
  if (first && !out.flow) out.from = first.from;
  return out;
}
function folded(raw) {
  return raw.includes("\n") ? raw.replace(/[ \t]*\r?\n((?:[ \t]*\r?\n)*)[ \t]*/g, (_, empty) => "\n".repeat((empty.match(/\n/g) ?? []).length) || " ") : raw;
}
var escapes = { 0: "\0", a: "\x07", b: "\b", t: "	", "	": "	", n: "\n", v: "\v", f: "\f", r: "\r", e: "\x1B", " ": " ", '"': '"', "/": "/", "\\": "\\", N: "", _: " ", L: "\u2028", P: "\u2029" };
function unquoted(raw) {
  const inside = raw.slice(1, -1);
  if (raw[0] === "'") return folded(inside).replaceAll("''", "'");
  return folded(inside.replace(/\\\r?\n[ \t]*/g, "")).replace(/\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))/gs, (all, x, u, long, one) => {
    const code = x ?? u ?? long;
    if (code === void 0) return escapes[one] ?? all;
    const n = parseInt(code, 16);
    return n > 1114111 ? all : String.fromCodePoint(n);
  });
}
function block(raw, marks) {
  const lines = raw.split(/\r?\n/).slice(1);
  while (lines.length && lines.at(-1).trim() === "") lines.pop();
  const indent = /^ */.exec(lines.find((l) => l.trim() !== "") ?? "")[0].length;
  let out = lines.map((l) => l.slice(Math.min(indent, /^ */.exec(l)[0].length))).join("\n");
  if (marks[0] === ">") out = out.replace(/([^\n ][^\n]*)\n(\n*)(?=[^\n \t])/g, (_, line, more) => line + (more || " "));
  return out && !marks.includes("-") ? out + "\n" : out;
}
function at(root, path) {
  let n = root;
  for (const step of path) {
    if (!n) return void 0;
    if (typeof step === "number") n = n.kind === "list" ? n.items[step]?.value : void 0;
    else n = n.kind === "map" ? entryOf(n, step)?.value : void 0;
  }
  return n;
}
function entryOf(m, key) {
  return m.entries.find((e) => e.key.value === key);
}

// pkg/portal/web/src/yamledit.ts
var Editing = class {
  constructor(text, parser, order2) {
    this.text = text;
    this.parser = parser;
    this.order = order2;
    this.eol = /\r\n/.test(text) ? "\r\n" : "\n";
    this.root = read(text, parser);
  }
  text;
  parser;
  order;
  eol;
  root;
  column(at2) {
    return at2 - this.lineStart(at2);
  }
  lineStart(at2) {
    return this.text.lastIndexOf("\n", at2 - 1) + 1;
  }
  /** Returns the start of the line after a place, or the end of the text. */
  nextLine(at2) {
    const end = this.text.indexOf("\n", at2);
    return end < 0 ? this.text.length : end + 1;
  }
  /** Returns where lines come that are added after a part. Comments after it that are further to the right than a column belong to it. */
  after(at2, column) {
    let out = this.nextLine(at2);
    for (let line = out; line < this.text.length; line = this.nextLine(line)) {
      const [, spaces, rest] = /^([ \t]*)([^\r\n]*)/.exec(this.text.slice(line, this.nextLine(line)));
      if (rest === "") continue;
      if (rest[0] !== "#" || spaces.length <= column) break;
      out = this.nextLine(line);
    }
    return out;
  }
  /** An edit that adds lines at the start of a line. */
  lines(at2, lines) {
    const open = at2 > 0 && this.text[at2 - 1] !== "\n";
    return { from: at2, to: at2, text: open ? this.eol + lines : lines + this.eol };
  }
  scalar(value, flow, indent, like) {
    if (typeof value !== "string") return String(value);
    if (/\n/.test(value.trimEnd()) || /\n$/.test(value) && !flow) {
      const lines = value.replace(/\n$/, "").split("\n");
      const plain2 = !flow && !/^[ \t]|\n$/.test(value.replace(/\n$/, "")) && !/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]/.test(value);
      if (plain2) return (value.endsWith("\n") ? "|" : "|-") + this.eol + lines.map((l) => l ? " ".repeat(indent) + l : "").join(this.eol);
      return written({ value: "", quote: '"', flow }, value);
    }
    const quote = like?.style === "'" || like?.style === '"' ? like.style : "";
    return written({ value: like?.value ?? "x", quote, flow }, value);
  }
  /** A value in braces or brackets. */
  inline(value, like) {
    if (Array.isArray(value)) return `[${value.map((v) => this.inline(v, like)).join(", ")}]`;
    if (typeof value === "object") {
      const all = Object.entries(value).map(([k, v]) => `${this.scalar(k, true, 0, like)}: ${this.inline(v, like)}`);
      return `{${all.join(", ")}}`;
    }
    return this.scalar(value, true, 0, like);
  }
  /** What follows "key:" whose column is known. */
  below(value, column) {
    if (typeof value !== "object") return " " + this.scalar(value, false, column + 2);
    const empty = Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
    return empty ? " " + this.inline(value) : this.eol + this.block(value, column + 2);
  }
  /** The lines of a mapping or a list. */
  block(value, column) {
    const spaces = " ".repeat(column);
    if (Array.isArray(value)) return value.map((v) => spaces + "- " + this.item(v, column)).join(this.eol);
    return Object.entries(value).map(([k, v]) => spaces + this.scalar(k, false, 0) + ":" + this.below(v, column)).join(this.eol);
  }
  /** What follows a dash whose column is known. */
  item(value, column) {
    if (typeof value !== "object") return this.scalar(value, false, column + 2);
    const lines = this.block(value, column + 2);
    return lines.slice(column + 2) || this.inline(value);
  }
  add(path, m, key, value) {
    const last = m.entries.at(-1);
    if (m.flow) {
      const like = last?.key.style === '"' ? last.key : void 0;
      const text = `${this.scalar(key, true, 0, like)}: ${this.inline(value, like)}`;
      if (!last) return { from: m.from + 1, to: m.to - 1, text };
      const comma = /^[ \t]*,/.exec(this.text.slice(last.to, m.to));
      return comma ? { from: last.to + comma[0].length, to: last.to + comma[0].length, text: " " + text } : { from: last.to, to: last.to, text: ", " + text };
    }
    const order2 = this.order(path);
    const place = order2.indexOf(key);
    const before = place < 0 ? last : m.entries.filter((e) => order2.indexOf(e.key.value) >= 0 && order2.indexOf(e.key.value) < place).at(-1) ?? last;
    const column = this.column(m.from);
    return this.lines(this.after(before.to, column), " ".repeat(column) + this.scalar(key, false, 0) + ":" + this.below(value, column));
  }
  /** Writes a value after a key that has none, or replaces its value. */
  fill(m, e, value) {
    const had = e.value;
    if (!had) return [{ from: e.to, to: e.to, text: m.flow ? " " + this.inline(value) : this.below(value, this.column(m.from)) }];
    if (had.kind === "scalar" && typeof value !== "object") return [this.rewrite(had, value, m.flow, this.column(this.lineStart(e.from) + /^[ -]*/.exec(this.text.slice(this.lineStart(e.from)))[0].length) + 2)];
    if (had.kind === "list" && Array.isArray(value)) return this.items(had, value);
    if (had.kind === "opaque") throw new Unreadable(had.from);
    const colon = this.text.indexOf(":", e.key.to) + 1;
    return [{ from: colon, to: had.to, text: m.flow ? " " + this.inline(value) : this.below(value, this.column(m.from)) }];
  }
  rewrite(had, value, flow, indent) {
    if (typeof value === "string" && (had.style === "|" || had.style === ">") && !/\n/.test(value)) return { from: had.from, to: had.to, text: this.scalar(value, flow, indent) };
    return { from: had.from, to: had.to, text: this.scalar(value, flow, indent, had) };
  }
  /** Changes the items of a list of texts: those at the start and the end that are the same stay. */
  items(l, want) {
    const have = l.items.map((i) => i.value?.kind === "scalar" ? i.value.value : null);
    let head = 0;
    while (head < have.length && head < want.length && have[head] === String(want[head])) head++;
    let tail = 0;
    while (tail < have.length - head && tail < want.length - head && have[have.length - 1 - tail] === String(want[want.length - 1 - tail])) tail++;
    const old = l.items.slice(head, have.length - tail);
    const now = want.slice(head, want.length - tail);
    const edits = [];
    const column = l.items.length ? this.column(l.items[0].from) : 0;
    old.slice(0, now.length).forEach((item, i) => {
      const v = now[i];
      if (typeof v === "object" || item.value && item.value.kind !== "scalar") throw new Unreadable(item.from);
      edits.push(item.value ? this.rewrite(item.value, v, l.flow, column + 2) : { from: item.to, to: item.to, text: " " + this.scalar(v, l.flow, column + 2) });
    });
    for (const item of old.slice(now.length)) edits.push(this.dropItem(l, item));
    const more = now.slice(old.length);
    if (more.length) edits.push(...this.addItems(l, head + old.length, more));
    return edits;
  }
  /** Adds items before the item of an index. */
  addItems(l, index, more) {
    const before = l.items[index - 1];
    if (l.flow) {
      const text = more.map((v) => this.inline(v)).join(", ");
      if (before) return [{ from: before.to, to: before.to, text: ", " + text }];
      return [{ from: l.from + 1, to: l.from + 1, text: text + (l.items.length ? ", " : "") }];
    }
    const column = this.column(l.items[0].from);
    const lines = more.map((v) => " ".repeat(column) + "- " + this.item(v, column)).join(this.eol);
    return [this.lines(before ? this.after(before.to, column) : this.lineStart(l.items[0].from), lines)];
  }
  dropItem(l, item) {
    if (l.flow) return this.dropInline(item.from, item.to);
    return this.dropLines(item.from, item.to);
  }
  /** Removes whole lines. Something else on the first one prevents it. */
  dropLines(from, to) {
    const start = this.lineStart(from);
    if (this.text.slice(start, from).trim() !== "") throw new Unreadable(from);
    return { from: start, to: this.nextLine(to), text: "" };
  }
  /** Removes a part in braces or brackets with one comma. */
  dropInline(from, to) {
    const next = /^\s*,[ \t]*/.exec(this.text.slice(to));
    if (next) return { from, to: to + next[0].length, text: "" };
    const before = /,?[ \t]*$/.exec(this.text.slice(0, from))[0];
    return { from: from - before.length, to, text: "" };
  }
  set(path, value) {
    if (!this.root) return [this.lines(this.text.length, this.block(wrapped(path, value), 0))];
    let n = this.root;
    for (let i = 0; i < path.length; i++) {
      const step = path[i];
      const rest = path.slice(i + 1);
      if (typeof step === "string") {
        if (n.kind !== "map") throw new Unreadable(n.from);
        const e = entryOf(n, step);
        if (!e) return [this.add(path.slice(0, i), n, step, wrapped(rest, value))];
        if (!rest.length || !e.value) return this.fill(n, e, wrapped(rest, value));
        n = e.value;
      } else {
        if (n.kind !== "list") throw new Unreadable(n.from);
        const item = n.items[step];
        if (!item) return this.addItems(n, n.items.length, [wrapped(rest, value)]);
        if (!rest.length) {
          if (item.value?.kind !== "scalar" || typeof value === "object") throw new Unreadable(item.from);
          return [this.rewrite(item.value, value, n.flow, this.column(item.from) + 2)];
        }
        if (!item.value) throw new Unreadable(item.from);
        n = item.value;
      }
    }
    throw new Unreadable(0);
  }
  remove(path) {
    const step = path.at(-1);
    const n = at(this.root, path.slice(0, -1));
    if (!n) return [];
    if (n.kind === "list" && typeof step === "number") {
      const item = n.items[step];
      if (!item) return [];
      return n.items.length === 1 ? this.remove(path.slice(0, -1)) : [this.dropItem(n, item)];
    }
    if (n.kind !== "map" || typeof step !== "string") throw new Unreadable(n.from);
    const e = entryOf(n, step);
    if (!e) return [];
    if (n.entries.length === 1 && path.length > 1) return this.remove(path.slice(0, -1));
    if (n.flow) return [this.dropInline(e.from, e.to)];
    const next = n.entries[n.entries.indexOf(e) + 1];
    const first = this.text.slice(this.lineStart(e.from), e.from).trim() !== "";
    if (!first) return [this.dropLines(e.from, e.to)];
    if (!next || this.text.slice(e.to, next.from).trim() !== "") throw new Unreadable(e.from);
    return [{ from: e.from, to: next.from, text: "" }];
  }
  rename(path, name) {
    const m = at(this.root, path.slice(0, -1));
    const e = m?.kind === "map" ? entryOf(m, path.at(-1)) : void 0;
    if (!e || m?.kind !== "map") return [];
    if (entryOf(m, name)) throw new Unreadable(e.from);
    return [{ from: e.key.from, to: e.key.to, text: this.scalar(name, m.flow, 0, e.key) }];
  }
  apply(edits) {
    let out = this.text;
    for (const e of [...edits].sort((a, b) => b.from - a.from || b.to - a.to)) out = out.slice(0, e.from) + e.text + out.slice(e.to);
    return out;
  }
};
function wrapped(path, value) {
  return path.reduceRight((v, step) => typeof step === "number" ? [v] : { [step]: v }, value);
}
function plain(n, text) {
  switch (n?.kind) {
    case "scalar":
      return n.value;
    case "map":
      return Object.fromEntries(n.entries.map((e) => [e.key.value, plain(e.value, text)]));
    case "list":
      return n.items.map((i) => plain(i.value, text));
    case "opaque":
      return { opaque: text.slice(n.from, n.to) };
  }
  return null;
}
function wanted(now, path, value) {
  if (!path.length) return value;
  const [step, ...rest] = path;
  const out = Array.isArray(now) ? [...now] : typeof now === "object" && now ? { ...now } : typeof step === "number" ? [] : {};
  const of = out;
  const made = wanted(of[step], rest, value);
  if (made !== void 0) of[step] = made;
  else if (Array.isArray(out)) out.splice(step, 1);
  else delete of[step];
  return made === void 0 && Object.keys(out).length === 0 ? void 0 : out;
}
function texts(v) {
  if (Array.isArray(v)) return v.map(texts);
  if (typeof v === "object" && v) return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, texts(x)]));
  return v === null ? null : String(v);
}
function same(a, b) {
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return a === b;
  const [x, y] = [Object.keys(a), Object.keys(b)];
  return Array.isArray(a) === Array.isArray(b) && x.length === y.length && x.every((k) => Object.hasOwn(b, k) && same(a[k], b[k]));
}
function checked(e, edits, want) {
  const out = e.apply(edits);
  if (!same(plain(read(out, e.parser), out), texts(want ?? null))) throw new Unreadable(edits[0]?.from ?? 0);
  return out;
}
function set(text, parser, path, value, order2 = () => []) {
  const e = new Editing(text, parser, order2);
  const now = plain(e.root, text);
  const want = wanted(now, path, value);
  if (same(now, texts(want ?? null))) return text;
  return checked(e, value === void 0 ? e.remove(path) : e.set(path, value), want);
}
function rename(text, parser, path, name) {
  const e = new Editing(text, parser, () => []);
  const edits = e.rename(path, name);
  if (!edits.length || name === path.at(-1)) return text;
  const now = plain(at(e.root, path.slice(0, -1)), text);
  const renamed = Object.fromEntries(Object.entries(now).map(([k, v]) => [k === path.at(-1) ? name : k, v]));
  return checked(e, edits, path.length === 1 ? renamed : wanted(plain(e.root, text), path.slice(0, -1), renamed));
}

// pkg/portal/web/src/jobdoc.ts
var orders = [
  [/^$/, ["protocolVersion", "name", "type", "version", "contributor", "description", "prerequisites", "parameters", "secrets", "jobRetryCount", "taskRoles", "deployments", "defaults", "extras"]],
  [/^taskRoles\/[^/]*$/, ["instances", "completion", "taskRetryCount", "prerequisites", "dockerImage", "data", "output", "script", "extraContainerOptions", "resourcePerInstance", "shell", "exec", "commands"]],
  [/^prerequisites\/\d+$/, ["name", "type", "uri", "auth", "plugin"]],
  [/resourcePerInstance$/, ["cpu", "memoryMB", "gpu", "ports"]]
];
function order(path) {
  const text = path.join("/");
  return orders.find(([of]) => of.test(text))?.[1] ?? [];
}
var JobDocument = class {
  /**
   * It throws Unreadable if the text isn't one mapping. now returns the latest text, which may be newer than the one that is drawn. change receives the
   * text after a change, and refuse the place of a part that only a person can change.
   */
  constructor(text, parser, now, change, refuse) {
    this.parser = parser;
    this.now = now;
    this.change = change;
    this.refuse = refuse;
    this.root = read(text, parser);
  }
  parser;
  now;
  change;
  refuse;
  root;
  node(path) {
    return at(this.root, path);
  }
  /** The text at a path; "" without one. */
  value(path) {
    const n = this.node(path);
    return n?.kind === "scalar" ? n.value : "";
  }
  /** Whether the form can change the part at a path: it isn't there, or is a text. */
  isText(path) {
    const n = this.node(path);
    return !n || n.kind === "scalar";
  }
  /** The texts of a list, or of one text in its place; null if it is something else. */
  texts(path) {
    const n = this.node(path);
    if (!n) return [];
    if (n.kind === "scalar") return n.value === "" ? [] : [n.value];
    if (n.kind !== "list" || n.items.some((i) => i.value && i.value.kind !== "scalar")) return null;
    return n.items.map((i) => i.value?.kind === "scalar" ? i.value.value : "");
  }
  keys(path) {
    const n = this.node(path);
    return n?.kind === "map" ? n.entries.map((e) => e.key.value) : [];
  }
  /** The number of items of a list. */
  count(path) {
    const n = this.node(path);
    return n?.kind === "list" ? n.items.length : 0;
  }
  /** The paths of all texts, and of all lists of texts, at and below a path. */
  leaves(path) {
    const n = this.node(path);
    if (n?.kind === "map") return n.entries.flatMap((e) => this.leaves([...path, e.key.value]));
    if (n?.kind === "list" && this.texts(path) === null) return n.items.flatMap((_, i) => this.leaves([...path, i]));
    return [path];
  }
  try(edit) {
    try {
      const text = this.now();
      const out = edit(text);
      if (out !== text) this.change(out);
    } catch (e) {
      if (!(e instanceof Unreadable)) throw e;
      this.refuse(e.at);
    }
  }
  set(path, value) {
    this.try((text) => set(text, this.parser, path, value, order));
  }
  /** Writes a text as a number if it is one. */
  setNumber(path, text) {
    this.set(path, /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) ? Number(text) : text);
  }
  /** The names of prerequisites of a type. */
  named(type) {
    const out = [];
    for (let i = 0; i < this.count(["prerequisites"]); i++) if (this.value(["prerequisites", i, "type"]) === type) out.push(this.value(["prerequisites", i, "name"]));
    return out.filter(Boolean);
  }
  /** The names of prerequisites that are runtime plugins. */
  plugins() {
    const out = [];
    for (let i = 0; i < this.count(["prerequisites"]); i++) if (this.value(["prerequisites", i, "plugin"])) out.push(this.value(["prerequisites", i, "name"]));
    return out.filter(Boolean);
  }
  /** Renames a role, also where other parts of the file name it. */
  renameRole(from, to) {
    this.try((text) => {
      let out = rename(text, this.parser, ["taskRoles", from], to);
      if (this.keys(["extras", "hivedScheduler", "taskRoles"]).includes(from)) out = rename(out, this.parser, ["extras", "hivedScheduler", "taskRoles", from], to);
      for (let i = 0; i < this.count(["deployments"]); i++) if (this.keys(["deployments", i, "taskRoles"]).includes(from)) out = rename(out, this.parser, ["deployments", i, "taskRoles", from], to);
      for (let i = 0; i < this.count([...plugins]); i++) this.texts([...plugins, i, "taskroles"])?.forEach((role, k) => role === from && (out = set(out, this.parser, [...plugins, i, "taskroles", k], to)));
      return out;
    });
  }
  /** Removes a role, and what other parts of the file say about it alone. */
  removeRole(name) {
    this.try((text) => {
      let out = set(text, this.parser, ["taskRoles", name], void 0);
      if (this.keys(["extras", "hivedScheduler", "taskRoles"]).includes(name)) out = set(out, this.parser, ["extras", "hivedScheduler", "taskRoles", name], void 0);
      for (let i = 0; i < this.count(["deployments"]); i++) if (this.keys(["deployments", i, "taskRoles"]).length > 1 && this.keys(["deployments", i, "taskRoles"]).includes(name)) out = set(out, this.parser, ["deployments", i, "taskRoles", name], void 0);
      return out;
    });
  }
  /** Renames a prerequisite, also where roles name it. */
  renamePrerequisite(i, to) {
    const [from, type] = [this.value(["prerequisites", i, "name"]), this.value(["prerequisites", i, "type"])];
    const key = type === "dockerimage" ? "dockerImage" : type;
    this.try((text) => {
      let out = set(text, this.parser, ["prerequisites", i, "name"], to, order);
      for (const role of this.keys(["taskRoles"])) {
        if (this.value(["taskRoles", role, key]) === from) out = set(out, this.parser, ["taskRoles", role, key], to);
        this.texts(["taskRoles", role, "prerequisites"])?.forEach((name, k) => name === from && (out = set(out, this.parser, ["taskRoles", role, "prerequisites", k], to)));
      }
      return out;
    });
  }
  rename(path, to) {
    this.try((text) => rename(text, this.parser, path, to));
  }
};
var plugins = ["extras", "com.microsoft.pai.runtimeplugin"];

// pkg/portal/web/src/text-form.ts
var en = {
  "form.title": "Form of the job",
  "form.unreadable": "The form can't show this document.",
  "form.onlyDocument": "Only the document can change this part.",
  "form.showLine": "Show line {n}",
  "form.inDocument": "In the document",
  "form.remove": "Remove {name}",
  "form.none": "none",
  "form.value": "Value",
  "form.job": "Job",
  "form.description": "Description",
  "form.priority.crit": "crit: the highest",
  "form.priority.prod": "prod",
  "form.priority.test": "test",
  "form.priority.oppo": "oppo: uses GPUs of others while they are free",
  "form.priority.none": "the default, test",
  "form.moreOfJob": "Retries, times, notifications and scheduling",
  "form.jobRetryCount": "Retries of the job",
  "form.jobRetryCountHint": "After failures of unknown cause",
  "form.maxDurationSec": "Longest time of a task, in seconds",
  "form.gracePeriodSec": "Time to stop a task, in seconds",
  "form.checkpointDir": "Folder of checkpoints",
  "form.after": "Jobs that must succeed before",
  "form.afterHint": "One on each line: NAME or USER/NAME",
  "form.deployment": "Deployment",
  "form.version": "Version",
  "form.contributor": "Contributor",
  "form.gang": "All tasks start together",
  "form.hostNetwork": "Tasks use the machine's network",
  "form.lazyPreemption": "Lose the guarantee rather than be stopped",
  "form.notify": "Send me a mail when the job",
  "form.notify.running": "runs",
  "form.notify.succeeded": "succeeds",
  "form.notify.failed": "fails",
  "form.notify.stopped": "is stopped",
  "form.notify.retried": "is retried",
  "form.prerequisites": "Images, scripts and data",
  "form.type": "Type",
  "form.type.dockerimage": "Image",
  "form.type.script": "Script",
  "form.type.data": "Data",
  "form.type.output": "Output",
  "form.uri": "Address",
  "form.moreOfPrerequisite": "Login and plugin",
  "form.registryUser": "User of the registry",
  "form.registryPassword": "Password of the registry",
  "form.registry": "Registry",
  "form.plugin": "Plugin",
  "form.roles": "Task roles",
  "form.addRole": "Add a task role",
  "form.gpu": "GPUs of a task",
  "form.cpu": "Processors of a task",
  "form.memoryMB": "Memory of a task in MB",
  "form.commands": "Commands",
  "form.commandsHint": "One on each line",
  "form.addCommand": "Add a command",
  "form.moreOfRole": "Completion, retries, ports, shared memory, type of GPU",
  "form.minFailed": "Failed tasks that end the job",
  "form.minFailedHint": "1 by default; -1 means none",
  "form.minSucceeded": "Succeeded tasks that end the job",
  "form.minSucceededHint": "All by default; -1 means only the end of all tasks",
  "form.taskRetryCount": "Retries of a task",
  "form.taskRetryCountHint": "If tasks don't start together",
  "form.shmMB": "Shared memory in MB",
  "form.diskMB": "Disk of the machine in MB",
  "form.skuType": "Type of GPU",
  "form.pinnedCell": "Pinned cell",
  "form.affinity": "Group of roles that are placed together",
  "form.infiniband": "Tasks get the machine's InfiniBand devices",
  "form.ports": "Ports: how many under which label",
  "form.addPort": "Add a port",
  "form.rolePlugins": "Plugins of this role",
  "form.exec": "Program and arguments, instead of commands",
  "form.execHint": "One on each line. It runs without a shell.",
  "form.shell": "Shell of the commands, with its options",
  "form.values": "Parameters and secrets",
  "form.addParameter": "Add a parameter",
  "form.addSecret": "Add a secret",
  "form.mountPath": "Folder in the tasks",
  "form.addStorage": "Add a storage",
  "form.defaultStorages": "An empty list mounts your default storages.",
  "form.plugins": "Runtime plugins",
  "form.addPlugin": "Add a plugin",
  "form.failurePolicy": "If it fails",
  "form.failurePolicy.fail": "the task fails",
  "form.failurePolicy.ignore": "the task continues",
  "form.onlyRoles": "Only for these roles; none means all",
  "form.deployments": "Deployments",
  "form.addDeployment": "Add a deployment",
  "form.preCommands": "Before the commands of {role}",
  "form.postCommands": "After the commands of {role}",
  "form.others": "Other extras"
};
var zh = {
  "form.title": "作业表单",
  "form.unreadable": "表单无法显示此文档。",
  "form.onlyDocument": "该部分只能在文档中修改。",
  "form.showLine": "显示第 {n} 行",
  "form.inDocument": "在文档中修改",
  "form.remove": "移除 {name}",
  "form.none": "无",
  "form.value": "值",
  "form.job": "作业",
  "form.description": "说明",
  "form.priority.crit": "crit：最高",
  "form.priority.prod": "prod",
  "form.priority.test": "test",
  "form.priority.oppo": "oppo：使用他人空闲的 GPU",
  "form.priority.none": "默认（test）",
  "form.moreOfJob": "重试、时间、通知与调度",
  "form.jobRetryCount": "作业重试次数",
  "form.jobRetryCountHint": "用于原因未知的失败",
  "form.maxDurationSec": "任务最长运行时间（秒）",
  "form.gracePeriodSec": "停止任务的宽限时间（秒）",
  "form.checkpointDir": "检查点目录",
  "form.after": "前置作业（须先成功）",
  "form.afterHint": "每行一个：NAME 或 USER/NAME",
  "form.deployment": "部署",
  "form.version": "版本",
  "form.contributor": "贡献者",
  "form.gang": "所有任务同时启动",
  "form.hostNetwork": "任务使用主机网络",
  "form.lazyPreemption": "宁可失去保障，也不被停止",
  "form.notify": "作业出现以下情况时给我发邮件",
  "form.notify.running": "开始运行",
  "form.notify.succeeded": "成功",
  "form.notify.failed": "失败",
  "form.notify.stopped": "被停止",
  "form.notify.retried": "重试",
  "form.prerequisites": "镜像、脚本与数据",
  "form.type": "类型",
  "form.type.dockerimage": "镜像",
  "form.type.script": "脚本",
  "form.type.data": "数据",
  "form.type.output": "输出",
  "form.uri": "地址",
  "form.moreOfPrerequisite": "登录与插件",
  "form.registryUser": "镜像仓库用户名",
  "form.registryPassword": "镜像仓库密码",
  "form.registry": "镜像仓库",
  "form.plugin": "插件",
  "form.roles": "任务角色",
  "form.addRole": "添加任务角色",
  "form.gpu": "每个任务的 GPU 数",
  "form.cpu": "每个任务的处理器数",
  "form.memoryMB": "每个任务的内存（MB）",
  "form.commands": "命令",
  "form.commandsHint": "每行一条",
  "form.addCommand": "添加命令",
  "form.moreOfRole": "完成条件、重试、端口、共享内存、GPU 类型",
  "form.minFailed": "使作业结束的失败任务数",
  "form.minFailedHint": "默认为 1；-1 表示失败的任务不会使作业结束",
  "form.minSucceeded": "使作业结束的成功任务数",
  "form.minSucceededHint": "默认为全部；-1 表示等到全部任务结束",
  "form.taskRetryCount": "任务重试次数",
  "form.taskRetryCountHint": "仅在任务不同时启动时有效",
  "form.shmMB": "共享内存（MB）",
  "form.diskMB": "机器磁盘（MB）",
  "form.skuType": "GPU 类型",
  "form.pinnedCell": "固定单元",
  "form.affinity": "亲和组（放置在一起的角色）",
  "form.infiniband": "任务使用机器的 InfiniBand 设备",
  "form.ports": "端口（每个标签的数量）",
  "form.addPort": "添加端口",
  "form.rolePlugins": "该角色的插件",
  "form.exec": "程序及参数（代替命令）",
  "form.execHint": "每行一个，不经过 shell 运行。",
  "form.shell": "运行命令的 shell 及其选项",
  "form.values": "参数与机密",
  "form.addParameter": "添加参数",
  "form.addSecret": "添加机密",
  "form.mountPath": "任务中的挂载目录",
  "form.addStorage": "添加存储",
  "form.defaultStorages": "空列表会挂载您的默认存储。",
  "form.plugins": "运行时插件",
  "form.addPlugin": "添加插件",
  "form.failurePolicy": "失败时",
  "form.failurePolicy.fail": "任务失败",
  "form.failurePolicy.ignore": "任务继续",
  "form.onlyRoles": "仅用于这些角色；不选表示全部",
  "form.deployments": "部署",
  "form.addDeployment": "添加部署",
  "form.preCommands": "{role} 的命令之前",
  "form.postCommands": "{role} 的命令之后",
  "form.others": "其他 extras"
};
add({ en, zh });

// pkg/portal/web/src/jobform.tsx
import { Fragment as Fragment2, jsx as jsx2, jsxs as jsxs2 } from "./library.js";
var known = ["gangAllocation", "hivedScheduler", plugins[1], "storages", "hostNetwork", "gracePeriodSec", "after", "jobStatusChangeNotification", "maxDurationSec", "checkpointDir"];
function JobForm({ text, now, change, show }) {
  const parser = useSignal2(null);
  const refused = useSignal2(null);
  useEffect(() => {
    load("editor").then(
      (m) => parser.value = m.parser,
      () => show(1)
      // the page has a plain field then
    );
  }, []);
  useEffect(() => {
    refused.value = null;
  }, [text]);
  const p = parser.value;
  if (!p) return /* @__PURE__ */ jsx2(Loading, {});
  const lineOf = (at2) => now().slice(0, at2).split("\n").length;
  const problem = (at2, says) => /* @__PURE__ */ jsxs2("p", { class: "note", role: "alert", children: [
    t(says),
    " ",
    /* @__PURE__ */ jsx2("button", { type: "button", class: "link", onClick: () => show(lineOf(at2)), children: t("form.showLine", { n: lineOf(at2) }) })
  ] });
  const open = (of) => new JobDocument(of, p, now, change, (at2) => refused.value = at2);
  let d;
  try {
    d = open(text);
  } catch (e) {
    if (!(e instanceof Unreadable)) throw e;
    return /* @__PURE__ */ jsx2("div", { class: "job-form", children: problem(e.at, "form.unreadable") });
  }
  return /* @__PURE__ */ jsxs2("form", { class: "job-form", "aria-label": t("form.title"), onSubmit: (e) => e.preventDefault(), children: [
    refused.value !== null ? problem(refused.value, "form.onlyDocument") : null,
    /* @__PURE__ */ jsx2(Job, { d }),
    /* @__PURE__ */ jsx2(Prerequisites, { d }),
    /* @__PURE__ */ jsxs2("section", { "aria-label": t("form.roles"), children: [
      /* @__PURE__ */ jsx2("h2", { children: t("form.roles") }),
      d.keys(["taskRoles"]).map((role, i) => /* @__PURE__ */ jsx2(Role, { d, role }, i)),
      /* @__PURE__ */ jsx2(Add, { label: t("form.addRole"), run: () => d.set(["taskRoles", fresh(d.keys(["taskRoles"]), "worker")], { instances: 1, dockerImage: d.named("dockerimage")[0] ?? "image", resourcePerInstance: { cpu: 1, memoryMB: 1024, gpu: 0 }, commands: ["echo hello"] }) })
    ] }),
    /* @__PURE__ */ jsxs2("section", { "aria-label": t("form.values"), children: [
      /* @__PURE__ */ jsx2("h2", { children: t("form.values") }),
      /* @__PURE__ */ jsxs2("div", { class: "grid", children: [
        /* @__PURE__ */ jsx2(Pairs, { d, path: ["parameters"], label: t("parameters"), add: t("form.addParameter"), first: "value" }),
        /* @__PURE__ */ jsx2(Pairs, { d, path: ["secrets"], label: t("secretsOfJob"), add: t("form.addSecret"), first: "", names: true })
      ] })
    ] }),
    /* @__PURE__ */ jsx2(Storages, { d }),
    /* @__PURE__ */ jsx2(Plugins, { d }),
    /* @__PURE__ */ jsx2(Deployments, { d }),
    /* @__PURE__ */ jsx2(Others, { d })
  ] });
}
function fresh(used, stem) {
  for (let i = 1; ; i++) if (!used.includes(i === 1 ? stem : stem + i)) return i === 1 ? stem : stem + i;
}
function Job({ d }) {
  const scheduler = ["extras", "hivedScheduler"];
  return /* @__PURE__ */ jsxs2("section", { "aria-label": t("form.job"), children: [
    /* @__PURE__ */ jsx2("h2", { children: t("form.job") }),
    /* @__PURE__ */ jsxs2("div", { class: "grid", children: [
      /* @__PURE__ */ jsx2(Line, { d, path: ["name"], label: t("name") }),
      /* @__PURE__ */ jsx2(Choice, { d, path: ["defaults", "virtualCluster"], label: t("vc"), options: ownVCs(), none: me.value?.defaultVirtualCluster || "default" }),
      /* @__PURE__ */ jsx2(Choice, { d, path: [...scheduler, "jobPriorityClass"], label: t("priority"), options: ["crit", "prod", "test", "oppo"].map((x) => [x, t(`form.priority.${x}`)]), none: t("form.priority.none") }),
      /* @__PURE__ */ jsx2(Line, { d, path: ["description"], label: t("form.description"), wide: true }),
      /* @__PURE__ */ jsxs2(More, { label: t("form.moreOfJob"), children: [
        /* @__PURE__ */ jsx2(Line, { d, path: ["jobRetryCount"], label: t("form.jobRetryCount"), hint: t("form.jobRetryCountHint"), number: true }),
        /* @__PURE__ */ jsx2(Line, { d, path: ["extras", "maxDurationSec"], label: t("form.maxDurationSec"), number: true }),
        /* @__PURE__ */ jsx2(Line, { d, path: ["extras", "gracePeriodSec"], label: t("form.gracePeriodSec"), number: true }),
        /* @__PURE__ */ jsx2(Line, { d, path: ["extras", "checkpointDir"], label: t("form.checkpointDir") }),
        /* @__PURE__ */ jsx2(Lines, { d, path: ["extras", "after"], label: t("form.after"), hint: t("form.afterHint") }),
        /* @__PURE__ */ jsx2(Choice, { d, path: ["defaults", "deployment"], label: t("form.deployment"), options: Array.from({ length: d.count(["deployments"]) }, (_, i) => d.value(["deployments", i, "name"])), none: t("form.none") }),
        /* @__PURE__ */ jsx2(Line, { d, path: ["version"], label: t("form.version") }),
        /* @__PURE__ */ jsx2(Line, { d, path: ["contributor"], label: t("form.contributor") }),
        /* @__PURE__ */ jsxs2("div", { class: "whole-row ticks", children: [
          /* @__PURE__ */ jsx2(Tick, { d, path: ["extras", "gangAllocation"], label: t("form.gang"), without: true }),
          /* @__PURE__ */ jsx2(Tick, { d, path: ["extras", "hostNetwork"], label: t("form.hostNetwork") }),
          /* @__PURE__ */ jsx2(Tick, { d, path: [...scheduler, "lazyPreemptionEnable"], label: t("form.lazyPreemption") }),
          /* @__PURE__ */ jsx2(Tick, { d, path: [...scheduler, "gangReleaseEnable"], label: "gangReleaseEnable" }),
          /* @__PURE__ */ jsx2(Tick, { d, path: [...scheduler, "ignoreK8sSuggestedNodes"], label: "ignoreK8sSuggestedNodes" })
        ] }),
        /* @__PURE__ */ jsxs2("fieldset", { class: "field whole-row ticks", children: [
          /* @__PURE__ */ jsx2("legend", { children: t("form.notify") }),
          ["running", "succeeded", "failed", "stopped", "retried"].map((x) => /* @__PURE__ */ jsx2(Tick, { d, path: ["extras", "jobStatusChangeNotification", x], label: t(`form.notify.${x}`) }, x))
        ] })
      ] })
    ] })
  ] });
}
var types = ["dockerimage", "script", "data", "output"];
function Prerequisites({ d }) {
  const at2 = ["prerequisites"];
  const add2 = (type) => {
    const used = Array.from({ length: d.count(at2) }, (_, i) => d.value([...at2, i, "name"]));
    const made = { name: fresh(used, type === "dockerimage" ? "image" : type), type, uri: type === "dockerimage" ? "python:3.12" : type === "data" ? ["http://"] : "http://" };
    if (d.count(at2)) d.set([...at2, d.count(at2)], made);
    else d.set(at2, [made]);
  };
  return /* @__PURE__ */ jsxs2("section", { "aria-label": t("form.prerequisites"), children: [
    /* @__PURE__ */ jsx2("h2", { children: t("form.prerequisites") }),
    Array.from({ length: d.count(at2) }, (_, i) => {
      const type = d.value([...at2, i, "type"]);
      const name = d.value([...at2, i, "name"]);
      return /* @__PURE__ */ jsxs2("div", { class: "card", children: [
        /* @__PURE__ */ jsxs2("div", { class: "grid", children: [
          /* @__PURE__ */ jsx2(Name, { label: t("name"), name: `prerequisites.${i}.name`, value: name, change: (to) => d.renamePrerequisite(i, to) }),
          /* @__PURE__ */ jsx2(Choice, { d, path: [...at2, i, "type"], label: t("form.type"), options: types.map((x) => [x, t(`form.type.${x}`)]) }),
          type === "data" ? /* @__PURE__ */ jsx2(Lines, { d, path: [...at2, i, "uri"], label: t("form.uri") }) : /* @__PURE__ */ jsx2(Line, { d, path: [...at2, i, "uri"], label: type === "dockerimage" ? t("image") : t("form.uri"), wide: true }),
          /* @__PURE__ */ jsxs2(More, { label: t("form.moreOfPrerequisite"), open: d.keys([...at2, i, "auth"]).length > 0 || d.value([...at2, i, "plugin"]) !== "", children: [
            type === "dockerimage" ? /* @__PURE__ */ jsxs2(Fragment2, { children: [
              /* @__PURE__ */ jsx2(Line, { d, path: [...at2, i, "auth", "username"], label: t("form.registryUser") }),
              /* @__PURE__ */ jsx2(Line, { d, path: [...at2, i, "auth", "password"], label: t("form.registryPassword"), hint: "<% $secrets.NAME %>" }),
              /* @__PURE__ */ jsx2(Line, { d, path: [...at2, i, "auth", "registryuri"], label: t("form.registry") })
            ] }) : null,
            /* @__PURE__ */ jsx2(Line, { d, path: [...at2, i, "plugin"], label: t("form.plugin"), hint: "com.microsoft.pai.runtimeplugin.NAME" }),
            /* @__PURE__ */ jsx2(Line, { d, path: [...at2, i, "version"], label: t("form.version") })
          ] })
        ] }),
        /* @__PURE__ */ jsx2(Remove, { label: name, run: () => d.set([...at2, i], void 0) })
      ] }, i);
    }),
    /* @__PURE__ */ jsx2("p", { class: "adds", children: types.map((x) => /* @__PURE__ */ jsx2(Add, { label: t(`form.type.${x}`), run: () => add2(x) }, x)) })
  ] });
}
function Role({ d, role }) {
  const at2 = ["taskRoles", role];
  const resources = [...at2, "resourcePerInstance"];
  const cells = ["extras", "hivedScheduler", "taskRoles", role];
  return /* @__PURE__ */ jsxs2("div", { class: "card", role: "group", "aria-label": role, children: [
    /* @__PURE__ */ jsxs2("div", { class: "grid", children: [
      /* @__PURE__ */ jsx2(Name, { label: t("name"), name: at2.join("."), value: role, change: (to) => d.renameRole(role, to) }),
      /* @__PURE__ */ jsx2(Line, { d, path: [...at2, "instances"], label: t("tasks"), number: true }),
      /* @__PURE__ */ jsx2(Choice, { d, path: [...at2, "dockerImage"], label: t("image"), options: d.named("dockerimage") }),
      /* @__PURE__ */ jsx2(Line, { d, path: [...resources, "gpu"], label: t("form.gpu"), number: true }),
      /* @__PURE__ */ jsx2(Line, { d, path: [...resources, "cpu"], label: t("form.cpu"), number: true }),
      /* @__PURE__ */ jsx2(Line, { d, path: [...resources, "memoryMB"], label: t("form.memoryMB"), number: true }),
      d.node([...at2, "exec"]) ? null : /* @__PURE__ */ jsx2(Lines, { d, path: [...at2, "commands"], label: t("form.commands"), hint: t("form.commandsHint") }),
      /* @__PURE__ */ jsxs2(More, { label: t("form.moreOfRole"), children: [
        /* @__PURE__ */ jsx2(Line, { d, path: [...at2, "completion", "minFailedInstances"], label: t("form.minFailed"), hint: t("form.minFailedHint"), number: true }),
        /* @__PURE__ */ jsx2(Line, { d, path: [...at2, "completion", "minSucceededInstances"], label: t("form.minSucceeded"), hint: t("form.minSucceededHint"), number: true }),
        /* @__PURE__ */ jsx2(Line, { d, path: [...at2, "taskRetryCount"], label: t("form.taskRetryCount"), hint: t("form.taskRetryCountHint"), number: true }),
        /* @__PURE__ */ jsx2(Line, { d, path: [...at2, "extraContainerOptions", "shmMB"], label: t("form.shmMB"), number: true }),
        /* @__PURE__ */ jsx2(Line, { d, path: [...at2, "extraContainerOptions", "diskMB"], label: t("form.diskMB"), number: true }),
        /* @__PURE__ */ jsx2(Line, { d, path: [...cells, "skuType"], label: t("form.skuType") }),
        /* @__PURE__ */ jsx2(Line, { d, path: [...cells, "pinnedCellId"], label: t("form.pinnedCell") }),
        /* @__PURE__ */ jsx2(Line, { d, path: [...cells, "affinityGroupName"], label: t("form.affinity") }),
        ["script", "data", "output"].map((x) => d.named(x).length || d.value([...at2, x]) ? /* @__PURE__ */ jsx2(Choice, { d, path: [...at2, x], label: t(`form.type.${x}`), options: d.named(x), none: t("form.none") }, x) : null),
        /* @__PURE__ */ jsx2(Tick, { d, path: [...at2, "extraContainerOptions", "infiniband"], label: t("form.infiniband") }),
        /* @__PURE__ */ jsx2(Pairs, { d, path: [...resources, "ports"], label: t("form.ports"), add: t("form.addPort"), first: 1, number: true }),
        /* @__PURE__ */ jsx2(Ticks, { d, path: [...at2, "prerequisites"], label: t("form.rolePlugins"), all: d.plugins() }),
        /* @__PURE__ */ jsx2(Lines, { d, path: [...at2, "exec"], label: t("form.exec"), hint: t("form.execHint") }),
        /* @__PURE__ */ jsx2(Lines, { d, path: [...at2, "shell"], label: t("form.shell") })
      ] })
    ] }),
    /* @__PURE__ */ jsx2(Remove, { label: role, disabled: d.keys(["taskRoles"]).length < 2, run: () => d.removeRole(role) })
  ] });
}
function Storages({ d }) {
  const at2 = ["extras", "storages"];
  const mine = me.value?.grants.storages ?? [];
  const used = Array.from({ length: d.count(at2) }, (_, i) => d.value([...at2, i, "name"]));
  const rest = mine.filter((x) => !used.includes(x));
  return /* @__PURE__ */ jsxs2("section", { "aria-label": t("storages"), children: [
    /* @__PURE__ */ jsx2("h2", { children: t("storages") }),
    used.map((name, i) => /* @__PURE__ */ jsxs2("div", { class: "card", children: [
      /* @__PURE__ */ jsxs2("div", { class: "grid", children: [
        /* @__PURE__ */ jsx2(Choice, { d, path: [...at2, i, "name"], label: t("name"), options: [name, ...rest] }),
        /* @__PURE__ */ jsx2(Line, { d, path: [...at2, i, "mountPath"], label: t("form.mountPath"), hint: "/mnt/" + name })
      ] }),
      /* @__PURE__ */ jsx2(Remove, { label: name, run: () => d.set([...at2, i], void 0) })
    ] }, i)),
    d.node(at2) && d.node(at2).kind === "list" && used.length === 0 ? /* @__PURE__ */ jsx2("p", { class: "faint small", children: t("form.defaultStorages") }) : null,
    /* @__PURE__ */ jsx2(Add, { label: t("form.addStorage"), run: () => d.count(at2) ? d.set([...at2, used.length], { name: rest[0] ?? "storage" }) : d.set(at2, [{ name: rest[0] ?? "storage" }]) })
  ] });
}
function Plugins({ d }) {
  const roles = d.keys(["taskRoles"]);
  const n = d.count([...plugins]);
  return /* @__PURE__ */ jsxs2("section", { "aria-label": t("form.plugins"), children: [
    /* @__PURE__ */ jsx2("h2", { children: t("form.plugins") }),
    Array.from({ length: n }, (_, i) => {
      const at2 = [...plugins, i];
      const name = d.value([...at2, "plugin"]);
      return /* @__PURE__ */ jsxs2("div", { class: "card", children: [
        /* @__PURE__ */ jsxs2("div", { class: "grid", children: [
          /* @__PURE__ */ jsx2(Choice, { d, path: [...at2, "plugin"], label: t("form.plugin"), options: ["ssh", "tensorboard", "cmd", "git", "teamwise_storage"] }),
          /* @__PURE__ */ jsx2(Choice, { d, path: [...at2, "failurePolicy"], label: t("form.failurePolicy"), options: ["fail", "ignore"].map((x) => [x, t(`form.failurePolicy.${x}`)]), none: t("form.failurePolicy.fail") }),
          /* @__PURE__ */ jsx2(Ticks, { d, path: [...at2, "taskroles"], label: t("form.onlyRoles"), all: roles }),
          /* @__PURE__ */ jsx2(Leaves, { d, at: [...at2, "parameters"] })
        ] }),
        /* @__PURE__ */ jsx2(Remove, { label: name, run: () => d.set(at2, void 0) })
      ] }, i);
    }),
    /* @__PURE__ */ jsx2(Add, { label: t("form.addPlugin"), run: () => n ? d.set([...plugins, n], { plugin: "ssh", parameters: { jobssh: true } }) : d.set([...plugins], [{ plugin: "ssh", parameters: { jobssh: true } }]) })
  ] });
}
function Leaves({ d, at: at2, but = [] }) {
  const n = d.node(at2);
  if (!n) return null;
  return /* @__PURE__ */ jsx2(Fragment2, { children: d.leaves(at2).filter((path) => !but.includes(String(path[at2.length]))).map((path) => {
    const label = path.slice(at2.length).join(".") || String(path.at(-1));
    return d.node(path)?.kind === "list" ? /* @__PURE__ */ jsx2(Lines, { d, path, label }, path.join("/")) : /* @__PURE__ */ jsx2(Line, { d, path, label }, path.join("/"));
  }) });
}
function Deployments({ d }) {
  const at2 = ["deployments"];
  const n = d.count(at2);
  const roles = d.keys(["taskRoles"]);
  return /* @__PURE__ */ jsxs2("section", { "aria-label": t("form.deployments"), children: [
    /* @__PURE__ */ jsx2("h2", { children: t("form.deployments") }),
    Array.from({ length: n }, (_, i) => {
      const name = d.value([...at2, i, "name"]);
      return /* @__PURE__ */ jsxs2("div", { class: "card", children: [
        /* @__PURE__ */ jsxs2("div", { class: "grid", children: [
          /* @__PURE__ */ jsx2(Line, { d, path: [...at2, i, "name"], label: t("name") }),
          [.../* @__PURE__ */ new Set([...d.keys([...at2, i, "taskRoles"]), ...roles])].flatMap((role) => [
            /* @__PURE__ */ jsx2(Lines, { d, path: [...at2, i, "taskRoles", role, "preCommands"], label: t("form.preCommands", { role }) }, role + "-"),
            /* @__PURE__ */ jsx2(Lines, { d, path: [...at2, i, "taskRoles", role, "postCommands"], label: t("form.postCommands", { role }) }, role + "+")
          ])
        ] }),
        /* @__PURE__ */ jsx2(Remove, { label: name, run: () => d.set([...at2, i], void 0) })
      ] }, i);
    }),
    roles.length ? /* @__PURE__ */ jsx2(
      Add,
      {
        label: t("form.addDeployment"),
        run: () => {
          const made = { name: fresh(Array.from({ length: n }, (_, i) => d.value([...at2, i, "name"])), "site"), taskRoles: { [roles[0]]: { preCommands: ["echo before"] } } };
          if (n) d.set([...at2, n], made);
          else d.set(at2, [made]);
        }
      }
    ) : null
  ] });
}
function Others({ d }) {
  const rest = d.keys(["extras"]).filter((k) => !known.includes(k));
  if (rest.length === 0) return null;
  return /* @__PURE__ */ jsxs2("section", { "aria-label": t("form.others"), children: [
    /* @__PURE__ */ jsx2("h2", { children: t("form.others") }),
    /* @__PURE__ */ jsx2("div", { class: "grid", children: /* @__PURE__ */ jsx2(Leaves, { d, at: ["extras"], but: known }) })
  ] });
}
export {
  JobForm
};
