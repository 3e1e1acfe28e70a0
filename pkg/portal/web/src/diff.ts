// The difference of two texts by lines.

export interface Line {
  kind: "same" | "added" | "removed";
  text: string;
}

/** Unchanged lines that aren't shown. */
export interface Folded {
  kind: "folded";
  lines: number;
}

/** How many lines may differ until the rest counts as replaced: time and memory grow with the square. */
const most = 1000;

const split = (text: string) => text.replace(/\n$/, "").split("\n");

/** Returns the lines of both texts in order, by the algorithm of Myers. */
export function diff(before: string, after: string): Line[] {
  const a = split(before);
  const b = split(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const lines = (texts: string[], kind: Line["kind"]) => texts.map((text) => ({ kind, text }));
  return [...lines(a.slice(0, head), "same"), ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...lines(a.slice(a.length - tail), "same")];
}

function middle(a: string[], b: string[]): Line[] {
  // furthest[d][k + d + 1] is how many lines of a are passed on diagonal k after d changes.
  const furthest: Int32Array[] = [];
  for (let d = 0; d <= Math.min(most, a.length + b.length); d++) {
    const now = new Int32Array(2 * d + 3);
    const was = furthest[d - 1];
    furthest.push(now);
    for (let k = -d; k <= d; k += 2) {
      let x = 0;
      if (was) x = k === -d || (k !== d && was[k + d - 1]! < was[k + d + 1]!) ? was[k + d + 1]! : was[k + d - 1]! + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      now[k + d + 1] = x;
      if (x >= a.length && x - k >= b.length) return walked(a, b, furthest);
    }
  }
  return [...a.map((text) => ({ kind: "removed" as const, text })), ...b.map((text) => ({ kind: "added" as const, text }))];
}

/** Walks back from the ends of both texts. */
function walked(a: string[], b: string[], furthest: Int32Array[]): Line[] {
  const out: Line[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = furthest.length - 1; d >= 0; d--) {
    const was = furthest[d - 1];
    const k = x - y;
    const down = was !== undefined && (k === -d || (k !== d && was[k + d - 1]! < was[k + d + 1]!));
    const start = was ? (down ? was[k + d + 1]! : was[k + d - 1]! + 1) : 0;
    while (x > start) {
      out.push({ kind: "same", text: a[--x]! });
      y--;
    }
    if (!was) break;
    if (down) out.push({ kind: "added", text: b[--y]! });
    else out.push({ kind: "removed", text: a[--x]! });
  }
  return out.reverse();
}

/** Folds unchanged lines that are further from a change than some lines. Without a change, nothing is left. */
export function folded(lines: Line[], context: number): (Line | Folded)[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((x, i) => {
    if (x.kind !== "same") near.fill(1, Math.max(0, i - context), i + context + 1);
  });
  if (!near.includes(1)) return [];
  const out: (Line | Folded)[] = [];
  lines.forEach((x, i) => {
    const last = out[out.length - 1];
    if (near[i]) out.push(x);
    else if (last?.kind === "folded") last.lines++;
    else out.push({ kind: "folded", lines: 1 });
  });
  return out;
}
