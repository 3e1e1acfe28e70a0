// The GPU map: all machines and their GPUs on a canvas, which draws a thousand machines in a few milliseconds.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { broken, byName, down } from "./cluster";
import { me } from "./session";
import { maybe, t } from "./text";
import type { StatusGPU, StatusMachine } from "./types";

/** What the colour of a GPU shows. */
export type By = "use" | "owner" | "vc" | "health";
export const ways: By[] = ["use", "owner", "vc", "health"];

/** The steps of a GPU's use in percent, and their colours: --use-0 … */
const steps = [0, 5, 25, 50, 75, 90];

/** How many colours there are for people and virtual clusters: --cat-0 … */
const categories = 10;

/** The key of a GPU's colour, which the legend explains. */
export function shade(g: StatusGPU, m: StatusMachine, by: By, groups: string[]): string {
  if (by === "health") {
    if (broken(g)) return "bad";
    if (g.health === "ignored") return "ignored";
    return g.health === "healthy" ? (down(m) ? "down" : "good") : "unknown";
  }
  if (broken(g)) return "bad";
  const o = g.owner;
  if (!o) return down(m) ? "down" : "free";
  switch (by) {
    case "use":
      return g.use ? "use-" + steps.findLastIndex((s) => g.use!.utilisation >= s) : "held";
    case "owner":
      if (o.user && o.user === me.value?.name) return "mine";
      return o.user ? category(groups.indexOf(o.user)) : "held";
    case "vc":
      return o.virtualCluster ? category(groups.indexOf(o.virtualCluster)) : "held";
  }
}

function category(i: number): string {
  return i < categories ? "cat-" + i : "other";
}

/** The people, or the virtual clusters, that hold GPUs: those with the most first. Their places are their colours. */
export function holders(machines: StatusMachine[], by: By): string[] {
  if (by !== "owner" && by !== "vc") return [];
  const n = new Map<string, number>();
  for (const m of machines)
    for (const g of m.gpus ?? []) {
      const name = by === "vc" ? g.owner?.virtualCluster : g.owner?.user;
      if (name && !(by === "owner" && name === me.value?.name)) n.set(name, (n.get(name) ?? 0) + 1);
    }
  const most = [...n].sort((a, b) => b[1] - a[1] || byName({ name: a[0] }, { name: b[0] }));
  return most.map(([name]) => name);
}

/** One GPU in words. */
export function explain(m: StatusMachine, g: StatusGPU): string {
  const parts = [`${m.name} / GPU ${g.index}`];
  if (g.model) parts.push(g.model);
  if (g.health !== "healthy") parts.push(maybe("gpu." + g.health, g.health) + (g.reason ? ": " + g.reason : ""));
  const o = g.owner;
  if (!o) parts.push(down(m) ? t("mapDown") : t("mapFree"));
  else if (o.job) parts.push(o.job + (o.task ? " " + o.task : ""));
  else parts.push(o.pod ? o.pod : t("mapSomeone"));
  if (o?.virtualCluster) parts.push(o.virtualCluster + (o.opportunistic ? " (" + t("mapOpportunistic") + ")" : ""));
  if (g.use) {
    parts.push(t("mapUse", { n: Math.round(g.use.utilisation) }));
    if (g.memory) parts.push(t("mapMemory", { used: Math.round(g.use.memoryUsed / 102.4) / 10, of: Math.round(g.memory / 1024) }));
    if (g.use.temperature) parts.push(Math.round(g.use.temperature) + " °C");
    if (g.use.power) parts.push(Math.round(g.use.power) + " W");
  }
  return parts.join(" · ");
}

interface Block {
  m: StatusMachine;
  x: number;
  y: number;
}

interface Layout {
  cell: number;
  gap: number;
  columns: number;
  label: number;
  font: number;
  width: number;
  height: number;
  blockWidth: number;
  blockHeight: number;
  perRow: number;
  blocks: Block[];
}

/** Sizes of a GPU on the map in pixels, and the smallest one at which machines have names. */
const sizes = [44, 38, 32, 28, 24, 20, 17, 14, 12, 10, 8, 7, 6, 5];
const named = 10;

/** Places the machines: GPUs have the largest size with which all fit into the height, or else the smallest one. */
function place(machines: StatusMachine[], width: number, height: number, largest: number): Layout {
  const most = Math.max(1, ...machines.map((m) => m.gpus?.length ?? 0));
  const columns = Math.min(most, 8);
  const rows = Math.ceil(most / columns);
  const longest = Math.max(0, ...machines.map((m) => m.name.length));
  let out: Layout | undefined;
  for (const cell of sizes) {
    if (cell > largest) continue;
    const gap = cell >= 24 ? 4 : cell >= 12 ? 3 : cell >= 7 ? 2 : 1;
    const font = cell >= 28 ? 14 : cell >= 14 ? 11 : 9;
    const label = cell >= named ? font + 5 : 0;
    const margin = cell >= 12 ? cell : 9;
    const blockWidth = Math.max(columns * (cell + gap) - gap, label ? Math.min(longest, 16) * font * 0.55 : 0) + margin;
    const blockHeight = label + rows * (cell + gap) - gap + margin;
    const perRow = Math.max(1, Math.floor((width + margin) / blockWidth));
    const full = Math.max(1, Math.ceil(machines.length / perRow)) * blockHeight - margin;
    out = { cell, gap, columns, label, font, width, height: full + 1, blockWidth, blockHeight, perRow, blocks: [] };
    if (full <= height && columns * (cell + gap) <= width) break;
  }
  const l = out!;
  l.blocks = machines.map((m, i) => ({ m, x: (i % l.perRow) * l.blockWidth, y: Math.floor(i / l.perRow) * l.blockHeight }));
  return l;
}

/** Colours by their keys, as the theme has them. */
function palette(at: Element): (key: string) => string {
  const style = getComputedStyle(at);
  const known = new Map<string, string>();
  return (key) => {
    let colour = known.get(key);
    if (colour === undefined) known.set(key, (colour = style.getPropertyValue("--map-" + key).trim() || "#888"));
    return colour;
  };
}

/** Draws the map. GPUs of one colour are one path: the browser paints a few shapes instead of thousands. */
function draw(canvas: HTMLCanvasElement, l: Layout, by: By, groups: string[]): void {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.round(l.width * ratio), Math.round(l.height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const c = canvas.getContext("2d")!;
  const colour = palette(canvas);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, l.width, l.height);
  c.font = `${l.font}px ${getComputedStyle(canvas).fontFamily}`;
  c.textBaseline = "top";
  const radius = l.cell >= 28 ? 5 : l.cell >= 12 ? 3 : l.cell >= 9 ? 2 : 0;
  const shapes = new Map<string, Path2D>();
  const shape = (key: string) => {
    let path = shapes.get(key);
    if (!path) shapes.set(key, (path = new Path2D()));
    return path;
  };
  for (const b of l.blocks) {
    if (l.label) {
      c.fillStyle = colour(down(b.m) ? "name-down" : "name");
      c.fillText(b.m.name, b.x, b.y, l.blockWidth - 8);
    }
    const gpus = b.m.gpus ?? [];
    if (gpus.length === 0) {
      c.strokeStyle = colour(down(b.m) ? "down" : "line");
      c.strokeRect(b.x + 0.5, b.y + l.label + 0.5, l.columns * (l.cell + l.gap) - l.gap - 1, l.cell - 1);
    }
    gpus.forEach((g, i) => {
      const [x, y] = corner(l, b, i);
      const path = shape(shade(g, b.m, by, groups));
      if (radius) path.roundRect(x, y, l.cell, l.cell, radius);
      else path.rect(x, y, l.cell, l.cell);
      // A broken GPU is marked by more than its colour.
      if (broken(g)) cross(shape("cross"), x, y, l.cell);
    });
  }
  for (const [key, path] of shapes) {
    if (key === "cross") continue;
    c.fillStyle = colour(key);
    c.fill(path);
    if (key !== "free") continue;
    c.strokeStyle = colour("line");
    c.stroke(path);
  }
  const crosses = shapes.get("cross");
  if (!crosses) return;
  c.strokeStyle = colour("cross");
  c.stroke(crosses);
}

/** The upper left corner of a GPU. */
function corner(l: Layout, b: Block, i: number): [number, number] {
  return [b.x + (i % l.columns) * (l.cell + l.gap), b.y + l.label + Math.floor(i / l.columns) * (l.cell + l.gap)];
}

function cross(path: Path2D, x: number, y: number, size: number): void {
  const m = size * 0.28;
  path.moveTo(x + m, y + m);
  path.lineTo(x + size - m, y + size - m);
  path.moveTo(x + size - m, y + m);
  path.lineTo(x + m, y + size - m);
}

interface Spot {
  machine: string;
  gpu: number;
}

function hit(l: Layout, x: number, y: number): Spot | null {
  const column = Math.floor(x / l.blockWidth);
  const b = column < l.perRow ? l.blocks[Math.floor(y / l.blockHeight) * l.perRow + column] : undefined;
  if (!b) return null;
  const [i, k] = [Math.floor((x - b.x) / (l.cell + l.gap)), Math.floor((y - b.y - l.label) / (l.cell + l.gap))];
  if (i >= l.columns) return null;
  const gpu = Math.max(0, k) * l.columns + i;
  return gpu < Math.max(1, b.m.gpus?.length ?? 0) ? { machine: b.m.name, gpu } : null;
}

interface Props {
  machines: StatusMachine[];
  by: By;
  /** The height in pixels into which the map should fit. */
  fit: number;
  /** The largest size of a GPU in pixels. */
  largest?: number;
  open?: (machine: string) => void;
}

export function GPUMap({ machines, by, fit, largest = 20, open }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const at = useSignal<Spot | null>(null);
  const tip = useSignal<{ x: number; y: number } | null>(null);
  const theme = useSignal(0);
  useEffect(() => {
    const box = frame.current!;
    const sizes = new ResizeObserver(() => (width.value = box.clientWidth));
    sizes.observe(box);
    const redraw = () => theme.value++;
    const themes = new MutationObserver(redraw);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", redraw);
    return () => {
      sizes.disconnect();
      themes.disconnect();
      system.removeEventListener("change", redraw);
    };
  }, []);
  const sorted = useMemo(() => [...machines].sort(byName), [machines]);
  const groups = useMemo(() => holders(sorted, by), [sorted, by]);
  const l = useMemo(() => place(sorted, width.value, fit, largest), [sorted, width.value, fit, largest]);
  useEffect(() => {
    if (!width.value) return;
    const id = requestAnimationFrame(() => canvas.current && draw(canvas.current, l, by, groups));
    return () => cancelAnimationFrame(id);
  }, [l, by, groups, theme.value]);

  const block = at.value ? l.blocks.find((b) => b.m.name === at.value!.machine) : undefined;
  const m = block?.m;
  const g = m?.gpus?.[at.value!.gpu];
  const words = m ? (g ? explain(m, g) : `${m.name} · ${t("noGPUs")}`) : "";
  const [left, top] = block ? corner(l, block, at.value!.gpu) : [0, 0];
  const move = (e: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const [x, y] = [e.clientX - box.left, e.clientY - box.top];
    const s = hit(l, x, y);
    if (s?.machine !== at.value?.machine || s?.gpu !== at.value?.gpu) at.value = s;
    tip.value = s ? { x: Math.min(x, l.width - 180), y } : null;
  };
  const keys = (e: KeyboardEvent) => {
    const step: Record<string, [number, number]> = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [l.perRow, 0], ArrowUp: [-l.perRow, 0] };
    const by = step[e.key];
    if (e.key === "Enter" && at.value) {
      open?.(at.value.machine);
    } else if (by && sorted.length) {
      let i = Math.max(0, sorted.findIndex((x) => x.name === at.value?.machine));
      let k = at.value ? at.value.gpu + by[1] : 0;
      const count = (j: number) => Math.max(1, sorted[j]!.gpus?.length ?? 0);
      if (k < 0 && i > 0) k = count(--i) - 1;
      else if (k >= count(i) && i < sorted.length - 1) [i, k] = [i + 1, 0];
      const to = i + by[0];
      if (to >= 0 && to < sorted.length) i = to;
      at.value = { machine: sorted[i]!.name, gpu: Math.max(0, Math.min(k, count(i) - 1)) };
      tip.value = null;
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div class="map" ref={frame}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={t("mapLabel", { n: sorted.length })}
        style={{ width: l.width + "px", height: l.height + "px" }}
        onPointerMove={move}
        onPointerLeave={() => {
          at.value = null;
          tip.value = null;
        }}
        onClick={() => at.value && open?.(at.value.machine)}
        onKeyDown={keys}
      />
      {block ? <i class="map-at" style={{ left: left - 3 + "px", top: top - 3 + "px", width: l.cell + 6 + "px", height: l.cell + 6 + "px" }} /> : null}
      {tip.value && words ? (
        <div class="tip" style={{ left: tip.value.x + 14 + "px", top: tip.value.y + 16 + "px" }}>
          {words.split(" · ").map((line) => (
            <div key={line}>{line}</div>
          ))}
        </div>
      ) : null}
      <p class="map-words small" aria-live="polite">
        {tip.value ? "" : words}
      </p>
    </div>
  );
}

/** Explains the colours of a map, with how many GPUs have each. */
export function Legend({ machines, by }: { machines: StatusMachine[]; by: By }) {
  const groups = holders(machines, by);
  const n = new Map<string, number>();
  for (const m of machines) for (const g of m.gpus ?? []) {
    const key = shade(g, m, by, groups);
    n.set(key, (n.get(key) ?? 0) + 1);
  }
  const fixed: [string, string][] = [
    ["free", t("mapFree")],
    ["mine", me.value?.name ?? ""],
    ["good", t("gpu.healthy")],
    ["other", t("mapOthers", { n: groups.length - categories })],
    ["held", by === "use" ? t("mapNoUse") : t("mapSomeone")],
    ["unknown", t("gpu.unknown")],
    ["ignored", t("gpu.ignored")],
    ["down", t("mapDown")],
    ["bad", t("mapBroken")],
  ];
  const named: [string, string][] = groups.slice(0, categories).map((name, i) => ["cat-" + i, name]);
  const used: [string, string][] = steps.map((s, i) => ["use-" + i, i === steps.length - 1 ? `≥ ${s} %` : i === 0 ? `< ${steps[1]} %` : `${s}–${steps[i + 1]} %`]);
  const all = [...fixed.slice(0, 3), ...(by === "use" ? used : named), ...fixed.slice(3)];
  return (
    <ul class="legend small">
      {all.map(([key, text]) =>
        n.get(key) ? (
          <li key={key}>
            <i class={"swatch m-" + key} /> {text} <span class="faint">{n.get(key)}</span>
          </li>
        ) : null,
      )}
    </ul>
  );
}
