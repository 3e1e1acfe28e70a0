// Times and durations for people.
import { signal } from "@preact/signals";
import { language, t } from "./text";

/** The current time. Texts that depend on it follow it. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

export function duration(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (d > 0) return `${d}d ${h}h`;
  if (h > 0) return `${h}h ${m}m`;
  if (m > 0) return `${m}m ${s % 60}s`;
  return `${s}s`;
}

/** Returns a time span in one unit: 3 min. */
function rough(ms: number): string {
  const s = Math.floor(ms / 1000);
  const of = (n: number, unit: string) => new Intl.NumberFormat(language.value, { style: "unit", unit, unitDisplay: "short" }).format(n);
  if (s < 3600) return of(Math.floor(s / 60), "minute");
  if (s < 86400) return of(Math.floor(s / 3600), "hour");
  return of(Math.floor(s / 86400), "day");
}

export function since(time: string): string {
  const ms = now.value - Date.parse(time);
  if (ms < 0 && ms > -60_000) return t("now");
  if (ms < 0) return t("in", { time: rough(-ms) });
  return ms < 60_000 ? t("now") : t("ago", { time: rough(ms) });
}

export function exact(time: string): string {
  return new Date(time).toLocaleString(language.value, { dateStyle: "medium", timeStyle: "medium" });
}
