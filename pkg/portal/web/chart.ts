// Charts of figures over time, as one file that a page loads when it shows one.
import uPlot from "uplot";
import layout from "uplot/dist/uPlot.min.css";
import { adoptText } from "./adopt";

adoptText(layout);

export interface Figures {
  /** The time of the first value and the time between two, in seconds. */
  since: number;
  step: number;
  lines: (number | null)[][];
  /** The highest possible value, drawn as a line of its own. */
  limit?: number;
  /** The top of the chart; without it, the highest value decides. */
  top?: number;
}

export interface Options {
  label: string;
  height: number;
  /** Whether the marks of the axis are powers of two, as for bytes. */
  binary: boolean;
  value(v: number): string;
  /** Returns a time for the axis, in seconds. The chart is whole seconds long. */
  time(seconds: number, whole: number): string;
  /** Receives the place in the lines that the person points at; null for none. */
  pointed(at: number | null): void;
}

export interface Chart {
  set(f: Figures): void;
  end(): void;
}

/** How many colours lines have: --line-0 and so on. */
const colours = 8;

export function draw(parent: HTMLElement, first: Figures, o: Options): Chart {
  // A canvas reads no variables.
  const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let figures = first;
  let plot: uPlot | null = null;

  const data = (f: Figures): uPlot.AlignedData => {
    const n = f.lines[0]?.length ?? 0;
    const lines = f.limit === undefined ? f.lines : [...f.lines, Array.from({ length: n }, () => f.limit!)];
    return [Array.from({ length: n }, (_, i) => f.since + i * f.step), ...lines];
  };
  const top = (high: number) => {
    const most = Math.max(figures.top ?? 0, figures.limit ?? 0, figures.top === undefined ? (high ?? 0) : 0);
    return most > 0 ? most * (figures.top === undefined ? 1.05 : 1.02) : 1;
  };
  const make = () => {
    plot?.destroy();
    const few = (figures.lines[0]?.length ?? 0) < 30;
    const lines = figures.lines.map((_, i): uPlot.Series => ({ stroke: () => css(`--line-${i % colours}`), width: 1.5, points: { show: few, size: 4 } }));
    if (figures.limit !== undefined) lines.push({ stroke: () => css("--ink-3"), width: 1, dash: [4, 4], points: { show: false } });
    plot = new uPlot(
      {
        width: Math.max(parent.clientWidth, 120),
        height: o.height,
        padding: [8, 8, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, sync: { key: "portal" }, points: { size: 6 } },
        scales: { x: { time: true }, y: { range: (_u, _low, high) => [0, top(high)] } },
        series: [{}, ...lines],
        axes: [
          {
            stroke: () => css("--ink-3"),
            font: "11px system-ui, sans-serif",
            size: 24,
            space: 80,
            grid: { show: false },
            ticks: { show: false },
            values: (_u, at) => at.map((s) => o.time(s, (figures.lines[0]?.length ?? 0) * figures.step)),
          },
          {
            stroke: () => css("--ink-3"),
            font: "11px system-ui, sans-serif",
            size: 62,
            space: 32,
            grid: { stroke: () => css("--line"), width: 1 },
            ticks: { show: false },
            values: (_u, at) => at.map((v) => o.value(v)),
            ...(o.binary ? { incrs: Array.from({ length: 60 }, (_, i) => 2 ** i) } : {}),
          },
        ],
        hooks: { setCursor: [(u) => o.pointed(u.cursor.idx ?? null)] },
      },
      data(figures),
      parent,
    );
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", o.label);
  };
  make();

  const sizes = new ResizeObserver(() => {
    if (plot && parent.clientWidth > 0 && parent.clientWidth !== plot.width) plot.setSize({ width: parent.clientWidth, height: o.height });
  });
  sizes.observe(parent);
  const redraw = () => plot?.redraw();
  const themes = new MutationObserver(redraw);
  themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);

  return {
    set(f) {
      const same = f.lines.length === figures.lines.length && (f.limit === undefined) === (figures.limit === undefined);
      figures = f;
      if (same) plot?.setData(data(f));
      else make();
    },
    end() {
      sizes.disconnect();
      themes.disconnect();
      dark.removeEventListener("change", redraw);
      plot?.destroy();
    },
  };
}
