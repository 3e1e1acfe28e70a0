// Completion of a job file by the schema of the job protocol.
import { snippetCompletion, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { syntaxTree } from "@codemirror/language";
import type { Text } from "@codemirror/state";
import protocol from "../../job/protocol/job.schema.json";

interface Schema {
  description?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  oneOf?: Schema[];
}

/** A step from the root of a document: a key, or an item of a list. */
type Step = string | number;

interface Key {
  /** The column at which the key begins, after dashes. */
  column: number;
  name: string;
  /** The columns of the dashes before it. */
  dashes: number[];
}

const keyText = /^(?:"([^"]*)"|'([^']*)'|([^\s'"#&*!|>%@`{}[\],:-][^:#]*?|-[^\s:#][^:#]*?))\s*:(?:\s|$)/;

/** Reads the dashes and the key of a line. A line without a key has only dashes. */
export function keyOf(line: string): Key {
  let column = 0;
  const dashes: number[] = [];
  for (;;) {
    const c = line[column];
    if (c === " ") column++;
    else if (c === "-" && (line[column + 1] === " " || line[column + 1] === undefined)) dashes.push(column++);
    else break;
  }
  const key = keyText.exec(line.slice(column));
  return { column, name: key ? (key[1] ?? key[2] ?? key[3])! : "", dashes };
}

/**
 * Returns the steps to the mapping in which a key at a column of a line is, and the keys that the mapping has before that line, with
 * their values. It reads indentation, because a file that is being written is seldom valid.
 */
export function place(doc: Text, line: number, key: Key): { steps: Step[]; siblings: Map<string, string> } {
  const steps: Step[] = [];
  const siblings = new Map<string, string>();
  let here = key.column;
  let item = false; // what is at this column: an item of a list, or a key
  const dashesOf = (k: Key) => {
    for (const dash of [...k.dashes].reverse()) {
      if (dash >= here) continue;
      steps.unshift(0);
      here = dash;
      item = true;
    }
  };
  dashesOf(key);
  for (let n = line - 1; n >= 1 && (here > 0 || item || steps.length === 0); n--) {
    const text = doc.line(n).text;
    if (/^\s*(#|$)/.test(text)) continue;
    if (/^(---|\.\.\.)(\s|$)/.test(text)) break; // another document
    const k = keyOf(text);
    if (k.name && (k.column < here || (k.column === here && item && !k.dashes.length))) {
      steps.unshift(k.name);
      here = k.column;
      item = false;
    } else if (k.name && k.column === here && steps.length === 0) {
      siblings.set(k.name, valueOf(text, k));
    }
    dashesOf(k);
  }
  return { steps, siblings };
}

function valueOf(text: string, k: Key): string {
  return text.slice(text.indexOf(":", k.column) + 1).trim();
}

/** Returns the schemas that fit the steps. Alternatives that the type of a mapping excludes are left out. */
function follow(steps: Step[], type?: string): Schema[] {
  let at: Schema[] = [protocol as Schema];
  const apart = (s: Schema): Schema[] => (s.oneOf && !s.properties ? s.oneOf.flatMap(apart) : [s]);
  for (const step of steps) {
    at = at.flatMap(apart).flatMap((s) => {
      if (typeof step === "number") return s.items ? [s.items] : [];
      if (s.properties && Object.hasOwn(s.properties, step)) return [s.properties[step]!];
      return typeof s.additionalProperties === "object" ? [s.additionalProperties] : [];
    });
  }
  at = at.flatMap(apart);
  const fitting = at.filter((s) => s.properties?.type?.const === undefined || s.properties.type.const === type);
  return type && fitting.length ? fitting : at;
}

function isOf(s: Schema, type: string): boolean {
  return s.type === type || (Array.isArray(s.type) && s.type.includes(type));
}

function words(s: Schema): string[] {
  const all = s.enum ?? (s.const !== undefined ? [s.const] : isOf(s, "boolean") ? [true, false] : []);
  return [...new Set(all.map(String))];
}

/** Names in the file that a key of the protocol may have as its value, by the key. */
const references: Record<string, string> = { dockerImage: "dockerimage", script: "script", output: "output", data: "data" };

function named(doc: Text, type: string): string[] {
  const out: string[] = [];
  for (let n = 1; n <= doc.lines; n++) {
    const k = keyOf(doc.line(n).text);
    if (k.name !== "name" && k.name !== "type") continue;
    const { steps, siblings } = place(doc, n, k);
    if (steps[0] !== "prerequisites" || steps.length !== 2) continue;
    siblings.set(k.name, valueOf(doc.line(n).text, k));
    if (siblings.get("type") === type && siblings.has("name")) out.push(siblings.get("name")!);
  }
  return [...new Set(out)];
}

function keyCompletion(name: string, s: Schema): Completion {
  const detail = s.default !== undefined ? String(s.default) : undefined;
  const more = { label: name, detail, info: s.description, type: "property" };
  if (isOf(s, "array")) return snippetCompletion(`${name}:\n\t- \${}`, more);
  if (isOf(s, "object") || s.properties || typeof s.additionalProperties === "object") return snippetCompletion(`${name}:\n\t\${}`, more);
  return { ...more, apply: name + ": " };
}

/** Returns a source of completions. virtualClusters are those of the person. */
export function completions(virtualClusters: () => string[]) {
  return (context: CompletionContext): CompletionResult | null => {
    const { state, pos } = context;
    for (let node: ReturnType<typeof syntaxTree>["topNode"] | null = syntaxTree(state).resolveInner(pos, -1); node; node = node.parent) {
      if (/^(Comment|BlockLiteral|BlockLiteralContent|QuotedLiteral|FlowMapping|FlowSequence)$/.test(node.name)) return null;
    }
    const line = state.doc.lineAt(pos);
    const before = line.text.slice(0, pos - line.from);
    const k = keyOf(line.text);
    const value = /^(.*?:\s+)(\S*)$/.exec(before.slice(k.column));
    if (value && k.name) {
      const { steps } = place(state.doc, line.number, k);
      const at = follow([...steps, k.name]);
      let found = at.flatMap(words);
      if (Object.hasOwn(references, k.name) && steps[0] === "taskRoles") found = named(state.doc, references[k.name]!);
      if (k.name === "virtualCluster" && steps[0] === "defaults") found = virtualClusters();
      if (!found.length) return null;
      return { from: pos - value[2]!.length, options: [...new Set(found)].map((label) => ({ label, type: "enum" })), validFor: /^[\w.-]*$/ };
    }
    const word = /^[\w.-]*$/.exec(before.slice(k.column));
    if (!word || (!word[0] && !context.explicit)) return null;
    const { steps, siblings } = place(state.doc, line.number, k);
    const options = new Map<string, Completion>();
    const have = new Set(siblings.keys());
    // The keys of the same mapping that follow.
    for (let n = line.number + 1; n <= state.doc.lines; n++) {
      const other = keyOf(state.doc.line(n).text);
      if (/^\s*(#|$)/.test(state.doc.line(n).text)) continue;
      if ((other.dashes[0] ?? other.column) < k.column) break;
      if (other.column === k.column && other.name && !other.dashes.length) have.add(other.name);
    }
    for (const s of follow(steps, siblings.get("type"))) {
      for (const [name, of] of Object.entries(s.properties ?? {})) if (!have.has(name) && !options.has(name)) options.set(name, keyCompletion(name, of));
    }
    if (!options.size) return null;
    return { from: line.from + k.column, options: [...options.values()], validFor: /^[\w.-]*$/ };
  };
}
