// A document of YAML with the places of its parts in the text, so that a form can change one part and leave all others as they are.
import type { SyntaxNode, Tree } from "@lezer/common";

/** A part of the text. Its end excludes the end of its last line. */
interface Part {
  from: number;
  to: number;
}

export interface Scalar extends Part {
  kind: "scalar";
  value: string;
  /** How it is written: "" is a text without quotes. */
  style: "" | "'" | '"' | "|" | ">";
}

export interface Entry extends Part {
  key: Scalar;
  /** null: there is nothing after the colon. */
  value: Node | null;
}

export interface Mapping extends Part {
  kind: "map";
  flow: boolean;
  entries: Entry[];
}

export interface Sequence extends Part {
  kind: "list";
  flow: boolean;
  /** from is the place of the dash in a block, and of the value in brackets. */
  items: (Part & { value: Node | null })[];
}

/** An alias, something with an anchor or a tag, or a block with an unusual header: only the document can change it. */
export interface Opaque extends Part {
  kind: "opaque";
}

export type Node = Scalar | Mapping | Sequence | Opaque;

export interface Parser {
  parse(text: string): Tree;
}

/** A text that can't be shown as a form. at is the place in the text. */
export class Unreadable extends Error {
  constructor(readonly at: number) {
    super("unreadable");
  }
}

/** Reads a document whose root is a mapping. Null is an empty one. It throws Unreadable. */
export function read(text: string, parser: Parser): Mapping | null {
  const stream = parser.parse(text).topNode;
  const broken = firstError(stream);
  if (broken >= 0) throw new Unreadable(broken);
  const documents = stream.getChildren("Document").filter((d) => d.firstChild);
  if (documents.length > 1) throw new Unreadable(documents[1]!.from);
  const root = documents[0] && contents(documents[0])[0];
  if (!root) return null;
  const node = nodeOf(root, text);
  if (node.kind !== "map") throw new Unreadable(root.from);
  return node;
}

function firstError(top: SyntaxNode): number {
  const c = top.cursor();
  do if (c.type.isError) return c.from;
  while (c.next());
  return -1;
}

const values = /^(Literal|QuotedLiteral|BlockLiteral|BlockMapping|BlockSequence|FlowMapping|FlowSequence|Anchored|Tagged|Alias)$/;

function contents(n: SyntaxNode): SyntaxNode[] {
  const out: SyntaxNode[] = [];
  for (let c = n.firstChild; c; c = c.nextSibling) if (values.test(c.name)) out.push(c);
  return out;
}

function nodeOf(n: SyntaxNode, text: string): Node {
  const raw = text.slice(n.from, n.to);
  const part = { from: n.from, to: n.to };
  switch (n.name) {
    case "Literal":
      return { kind: "scalar", ...part, value: folded(raw), style: "" };
    case "QuotedLiteral":
      return { kind: "scalar", ...part, value: unquoted(raw), style: raw[0] as "'" | '"' };
    case "BlockLiteral": {
      const header = n.getChild("BlockLiteralHeader");
      const marks = header ? text.slice(header.from, header.to) : "|";
      if (/[\d+]/.test(marks)) return { kind: "opaque", ...part };
      return { kind: "scalar", ...part, value: block(text.slice(n.from, n.to), marks), style: marks[0] as "|" | ">" };
    }
    case "BlockMapping":
    case "FlowMapping":
      return mapping(n, text);
    case "BlockSequence":
    case "FlowSequence": {
      const flow = n.name === "FlowSequence";
      const items: Sequence["items"] = [];
      let dash = -1;
      for (let c = n.firstChild; c; c = c.nextSibling) {
        if (c.name === "-") dash = c.from;
        else if (c.name === "Item") {
          const inside = contents(c)[0];
          if (!inside && c.firstChild) throw new Unreadable(c.from); // a pair in brackets
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

function mapping(n: SyntaxNode, text: string): Mapping {
  const out: Mapping = { kind: "map", from: n.from, to: n.to, flow: n.name === "FlowMapping", entries: [] };
  const names = new Set<string>();
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
  if (first && !out.flow) out.from = first.from; // not the space before it
  return out;
}

/** Joins the lines of a text that continues on the next line: an empty line is a line end, and any other one a space. */
function folded(raw: string): string {
  return raw.includes("\n") ? raw.replace(/[ \t]*\r?\n((?:[ \t]*\r?\n)*)[ \t]*/g, (_, empty: string) => "\n".repeat((empty.match(/\n/g) ?? []).length) || " ") : raw;
}

const escapes: Record<string, string> = { 0: "\0", a: "\x07", b: "\b", t: "\t", "\t": "\t", n: "\n", v: "\v", f: "\f", r: "\r", e: "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", N: "\u0085", _: "\u00a0", L: "\u2028", P: "\u2029" };

function unquoted(raw: string): string {
  const inside = raw.slice(1, -1);
  if (raw[0] === "'") return folded(inside).replaceAll("''", "'");
  return folded(inside.replace(/\\\r?\n[ \t]*/g, "")).replace(/\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))/gs, (all, x?: string, u?: string, long?: string, one?: string) => {
    const code = x ?? u ?? long;
    if (code === undefined) return escapes[one!] ?? all;
    const n = parseInt(code, 16);
    return n > 0x10ffff ? all : String.fromCodePoint(n);
  });
}

/** Returns the text of a block: | keeps lines, and > folds them. With -, it has no line end at its end. */
function block(raw: string, marks: string): string {
  const lines = raw.split(/\r?\n/).slice(1);
  while (lines.length && lines.at(-1)!.trim() === "") lines.pop();
  const indent = /^ */.exec(lines.find((l) => l.trim() !== "") ?? "")![0].length;
  let out = lines.map((l) => l.slice(Math.min(indent, /^ */.exec(l)![0].length))).join("\n");
  if (marks[0] === ">") out = out.replace(/([^\n ][^\n]*)\n(\n*)(?=[^\n \t])/g, (_, line: string, more: string) => line + (more || " "));
  return out && !marks.includes("-") ? out + "\n" : out;
}

/** A step from the root: a key, or the index of an item. */
export type Step = string | number;
export type Path = Step[];

/** Returns the part at a path; undefined if there is none, and null for a key without a value. */
export function at(root: Node | null, path: Path): Node | null | undefined {
  let n: Node | null | undefined = root;
  for (const step of path) {
    if (!n) return undefined;
    if (typeof step === "number") n = n.kind === "list" ? n.items[step]?.value : undefined;
    else n = n.kind === "map" ? entryOf(n, step)?.value : undefined;
  }
  return n;
}

export function entryOf(m: Mapping, key: string): Entry | undefined {
  return m.entries.find((e) => e.key.value === key);
}
