// The storages of a job in the text of its file. A change adds or removes one entry, and changes nothing else.

interface List {
  /** The lines of the text, with their ends. */
  lines: string[];
  /** The line "extras:", and the line "storages:"; -1 without one. */
  extras: number;
  storages: number;
  /** The first line after the last entry, and the columns of the entries and of the keys of extras. */
  end: number;
  indent: number;
  keys: number;
  entries: { name: string; from: number; to: number }[];
}

const indentOf = (line: string) => /^ */.exec(line)![0].length;
const blank = (line: string) => /^\s*(#|$)/.test(line);

/** Reads the list; null if it is written in another way than as a block of entries with names. */
function read(text: string): List | null {
  const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const out: List = { lines, extras: -1, storages: -1, end: -1, indent: 4, keys: 2, entries: [] };
  const heads = lines.flatMap((line, i) => (/^["']?extras["']?[ \t]*:/.test(line) ? [i] : []));
  if (heads.length === 0) return /^\s*\{/.test(text) ? null : out;
  out.extras = heads[0]!;
  if (heads.length > 1 || !/^extras:[ \t]*(#.*)?\r?\n?$/.test(lines[out.extras]!)) return null;
  let i = out.extras + 1;
  for (let first = true; i < lines.length && (blank(lines[i]!) || indentOf(lines[i]!) > 0); i++) {
    const line = lines[i]!;
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
    const line = lines[i]!;
    if (blank(line)) continue;
    const at = indentOf(line);
    const item = /^ *- +(?:\{ *)?name:[ \t]*(["']?)([^"'#{},\s]+)\1[ \t]*(?:,[^}]*)?\}?[ \t]*(#.*)?\r?\n?$/.exec(line);
    if (at < out.keys || (at === out.keys && !/^ *-/.test(line))) break;
    if (/^ *-/.test(line) && (out.entries.length === 0 || at === out.indent)) {
      if (!item) return null;
      out.indent = at;
      out.entries.push({ name: item[2]!, from: i, to: i + 1 });
    } else if (out.entries.length && at > out.indent) out.entries.at(-1)!.to = i + 1;
    else return null;
    out.end = i + 1;
  }
  return out;
}

/** Returns the names of the storages that a job file lists; null if they can't be read. */
export function storagesIn(text: string): string[] | null {
  return read(text)?.entries.map((e) => e.name) ?? null;
}

/** Adds a storage to a job file, or removes it. */
export function withStorage(text: string, name: string, mounted: boolean): string {
  const list = read(text);
  if (!list) return text;
  const lines = [...list.lines];
  if (!mounted) {
    const e = list.entries.find((x) => x.name === name);
    if (!e) return text;
    lines.splice(e.from, e.to - e.from);
    // An empty list would mount the default storages.
    if (list.entries.length === 1) lines.splice(list.storages, 1);
    if (list.entries.length === 1 && !lines.slice(list.extras + 1).some((line, i, all) => !blank(line) && indentOf(line) > 0 && all.slice(0, i).every((x) => blank(x) || indentOf(x) > 0))) lines.splice(list.extras, 1);
    return lines.join("");
  }
  const end = /\r\n/.test(text) ? "\r\n" : "\n";
  if (lines.length && !lines.at(-1)!.endsWith("\n")) lines.push(lines.pop()! + end);
  const head = " ".repeat(list.keys) + "storages:" + end;
  if (list.extras < 0) lines.push("extras:" + end, head, `    - name: ${name}${end}`);
  else if (list.storages < 0) lines.splice(list.extras + 1, 0, head, `${" ".repeat(list.keys + 2)}- name: ${name}${end}`);
  else {
    if (list.entries.length === 0) lines[list.storages] = head;
    lines.splice(list.end, 0, `${" ".repeat(list.indent)}- name: ${name}${end}`);
  }
  return lines.join("");
}
