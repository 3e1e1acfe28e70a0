// The values of parameters and secrets in the text of a job file. A change replaces the characters of one value, and nothing else.

export interface Parameter {
  name: string;
  value: string;
  /** Where the value is in the text, with its quotes. It is empty if the value is. */
  from: number;
  to: number;
  quote: "" | '"' | "'";
  flow: boolean;
}

interface Scalar {
  value: string;
  end: number;
  quote: Parameter["quote"];
}

/** Reads a text in quotes that begins at a position, or null if it doesn't end on its line. */
function quotedText(text: string, at: number): Scalar | null {
  const found = (text[at] === '"' ? /"(?:[^"\\\r\n]|\\[^\r\n])*"/y : /'(?:[^'\r\n]|'')*'/y);
  found.lastIndex = at;
  const raw = found.exec(text)?.[0];
  if (raw === undefined) return null;
  if (raw[0] === "'") return { value: raw.slice(1, -1).replaceAll("''", "'"), end: at + raw.length, quote: "'" };
  try {
    return { value: JSON.parse(raw.replaceAll("\t", "\\t")) as string, end: at + raw.length, quote: '"' };
  } catch {
    return null; // it has an escape that only YAML knows
  }
}

/** Reads a text without quotes, up to a comment or the end of the line; in braces, up to a comma or a brace. */
function plainText(text: string, at: number, flow: boolean): Scalar | null {
  const found = flow ? /[^\r\n,[\]{}#]*/y : /[^\r\n]*/y;
  found.lastIndex = at;
  const value = found.exec(text)![0].replace(/(^|\s)#.*$/, "").trimEnd();
  // These begin something else than a text, or are no YAML.
  if (/^[&*!|>{[%@`"'#,\]}]|^[-?:](\s|$)|:(\s|$)/.test(value)) return null;
  return { value, end: at + value.length, quote: "" };
}

function scalar(text: string, at: number, flow: boolean): Scalar | null {
  return text[at] === '"' || text[at] === "'" ? quotedText(text, at) : plainText(text, at, flow);
}

/** Reads "name:" at a position. */
function key(text: string, at: number): Scalar | null {
  const quoted = text[at] === '"' || text[at] === "'" ? quotedText(text, at) : null;
  const found = quoted ? /()[ \t]*:(?=[ \t\r\n]|$)/y : /([\p{L}\p{N}_$][^\r\n:,[\]{}#"']*?)[ \t]*:(?=[ \t\r\n]|$)/uy;
  found.lastIndex = quoted?.end ?? at;
  const m = found.exec(text);
  return m ? { value: quoted?.value ?? m[1]!, end: found.lastIndex, quote: "" } : null;
}

/** Reads "name: value" at a position, or null if it isn't one. Its end is -1 if the value isn't a text. */
function entry(text: string, at: number, flow: boolean): Parameter | null {
  const name = key(text, at);
  if (!name) return null;
  let from = name.end;
  while (text[from] === " " || text[from] === "\t") from++;
  const value = scalar(text, from, flow);
  if (value?.value === "" && !value.quote) return { name: name.value, value: "", from: name.end, to: name.end, quote: "", flow };
  if (value) return { name: name.value, value: value.value, from, to: value.end, quote: value.quote, flow };
  return /[|>{[&*!"']/.test(text[from] ?? "") ? { name: name.value, value: "", from, to: -1, quote: "", flow } : null;
}

/** Whether only a comment follows on the line. */
function ends(text: string, at: number): boolean {
  const rest = /[ \t]*(?:[ \t]#[^\r\n]*)?\r?(?=\n|$)/y;
  rest.lastIndex = at;
  return rest.test(text);
}

/** The parts of a job file whose values a form changes. */
export type Part = "parameters" | "secrets";

const heads = { parameters: /^(?:parameters|"parameters"|'parameters')[ \t]*:(?=[ \t\r\n]|$)/gm, secrets: /^(?:secrets|"secrets"|'secrets')[ \t]*:(?=[ \t\r\n]|$)/gm };

/** Returns all entries of a part, or null if it can't be read. The end of a value that isn't a text on one line is -1. */
function entries(text: string, part: Part): Parameter[] | null {
  const [head, more] = [...text.matchAll(heads[part])];
  if (!head) return [];
  if (more || /\n---(?:\s|$)/.test(text.replace(/^(?:[ \t]*(?:#.*)?\r?\n)*---/, ""))) return null;
  const at = head.index + head[0].length;
  const brace = /[ \t]+\{/y;
  brace.lastIndex = at;
  const out = brace.test(text) ? braces(text, brace.lastIndex) : ends(text, at) ? lines(text, at) : null;
  return out && new Set(out.map((p) => p.name)).size === out.length ? out : null;
}

/**
 * Returns the parameters of a job file, or its secrets, whose values are texts on one line. Others, such as lists, are left out. It returns
 * none if the part of the file that has them isn't YAML.
 */
export function parameters(text: string, part: Part = "parameters"): Parameter[] {
  return (entries(text, part) ?? []).filter((p) => p.to >= 0);
}

/** What the server and this page write in the place of a secret. */
export const mask = "******";

/** Returns a job file with masked secrets and passwords, or null if some may be in it that can't be found. */
export function masked(text: string): string | null {
  const secrets = entries(text, "secrets");
  if (!secrets || secrets.some((p) => p.to < 0)) return null;
  if (secrets.length === 0 && /(?:^|[\s{,?])["']?secrets["']?[ \t]*:(?![ \t]*\{\}[ \t]*$)/m.test(text)) return null; // written in another way
  for (const [, value] of text.matchAll(/password["']?[ \t]*:[ \t]*([^\r\n]*)/g)) if (value && !/^["']?(<%[ \t]*\$secrets\.|\*{6})/.test(value)) return null;
  return secrets.reduce((out, p) => (p.value ? changed(out, p.name, mask, undefined, "secrets") : out), text);
}

/** Returns a job file with secrets that were entered in fields. */
export function revealed(text: string, secrets: Record<string, string>): string {
  return Object.entries(secrets).reduce((out, [name, value]) => (value ? changed(out, name, value, undefined, "secrets") : out), text);
}

/** Reads {a: 1, b: two} from behind the first brace. */
function braces(text: string, at: number): Parameter[] | null {
  const out: Parameter[] = [];
  const skip = () => {
    while (text[at] === " " || text[at] === "\t") at++;
  };
  for (;;) {
    skip();
    if (text[at] === "}") return ends(text, at + 1) ? out : null;
    const p = entry(text, at, true);
    if (!p || p.to < 0) return null;
    out.push(p);
    at = p.to;
    skip();
    if (text[at] === ",") at++;
    else if (text[at] !== "}") return null;
  }
}

/** Reads the lines below "parameters:". */
function lines(text: string, at: number): Parameter[] | null {
  const out: Parameter[] = [];
  let indent = -1;
  for (at = text.indexOf("\n", at) + 1; at > 0 && at < text.length; at = text.indexOf("\n", at) + 1) {
    const [, spaces, rest] = /^( *)([^\r\n]*)/.exec(text.slice(at, (text.indexOf("\n", at) + 1 || text.length + 1) - 1))!;
    if (/^\s*(#|$)/.test(rest!)) continue;
    if (spaces === "") return /^[-\t]/.test(rest!) ? null : out;
    if (indent < 0) indent = spaces!.length;
    const last = out.at(-1);
    if (spaces!.length > indent && last) {
      last.to = -1; // the value continues on this line
      continue;
    }
    const p = spaces!.length === indent ? entry(text, at + indent, false) : null;
    if (!p || (p.to >= 0 && !ends(text, p.to))) return null;
    out.push(p);
  }
  return out;
}

/** The kind that YAML gives a text without quotes. */
function kind(text: string): "text" | "number" | "word" {
  if (/^[-+.]?\.?\d|^[-+]?\.(inf|nan)$/i.test(text)) return "number";
  return /^(true|false|yes|no|on|off|y|n|null|~|)$/i.test(text) ? "word" : "text";
}

/** Writes a value as the file writes the one that it replaces, in quotes where YAML would read it as something else. */
export function written(p: Pick<Parameter, "value" | "quote" | "flow">, value: string): string {
  // eslint-disable-next-line no-control-regex
  const odd = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]/.test(value);
  const single = () => "'" + value.replaceAll("'", "''") + "'";
  // eslint-disable-next-line no-control-regex
  if (odd || p.quote === '"') return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  if (p.quote === "'" || value !== value.trim() || (kind(value) !== "text" && kind(value) !== kind(p.value) && (p.value !== "" || value === ""))) return single();
  const back = plainText(value, 0, p.flow);
  return back && back.value === value ? value : single();
}

/**
 * Returns the job file with another value of a parameter. like is the parameter as it was before a person began to type: what is written
 * keeps its quotes.
 */
export function changed(text: string, name: string, value: string, like?: Parameter, part: Part = "parameters"): string {
  const p = parameters(text, part).find((x) => x.name === name);
  if (!p || p.value === value) return text;
  const space = text[p.from - 1] === ":" ? " " : "";
  return text.slice(0, p.from) + space + written({ ...(like ?? p), flow: p.flow }, value) + text.slice(p.to);
}

/** Returns the job file with the values that an address has in its keys set.NAME. */
export function filled(text: string, query: URLSearchParams): string {
  for (const [key, value] of query) if (key.startsWith("set.")) text = changed(text, key.slice(4), value);
  return text;
}
