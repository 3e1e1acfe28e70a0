// Packs a folder that is sent with a job, as one file that a page loads when a person chooses a folder.

export interface Entry {
  /** The path in the folder. */
  path: string;
  file: Blob;
}

export interface Packed {
  /** Of the archive, in hex. */
  sha256: string;
  archive: Blob;
}

const block = 512;
const octal = (n: number, width: number) => n.toString(8).padStart(width - 1, "0") + "\0";

/** Returns the header of an entry, in the form that tar of POSIX defines. */
function header(name: Uint8Array, size: number, mode: number, type: string): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(block);
  const put = (text: string, at: number) => out.set(new TextEncoder().encode(text), at);
  out.set(name.slice(0, 100), 0);
  put(octal(mode, 8), 100);
  put(octal(0, 8), 108); // no user
  put(octal(0, 8), 116);
  put(octal(size, 12), 124);
  put(octal(0, 12), 136); // no time, so that the same files make the same archive
  put("        ", 148);
  put(type, 156);
  put("ustar\x0000", 257);
  put(octal(out.reduce((a, b) => a + b, 0), 7) + " ", 148);
  return out;
}

const fill = (size: number) => new Uint8Array((block - (size % block)) % block);

/** Returns the record of a path that is too long for a header, or isn't ASCII. */
function longPath(path: string): BlobPart[] {
  const value = new TextEncoder().encode(`path=${path}\n`);
  let n = value.length + 2;
  while (String(n).length + 1 + value.length !== n) n = String(n).length + 1 + value.length;
  const record = new Uint8Array([...new TextEncoder().encode(`${n} `), ...value]);
  return [header(new TextEncoder().encode("PaxHeaders/path"), record.length, 0o644, "x"), record, fill(record.length)];
}

/** Whether a shell, or the interpreter on its first line, runs a file. Browsers don't say which files may be run. */
async function runs(e: Entry): Promise<boolean> {
  return /\.(sh|bash)$/.test(e.path) || (await e.file.slice(0, 2).text()) === "#!";
}

/** Packs files into a compressed tar archive. */
export async function pack(entries: Entry[]): Promise<Packed> {
  const parts: BlobPart[] = [];
  for (const e of [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const name = new TextEncoder().encode(e.path);
    if (name.length > 100 || name.length !== e.path.length) parts.push(...longPath(e.path));
    parts.push(header(name, e.file.size, (await runs(e)) ? 0o755 : 0o644, "0"), e.file, fill(e.file.size));
  }
  parts.push(new Uint8Array(2 * block));
  const archive = await new Response(new Blob(parts).stream().pipeThrough(new CompressionStream("gzip"))).blob();
  const sum = await crypto.subtle.digest("SHA-256", await archive.arrayBuffer());
  return { sha256: Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, "0")).join(""), archive };
}
