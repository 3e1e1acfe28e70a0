// Changes of a document of YAML. Each changes the lines of one part, and keeps all others with their comments.
import { written } from "./parameters";
import { at, entryOf, read, Unreadable, type Entry, type Mapping, type Node, type Parser, type Path, type Scalar, type Sequence } from "./yaml";

export type Value = string | number | boolean | Value[] | { [key: string]: Value };

interface Edit {
  from: number;
  to: number;
  text: string;
}

/** The order in which keys are written, by the path of their mapping. A new key comes after those that are before it in the order. */
export type Order = (path: Path) => string[];

class Editing {
  readonly eol: string;
  readonly root: Mapping | null;

  constructor(
    readonly text: string,
    readonly parser: Parser,
    readonly order: Order,
  ) {
    this.eol = /\r\n/.test(text) ? "\r\n" : "\n";
    this.root = read(text, parser);
  }

  column(at: number): number {
    return at - this.lineStart(at);
  }

  lineStart(at: number): number {
    return this.text.lastIndexOf("\n", at - 1) + 1;
  }

  /** Returns the start of the line after a place, or the end of the text. */
  nextLine(at: number): number {
    const end = this.text.indexOf("\n", at);
    return end < 0 ? this.text.length : end + 1;
  }

  /** Returns where lines come that are added after a part. Comments after it that are further to the right than a column belong to it. */
  after(at: number, column: number): number {
    let out = this.nextLine(at);
    for (let line = out; line < this.text.length; line = this.nextLine(line)) {
      const [, spaces, rest] = /^([ \t]*)([^\r\n]*)/.exec(this.text.slice(line, this.nextLine(line)))!;
      if (rest === "") continue;
      if (rest![0] !== "#" || spaces!.length <= column) break;
      out = this.nextLine(line);
    }
    return out;
  }

  /** An edit that adds lines at the start of a line. */
  lines(at: number, lines: string): Edit {
    const open = at > 0 && this.text[at - 1] !== "\n";
    return { from: at, to: at, text: open ? this.eol + lines : lines + this.eol };
  }

  scalar(value: string | number | boolean, flow: boolean, indent: number, like?: Scalar): string {
    if (typeof value !== "string") return String(value);
    if (/\n/.test(value.trimEnd()) || (/\n$/.test(value) && !flow)) {
      const lines = value.replace(/\n$/, "").split("\n");
      // eslint-disable-next-line no-control-regex
      const plain = !flow && !/^[ \t]|\n$/.test(value.replace(/\n$/, "")) && !/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]/.test(value);
      if (plain) return (value.endsWith("\n") ? "|" : "|-") + this.eol + lines.map((l) => (l ? " ".repeat(indent) + l : "")).join(this.eol);
      return written({ value: "", quote: '"', flow }, value);
    }
    const quote = like?.style === "'" || like?.style === '"' ? like.style : "";
    return written({ value: like?.value ?? "x", quote, flow }, value);
  }

  /** A value in braces or brackets. */
  inline(value: Value, like?: Scalar): string {
    if (Array.isArray(value)) return `[${value.map((v) => this.inline(v, like)).join(", ")}]`;
    if (typeof value === "object") {
      const all = Object.entries(value).map(([k, v]) => `${this.scalar(k, true, 0, like)}: ${this.inline(v, like)}`);
      return `{${all.join(", ")}}`;
    }
    return this.scalar(value, true, 0, like);
  }

  /** What follows "key:" whose column is known. */
  below(value: Value, column: number): string {
    if (typeof value !== "object") return " " + this.scalar(value, false, column + 2);
    const empty = Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
    return empty ? " " + this.inline(value) : this.eol + this.block(value, column + 2);
  }

  /** The lines of a mapping or a list. */
  block(value: Value, column: number): string {
    const spaces = " ".repeat(column);
    if (Array.isArray(value)) return value.map((v) => spaces + "- " + this.item(v, column)).join(this.eol);
    return Object.entries(value)
      .map(([k, v]) => spaces + this.scalar(k, false, 0) + ":" + this.below(v, column))
      .join(this.eol);
  }

  /** What follows a dash whose column is known. */
  item(value: Value, column: number): string {
    if (typeof value !== "object") return this.scalar(value, false, column + 2);
    const lines = this.block(value, column + 2);
    return lines.slice(column + 2) || this.inline(value);
  }

  add(path: Path, m: Mapping, key: string, value: Value): Edit {
    const last = m.entries.at(-1);
    if (m.flow) {
      const like = last?.key.style === '"' ? last.key : undefined;
      const text = `${this.scalar(key, true, 0, like)}: ${this.inline(value, like)}`;
      if (!last) return { from: m.from + 1, to: m.to - 1, text };
      const comma = /^[ \t]*,/.exec(this.text.slice(last.to, m.to));
      return comma ? { from: last.to + comma[0].length, to: last.to + comma[0].length, text: " " + text } : { from: last.to, to: last.to, text: ", " + text };
    }
    const order = this.order(path);
    const place = order.indexOf(key);
    const before = place < 0 ? last! : (m.entries.filter((e) => order.indexOf(e.key.value) >= 0 && order.indexOf(e.key.value) < place).at(-1) ?? last!);
    const column = this.column(m.from);
    return this.lines(this.after(before.to, column), " ".repeat(column) + this.scalar(key, false, 0) + ":" + this.below(value, column));
  }

  /** Writes a value after a key that has none, or replaces its value. */
  fill(m: Mapping, e: Entry, value: Value): Edit[] {
    const had = e.value;
    if (!had) return [{ from: e.to, to: e.to, text: m.flow ? " " + this.inline(value) : this.below(value, this.column(m.from)) }];
    if (had.kind === "scalar" && typeof value !== "object") return [this.rewrite(had, value, m.flow, this.column(this.lineStart(e.from) + /^[ -]*/.exec(this.text.slice(this.lineStart(e.from)))![0].length) + 2)];
    if (had.kind === "list" && Array.isArray(value)) return this.items(had, value);
    if (had.kind === "opaque") throw new Unreadable(had.from);
    const colon = this.text.indexOf(":", e.key.to) + 1;
    return [{ from: colon, to: had.to, text: m.flow ? " " + this.inline(value) : this.below(value, this.column(m.from)) }];
  }

  rewrite(had: Scalar, value: string | number | boolean, flow: boolean, indent: number): Edit {
    if (typeof value === "string" && (had.style === "|" || had.style === ">") && !/\n/.test(value)) return { from: had.from, to: had.to, text: this.scalar(value, flow, indent) };
    return { from: had.from, to: had.to, text: this.scalar(value, flow, indent, had) };
  }

  /** Changes the items of a list of texts: those at the start and the end that are the same stay. */
  items(l: Sequence, want: Value[]): Edit[] {
    const have = l.items.map((i) => (i.value?.kind === "scalar" ? i.value.value : null));
    let head = 0;
    while (head < have.length && head < want.length && have[head] === String(want[head])) head++;
    let tail = 0;
    while (tail < have.length - head && tail < want.length - head && have[have.length - 1 - tail] === String(want[want.length - 1 - tail])) tail++;
    const old = l.items.slice(head, have.length - tail);
    const now = want.slice(head, want.length - tail);
    const edits: Edit[] = [];
    const column = l.items.length ? this.column(l.items[0]!.from) : 0;
    old.slice(0, now.length).forEach((item, i) => {
      const v = now[i]!;
      if (typeof v === "object" || (item.value && item.value.kind !== "scalar")) throw new Unreadable(item.from);
      edits.push(item.value ? this.rewrite(item.value as Scalar, v, l.flow, column + 2) : { from: item.to, to: item.to, text: " " + this.scalar(v, l.flow, column + 2) });
    });
    for (const item of old.slice(now.length)) edits.push(this.dropItem(l, item));
    const more = now.slice(old.length);
    if (more.length) edits.push(...this.addItems(l, head + old.length, more));
    return edits;
  }

  /** Adds items before the item of an index. */
  addItems(l: Sequence, index: number, more: Value[]): Edit[] {
    const before = l.items[index - 1];
    if (l.flow) {
      const text = more.map((v) => this.inline(v)).join(", ");
      if (before) return [{ from: before.to, to: before.to, text: ", " + text }];
      return [{ from: l.from + 1, to: l.from + 1, text: text + (l.items.length ? ", " : "") }];
    }
    const column = this.column(l.items[0]!.from);
    const lines = more.map((v) => " ".repeat(column) + "- " + this.item(v, column)).join(this.eol);
    return [this.lines(before ? this.after(before.to, column) : this.lineStart(l.items[0]!.from), lines)];
  }

  dropItem(l: Sequence, item: Sequence["items"][number]): Edit {
    if (l.flow) return this.dropInline(item.from, item.to);
    return this.dropLines(item.from, item.to);
  }

  /** Removes whole lines. Something else on the first one prevents it. */
  dropLines(from: number, to: number): Edit {
    const start = this.lineStart(from);
    if (this.text.slice(start, from).trim() !== "") throw new Unreadable(from);
    return { from: start, to: this.nextLine(to), text: "" };
  }

  /** Removes a part in braces or brackets with one comma. */
  dropInline(from: number, to: number): Edit {
    const next = /^\s*,[ \t]*/.exec(this.text.slice(to));
    if (next) return { from, to: to + next[0].length, text: "" };
    const before = /,?[ \t]*$/.exec(this.text.slice(0, from))![0];
    return { from: from - before.length, to, text: "" };
  }

  set(path: Path, value: Value): Edit[] {
    if (!this.root) return [this.lines(this.text.length, this.block(wrapped(path, value), 0))];
    let n: Node = this.root;
    for (let i = 0; i < path.length; i++) {
      const step = path[i]!;
      const rest = path.slice(i + 1);
      if (typeof step === "string") {
        if (n.kind !== "map") throw new Unreadable(n.from);
        const e = entryOf(n, step);
        if (!e) return [this.add(path.slice(0, i), n, step, wrapped(rest, value))];
        if (!rest.length || !e.value) return this.fill(n, e, wrapped(rest, value));
        n = e.value;
      } else {
        if (n.kind !== "list") throw new Unreadable(n.from);
        const item: Sequence["items"][number] | undefined = n.items[step];
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

  remove(path: Path): Edit[] {
    const step = path.at(-1)!;
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
    return [{ from: e.from, to: next.from, text: "" }]; // the next key follows the dash
  }

  rename(path: Path, name: string): Edit[] {
    const m = at(this.root, path.slice(0, -1));
    const e = m?.kind === "map" ? entryOf(m, path.at(-1) as string) : undefined;
    if (!e || m?.kind !== "map") return [];
    if (entryOf(m, name)) throw new Unreadable(e.from);
    return [{ from: e.key.from, to: e.key.to, text: this.scalar(name, m.flow, 0, e.key) }];
  }

  apply(edits: Edit[]): string {
    let out = this.text;
    for (const e of [...edits].sort((a, b) => b.from - a.from || b.to - a.to)) out = out.slice(0, e.from) + e.text + out.slice(e.to);
    return out;
  }
}

/** Returns a value below further keys; an index becomes a list of one item. */
function wrapped(path: Path, value: Value): Value {
  return path.reduceRight<Value>((v, step) => (typeof step === "number" ? [v] : { [step]: v }), value);
}

/** What a document says, without how it is written. */
export function plain(n: Node | null | undefined, text: string): unknown {
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

type Plain = { [key: string]: unknown } | unknown[];

/** What the document has to say after a change: undefined removes the part, and with it everything that is empty then. */
function wanted(now: unknown, path: Path, value: unknown): unknown {
  if (!path.length) return value;
  const [step, ...rest] = path;
  const out: Plain = Array.isArray(now) ? [...now] : typeof now === "object" && now ? { ...now } : typeof step === "number" ? [] : {};
  const of = out as Record<string | number, unknown>;
  const made = wanted(of[step!], rest, value);
  if (made !== undefined) of[step!] = made;
  else if (Array.isArray(out)) out.splice(step as number, 1);
  else delete of[step!];
  return made === undefined && Object.keys(out).length === 0 ? undefined : out;
}

function texts(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(texts);
  if (typeof v === "object" && v) return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, texts(x)]));
  return v === null ? null : String(v);
}

/** Compares what two documents say. The order of keys isn't part of it. */
function same(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return a === b;
  const [x, y] = [Object.keys(a), Object.keys(b)];
  return Array.isArray(a) === Array.isArray(b) && x.length === y.length && x.every((k) => Object.hasOwn(b, k) && same((a as Record<string, unknown>)[k], (b as Record<string, unknown>)[k]));
}

/** Applies edits, and refuses a result that says something else than wanted. */
function checked(e: Editing, edits: Edit[], want: unknown): string {
  const out = e.apply(edits);
  if (!same(plain(read(out, e.parser), out), texts(want ?? null))) throw new Unreadable(edits[0]?.from ?? 0);
  return out;
}

/** Returns the document with a value at a path; undefined removes it. It throws Unreadable if only a person can change this part. */
export function set(text: string, parser: Parser, path: Path, value: Value | undefined, order: Order = () => []): string {
  const e = new Editing(text, parser, order);
  const now = plain(e.root, text);
  const want = wanted(now, path, value);
  if (same(now, texts(want ?? null))) return text;
  return checked(e, value === undefined ? e.remove(path) : e.set(path, value), want);
}

/** Returns the document with another name of a key. */
export function rename(text: string, parser: Parser, path: Path, name: string): string {
  const e = new Editing(text, parser, () => []);
  const edits = e.rename(path, name);
  if (!edits.length || name === path.at(-1)) return text;
  const now = plain(at(e.root, path.slice(0, -1)), text) as Record<string, unknown>;
  const renamed = Object.fromEntries(Object.entries(now).map(([k, v]) => [k === path.at(-1) ? name : k, v]));
  return checked(e, edits, path.length === 1 ? renamed : wanted(plain(e.root, text), path.slice(0, -1), renamed));
}
