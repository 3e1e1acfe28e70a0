// How a job, a machine or a virtual cluster used its resources over time: the sentences of the server, charts, and a table.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Chart } from "../chart";
import { load } from "./load";
import { useRead } from "./read";
import { quoted } from "./shell";
import { language, maybe, t } from "./text";
import type { MetricsChart, MetricsReport, MetricsSeries } from "./types";
import { Loading, Menu, Problem, copy } from "./ui";

export const spans = ["1h", "6h", "1d", "7d", "all"] as const;
export type Span = (typeof spans)[number];

/** The query of a request. */
export interface Asked {
  since?: string;
  task?: string;
}

interface Subject {
  /** Names what the figures are of. */
  id: string;
  span: Span;
  choose(span: Span): void;
  /** How long ago "all" begins; "" is the beginning of a job. */
  all: "" | "30d";
  /** Whether new figures come. */
  live: boolean;
  task?: string;
  height?: number;
  read(query: Asked, signal: AbortSignal): Promise<MetricsReport>;
  /** The commands that show the same. */
  command: string;
  curl(query: Asked): string;
  children?: ComponentChildren;
}

const every = 30_000; // milliseconds; Prometheus reads its targets as often

export function Metrics(s: Subject) {
  const since = s.span === "all" ? s.all : s.span;
  const query: Asked = { since: since || undefined, task: s.task || undefined };
  const { value, error, busy, again } = useRead<MetricsReport>(JSON.stringify([s.id, query]), (signal) => s.read(query, signal), s.live ? every : 0);
  const r = value.value;
  const command = s.command + (query.task ? ` --task ${quoted(query.task)}` : "") + (since ? ` --since ${since}` : "");
  return (
    <section class="metrics" aria-busy={busy.value}>
      <div class="filters">
        <div class="segments" role="group" aria-label={t("timeSpan")}>
          {spans.map((x) => (
            <button key={x} type="button" aria-pressed={x === s.span} onClick={() => s.choose(x)}>
              {t(x === "all" && s.all ? "span.30d" : `span.${x}`)}
            </button>
          ))}
        </div>
        {s.children}
        <Menu
          label={t("more")}
          icon="more"
          items={[
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(s.curl(query)) },
          ]}
        />
      </div>
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {!r && !error.value ? <Loading /> : null}
      {r?.note ? <p class="empty">{r.note}</p> : null}
      {r?.findings?.length ? (
        <ul class="metric-findings" aria-label={t("findings")}>
          {r.findings.map((f) => (
            <li key={f.kind}>{f.text}</li>
          ))}
        </ul>
      ) : null}
      {r?.charts?.length ? (
        <>
          <div class="plots">
            {r.charts.map((c) => (
              <Plot key={c.name} c={c} r={r} height={s.height ?? 150} />
            ))}
          </div>
          <details>
            <summary>{t("asTable")}</summary>
            <Table r={r} />
          </details>
        </>
      ) : null}
    </section>
  );
}

/** Shows something of its own when it is opened for the first time. */
export function Opened({ label, children }: { label: string; children: () => ComponentChildren }) {
  const open = useSignal(false);
  return (
    <details onToggle={(e) => e.currentTarget.open && (open.value = true)}>
      <summary>{label}</summary>
      {open.value ? children() : null}
    </details>
  );
}

/** The name of a series. Names of parts are translated, those of tasks and GPUs aren't. */
function nameOf(c: MetricsChart, s: MetricsSeries): string {
  const name = s.task || s.gpu ? s.name : maybe("series." + s.name, s.name || titleOf(c));
  return c.folded ? t("foldedOf", { name, n: c.folded > 0 ? c.folded : t("manyThings") }) : name;
}

function titleOf(c: MetricsChart): string {
  return maybe("metric." + c.name, c.title);
}

const unit = { watts: " W", celsius: " °C" } as Record<string, string>;

/** Returns a value with its unit. */
function valueOf(v: number, of: string | undefined): string {
  const format = (n: number, digits: number) => new Intl.NumberFormat(language.value, { maximumFractionDigits: digits }).format(n);
  if (of === "percent") return format(v, 0) + " %";
  if (of === "seconds") return v < 3600 ? format(v / 60, 0) + " min" : format(v / 3600, 1) + " h";
  if (of === "bytes" || of === "bytes/s") {
    const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let i = 0;
    while (v >= 1000 && i < names.length - 1) {
      v /= 1024;
      i++;
    }
    return `${format(v, v < 10 ? 1 : 0)} ${names[i]}${of === "bytes" ? "" : "/s"}`;
  }
  return format(v, 2) + (unit[of ?? ""] ?? "");
}

function timeOf(seconds: number, whole: number): string {
  const style: Intl.DateTimeFormatOptions = whole > 2 * 86400 ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(language.value, style).format(seconds * 1000);
}

interface Sums {
  low: number;
  mean: number;
  high: number;
}

function sums(values: (number | null)[] | null): Sums | null {
  const known = (values ?? []).filter((v) => v !== null);
  if (known.length === 0) return null;
  return { low: Math.min(...known), mean: known.reduce((a, b) => a + b, 0) / known.length, high: Math.max(...known) };
}

/** Returns the limit that all series have; undefined if they differ, or if it is far above all values, which would be flat. */
function limitOf(c: MetricsChart): number | undefined {
  const limit = c.series?.[0]?.limit;
  const high = Math.max(...(c.series ?? []).map((s) => sums(s.values)?.high ?? 0));
  return limit !== undefined && (c.series ?? []).every((s) => s.limit === limit) && high > limit / 10 ? limit : undefined;
}

function Plot({ c, r, height }: { c: MetricsChart; r: MetricsReport; height: number }) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const at = useSignal<number | null>(null);
  const failed = useSignal(false);
  const series = c.series ?? [];
  const figures = { since: Date.parse(r.since) / 1000, step: r.step, lines: series.map((s) => s.values ?? []), limit: limitOf(c), top: c.unit === "percent" ? 100 : undefined };
  const latest = useRef(figures);
  latest.current = figures;
  const title = titleOf(c);
  useEffect(() => {
    let gone = false;
    load("chart").then(
      (m) => {
        if (gone) return;
        chart.current = m.draw(box.current!, latest.current, {
          label: t("chartOver", { title }),
          height,
          binary: c.unit === "bytes" || c.unit === "bytes/s",
          value: (v) => valueOf(v, c.unit),
          time: timeOf,
          pointed: (i) => (at.value = i),
        });
      },
      () => (failed.value = true),
    );
    return () => {
      gone = true;
      chart.current?.end();
      chart.current = null;
    };
  }, [language.value]);
  useEffect(() => chart.current?.set(figures), [r]);
  const place = at.value;
  return (
    <figure class="plot">
      <figcaption>
        <h3>{title}</h3>
        {place !== null && r.charts ? <span class="faint">{new Date(Date.parse(r.since) + place * r.step * 1000).toLocaleString(language.value, { dateStyle: "short", timeStyle: "short" })}</span> : null}
      </figcaption>
      {failed.value ? <p class="note">{t("chartFailed")}</p> : <div ref={box} />}
      <ul class="lines">
        {series.map((s, i) => {
          const v = place === null ? sums(s.values)?.mean : s.values?.[place];
          return (
            <li key={s.name}>
              <i class={`line-${i % 8}`} /> {nameOf(c, s)} <b>{v === undefined || v === null ? "–" : valueOf(v, c.unit)}</b>
            </li>
          );
        })}
        {figures.limit !== undefined ? (
          <li>
            <i class="line-limit" /> {t("limit")} <b>{valueOf(figures.limit, c.unit)}</b>
          </li>
        ) : null}
      </ul>
    </figure>
  );
}

function Table({ r }: { r: MetricsReport }) {
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label={t("asTable")}>
      <table class="rows">
        <thead>
          <tr>
            <th>{t("metric")}</th>
            <th>{t("metricOf")}</th>
            <th class="num">{t("series.lowest")}</th>
            <th class="num">{t("series.mean")}</th>
            <th class="num">{t("series.highest")}</th>
            <th class="num">{t("limit")}</th>
          </tr>
        </thead>
        <tbody>
          {(r.charts ?? []).flatMap((c) =>
            (c.series ?? []).map((s) => {
              const of = sums(s.values);
              return of ? (
                <tr key={c.name + s.name}>
                  <td>{titleOf(c)}</td>
                  <td>{nameOf(c, s)}</td>
                  <td class="num">{valueOf(of.low, c.unit)}</td>
                  <td class="num">{valueOf(of.mean, c.unit)}</td>
                  <td class="num">{valueOf(of.high, c.unit)}</td>
                  <td class="num">{s.limit === undefined ? "" : valueOf(s.limit, c.unit)}</td>
                </tr>
              ) : null;
            }),
          )}
        </tbody>
      </table>
    </div>
  );
}
