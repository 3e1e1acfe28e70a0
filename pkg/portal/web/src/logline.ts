// Lines of logs as elements: their bytes, colours, and the words that are searched.

export const longest = 8 << 10; // bytes of a line that are shown: a program may write a megabyte without a line break

const decoder = new TextDecoder();

/** Returns the bytes of a text of the API. */
export function bytesOf(base64: string | null | undefined): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64 ?? ""), (c) => c.charCodeAt(0));
}

/** Returns the text of a line. Of a line that a progress bar wrote again and again, it is the last part. */
export function textOf(all: Uint8Array, most = longest): { text: string; bytes: number } {
  let end = all.length;
  while (end > 0 && (all[end - 1] === 13 || all[end - 1] === 10)) end--;
  const from = end > 0 ? all.lastIndexOf(13, end - 1) + 1 : 0;
  const shown = all.subarray(from, Math.min(end, from + most));
  return { text: decoder.decode(shown) + (from + most < end ? "…" : ""), bytes: shown.length };
}

// eslint-disable-next-line no-control-regex
const escapes = /\u001b(?:\[([0-9;?]*)([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;

/** Splits a text at its escape sequences. Colours become classes; all other sequences are left out. */
export function coloured(text: string): { text: string; style: string }[] {
  if (!text.includes("\u001b")) return [{ text, style: "" }];
  const out: { text: string; style: string }[] = [];
  let bold = false;
  let colour = "";
  let from = 0;
  const add = (part: string) => {
    const style = bold && colour ? "bold " + colour : bold ? "bold" : colour;
    const last = out.at(-1);
    if (last?.style === style) last.text += part;
    else out.push({ text: part, style });
  };
  for (const m of text.matchAll(escapes)) {
    if (m.index > from) add(text.slice(from, m.index));
    from = m.index + m[0].length;
    if (m[2] !== "m") continue;
    for (const code of (m[1] || "0").split(";").map(Number)) {
      if (code === 0 || code === 39) colour = "";
      if (code === 0 || code === 22) bold = false;
      else if (code === 1) bold = true;
      else if (code >= 30 && code <= 37) colour = "ansi" + (code - 30);
      else if (code >= 90 && code <= 97) colour = "ansi" + (code - 90);
    }
  }
  if (from < text.length) add(text.slice(from));
  return out;
}

/** Returns a text with a word marked in it, whatever its case. */
function marked(text: string, word: string): Node[] {
  if (!word) return [document.createTextNode(text)];
  const out: Node[] = [];
  const lower = text.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, from)) {
    if (at > from) out.push(document.createTextNode(text.slice(from, at)));
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + word.length);
    out.push(mark);
    from = at + word.length;
  }
  if (from < text.length || out.length === 0) out.push(document.createTextNode(text.slice(from)));
  return out;
}

/** Fills an element with a line, in its colours. The word is in lower case. */
export function fill(to: HTMLElement, text: string, word: string): void {
  const parts: Node[] = [];
  for (const p of coloured(text)) {
    const nodes = marked(p.text, word);
    if (!p.style) parts.push(...nodes);
    else {
      const span = document.createElement("span");
      span.className = p.style;
      span.append(...nodes);
      parts.push(span);
    }
  }
  to.replaceChildren(...parts);
}

/** Returns the time of a line as it is shown. */
export function stampOf(stamp: string): HTMLElement {
  const out = document.createElement("span");
  out.className = "stamp";
  out.textContent = stamp.slice(0, 23).replace("T", " ");
  return out;
}
