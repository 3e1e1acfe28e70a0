// GPU hours: how long GPUs were held, by whom, and how much of it was lost.
import { useEffect } from "preact/hooks";
import { call } from "./api";
import { csv } from "./list";
import { useRead } from "./read";
import { place, setQuery } from "./route";
import { me, ownVCs } from "./session";
import { curl, quoted } from "./shell";
import { language, t } from "./text";
import { now } from "./time";
import type { JobApiGPUTime, JobUsage, JobUsageItem } from "./types";
import { Icon, Loading, Menu, Problem, copy, save } from "./ui";

const spans = ["7", "30", "90", "month"] as const;
const dimensions = ["vc", "user", "type", "day"] as const;
type Dimension = (typeof dimensions)[number];

const day = 86_400_000; // milliseconds

/** Returns the first day of a span, UTC, as the server counts. */
function begin(span: (typeof spans)[number]): Date {
  const today = new Date(now.peek());
  const [y, m, d] = [today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate()];
  return new Date(span === "month" ? Date.UTC(y, m, 1) : Date.UTC(y, m, d - Number(span) + 1));
}

function hours(seconds: number, digits = 1): string {
  return new Intl.NumberFormat(language.value, { maximumFractionDigits: digits, minimumFractionDigits: digits }).format(seconds / 3600);
}

function held(x: JobApiGPUTime): number {
  return x.guaranteedSeconds + x.opportunisticSeconds;
}

function percent(part: number, whole: number): string {
  return whole > 0 ? new Intl.NumberFormat(language.value, { style: "percent", maximumFractionDigits: 1 }).format(part / whole) : "";
}

function nameOf(x: JobUsageItem, by: Dimension): string {
  return (by === "vc" ? x.virtualCluster : by === "user" ? x.user : by === "type" ? x.type : x.period?.slice(0, 10)) ?? "";
}

/** The rows with the time of each day. Days without any are left out by the server. */
function byDay(u: JobUsage): { date: string; x: JobApiGPUTime }[] {
  const known = new Map((u.items ?? []).map((x) => [x.period?.slice(0, 10), x]));
  const out = [];
  for (let at = Date.parse(u.since.slice(0, 10)); at < Date.parse(u.until); at += day) {
    const date = new Date(at).toISOString().slice(0, 10);
    out.push({ date, x: known.get(date) ?? { guaranteedSeconds: 0, opportunisticSeconds: 0, preemptedSeconds: 0, failedSeconds: 0 } });
  }
  return out;
}

/** Rounds up to a number that is easy to read. */
function round(x: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(x, 1e-3)));
  return [1, 1.5, 2, 3, 4, 5, 7.5, 10].map((n) => n * power).find((n) => n >= x)!;
}

const width = 1000;
const height = 160;

/** A bar for each day: jobs with a guarantee, opportunistic ones above them, and in front of both the part that was lost. */
function Chart({ u }: { u: JobUsage }) {
  const days = byDay(u);
  const top = round(Math.max(...days.map((d) => held(d.x))) / 3600) * 3600;
  const step = width / days.length;
  const bar = Math.max(step * 0.72, 1);
  const y = (seconds: number) => height - (height * seconds) / top;
  const date = new Intl.DateTimeFormat(language.value, { month: "short", day: "numeric", timeZone: "UTC" });
  return (
    <figure class="chart">
      <figcaption>
        {(["guaranteed", "opportunisticJobs", "preempted", "failedAttempts"] as const).map((x) => (
          <span key={x} class="key">
            <i class={x} /> {t(x)}
          </span>
        ))}
        <span class="grow" />
        <span class="faint">{t("hoursADay", { n: hours(top, 0) })}</span>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={t("chartOf", { n: hours(held(u.total)), days: days.length })}>
        {[0, 0.5].map((part) => (
          <line key={part} x1="0" x2={width} y1={height * part} y2={height * part} />
        ))}
        {days.map(({ date: name, x }, i) => {
          const lost = x.preemptedSeconds + x.failedSeconds;
          const left = i * step + (step - bar) / 2;
          return (
            <g key={name}>
              <title>{`${date.format(Date.parse(name))}: ${hours(held(x))} (${t("guaranteed")} ${hours(x.guaranteedSeconds)}, ${t("opportunisticJobs")} ${hours(x.opportunisticSeconds)}, ${t("preempted")} ${hours(x.preemptedSeconds)}, ${t("failedAttempts")} ${hours(x.failedSeconds)})`}</title>
              <rect class="whole" x={i * step} y="0" width={step} height={height} />
              <rect class="guaranteed" x={left} y={y(x.guaranteedSeconds)} width={bar} height={height - y(x.guaranteedSeconds)} />
              <rect class="opportunisticJobs" x={left} y={y(held(x))} width={bar} height={y(x.guaranteedSeconds) - y(held(x))} />
              <rect class="failedAttempts" x={left} y={y(x.failedSeconds)} width={bar / 2} height={height - y(x.failedSeconds)} />
              <rect class="preempted" x={left} y={y(lost)} width={bar / 2} height={y(x.failedSeconds) - y(lost)} />
            </g>
          );
        })}
      </svg>
      <div class="axis faint small" aria-hidden="true">
        <span>{date.format(Date.parse(days[0]!.date))}</span>
        <span>{date.format(Date.parse(days.at(-1)!.date))}</span>
      </div>
    </figure>
  );
}

const columns = (by: Dimension): [string, (x: JobUsageItem) => unknown][] => [
  [by === "vc" ? "virtualCluster" : by, (x) => nameOf(x, by)],
  ["gpuHours", (x) => Number((held(x) / 3600).toFixed(2))],
  ["guaranteed", (x) => Number((x.guaranteedSeconds / 3600).toFixed(2))],
  ["opportunistic", (x) => Number((x.opportunisticSeconds / 3600).toFixed(2))],
  ["preempted", (x) => Number((x.preemptedSeconds / 3600).toFixed(2))],
  ["failed", (x) => Number((x.failedSeconds / 3600).toFixed(2))],
];

export function UsagePage() {
  const q = place.value.query;
  const span = spans.find((x) => x === q.get("span")) ?? "30";
  const of = q.get("of") ?? "me";
  const vc = of.startsWith("vc:") ? of.slice(3) : "";
  const user = of === "me" ? me.value!.name : "";
  const chosen = dimensions.find((x) => x === q.get("by")) ?? "vc";
  const by = vc && chosen === "vc" ? "day" : chosen;
  const since = begin(span).toISOString().replace(".000", "");
  const query = { user, vc, since, by: [by] };
  const table = useRead(JSON.stringify(query), (signal) => call("GET /api/v3/usage", { query, signal }));
  const days = useRead(JSON.stringify({ ...query, by: [] }), (signal) => call("GET /api/v3/usage", { query: { ...query, by: ["day"] }, signal }));
  useEffect(() => {
    document.title = t("usagePage") + " – paictl";
  }, []);
  const rows = [...(table.value.value?.items ?? [])];
  if (by !== "day") rows.sort((a, b) => held(b) - held(a));
  else rows.reverse();
  const u = table.value.value;
  const total = u?.total;
  const vcs = [...new Set([...ownVCs(), ...(vc ? [vc] : [])])].sort();
  const command = ["paictl job usage", "--by " + by, "--since " + since.slice(0, 10)];
  if (user) command.push("--user " + quoted(user));
  if (vc) command.push("--vc " + quoted(vc));
  const share = rows.some((x) => x.shareOfGuarantee !== undefined);
  return (
    <section class="page usage">
      <header class="top">
        <h1>{t("usagePage")}</h1>
        <span class="grow" />
        <Menu
          label={t("more")}
          icon="more"
          items={[
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command.join(" ")) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/usage", { query })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
          ]}
        />
        <button type="button" disabled={rows.length === 0} onClick={() => save("gpu-hours.csv", [csv(rows, columns(by))], "text/csv;charset=utf-8")}>
          <Icon name="down" /> {t("csv")}
        </button>
      </header>
      <div class="filters">
        <div class="segments" role="group" aria-label={t("timeSpan")}>
          {spans.map((x) => (
            <button key={x} type="button" aria-pressed={span === x} onClick={() => setQuery({ span: x === "30" ? undefined : x })}>
              {x === "month" ? t("thisMonth") : t("lastDays", { n: x })}
            </button>
          ))}
        </div>
        <select aria-label={t("usageOf")} value={of} onChange={(e) => setQuery({ of: e.currentTarget.value === "me" ? undefined : e.currentTarget.value })}>
          <option value="me">{t("usageOfMe")}</option>
          {me.value?.grants.administrator || of === "all" ? <option value="all">{t("usageOfAll")}</option> : null}
          {vcs.map((v) => (
            <option key={v} value={"vc:" + v}>
              {t("usageOfVC", { vc: v })}
            </option>
          ))}
        </select>
        <div class="segments" role="group" aria-label={t("rowsBy")}>
          {dimensions.map((x) =>
            (x === "vc" && vc) || (x === "user" && user) ? null : (
              <button key={x} type="button" aria-pressed={by === x} onClick={() => setQuery({ by: x === "vc" ? undefined : x })}>
                {t(`by.${x}`)}
              </button>
            ),
          )}
        </div>
      </div>
      {table.error.value ? <Problem of={table.error.value} again={table.again} /> : null}
      {!u || !total ? (
        table.error.value ? null : <Loading />
      ) : held(total) === 0 ? (
        <div class="empty">
          <p>{t("noUsage")}</p>
          <p class="faint">{t("noUsageHint")}</p>
        </div>
      ) : (
        <>
          <dl class="facts totals">
            <Amount name={t("gpuHours")} value={hours(held(total))} />
            <Amount name={t("guaranteed")} value={hours(total.guaranteedSeconds)} more={percent(total.guaranteedSeconds, held(total))} />
            <Amount name={t("opportunisticJobs")} value={hours(total.opportunisticSeconds)} more={percent(total.opportunisticSeconds, held(total))} />
            <Amount name={t("preempted")} value={hours(total.preemptedSeconds)} more={percent(total.preemptedSeconds, held(total))} />
            <Amount name={t("failedAttempts")} value={hours(total.failedSeconds)} more={percent(total.failedSeconds, held(total))} />
          </dl>
          {days.value.value ? <Chart u={days.value.value} /> : <div class="chart" />}
          <div class="scrolls" tabIndex={0}>
            <table class={table.busy.value ? "rows old" : "rows"} aria-busy={table.busy.value}>
              <thead>
                <tr>
                  <th>{t(`by.${by}`)}</th>
                  <th class="num">{t("gpuHours")}</th>
                  <th class="num">{t("guaranteed")}</th>
                  <th class="num">{t("opportunisticJobs")}</th>
                  <th class="num">{t("preempted")}</th>
                  <th class="num">{t("failedAttempts")}</th>
                  {share ? (
                    <th class="num" title={t("shareMore")}>
                      {t("share")}
                    </th>
                  ) : null}
                </tr>
              </thead>
              <tbody>
                {rows.map((x) => (
                  <tr key={nameOf(x, by)}>
                    <td>{nameOf(x, by) || <span class="faint">{t("unknown")}</span>}</td>
                    <td class="num">{hours(held(x))}</td>
                    <td class="num">{hours(x.guaranteedSeconds)}</td>
                    <td class="num">{hours(x.opportunisticSeconds)}</td>
                    <td class="num">{hours(x.preemptedSeconds)}</td>
                    <td class="num">{hours(x.failedSeconds)}</td>
                    {share ? <td class="num">{x.shareOfGuarantee === undefined ? "" : percent(x.shareOfGuarantee, 1)}</td> : null}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="faint small under">{t("usageHint")}</p>
        </>
      )}
    </section>
  );
}

function Amount({ name, value, more }: { name: string; value: string; more?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <b>{value}</b> {more ? <span class="faint">{more}</span> : null}
      </dd>
    </div>
  );
}
