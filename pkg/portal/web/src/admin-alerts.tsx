// The alerts that fire, and their silences.
import { useSignal } from "@preact/signals";
import { Segments, Top } from "./admin-parts";
import { SilenceList, Silencing, matchersOf } from "./admin-silences";
import { call } from "./api";
import { csv } from "./list";
import { useRead } from "./read";
import { address, place } from "./route";
import { curl } from "./shell";
import { maybe, t } from "./text";
import type { V3ApiAlert, V3ApiMatcher } from "./types";
import { Ago, Icon, Loading, Problem, save } from "./ui";

/** The labels that name what an alert is about. */
const objects = ["node", "instance", "job_name", "pod", "service", "namespace", "gpu", "minor_number"];

const family: Record<string, string> = { critical: "bad", warning: "wait" };

function about(a: V3ApiAlert): string {
  return objects.flatMap((k) => (a.labels?.[k] ? [`${k}=${a.labels[k]}`] : [])).join(" ");
}

function silenced(a: V3ApiAlert): boolean {
  return !!a.silences?.length;
}

/** A rule's address may be anything: only one of the web becomes a link. */
function linkable(address: string | undefined): boolean {
  return /^https?:\/\//i.test(address ?? "");
}

const columns: [string, (a: V3ApiAlert) => unknown][] = [
  ["name", (a) => a.name],
  ["severity", (a) => a.severity],
  ["since", (a) => a.since],
  ["silenced", silenced],
  ["about", about],
  ["summary", (a) => a.summary],
  ["runbook", (a) => a.runbook],
];

function Row({ a, silence }: { a: V3ApiAlert; silence: () => void }) {
  const severity = a.severity ?? "";
  const node = a.labels?.node;
  return (
    <tr>
      <td>
        <span class={`state ${silenced(a) ? "off" : (family[severity] ?? "run")}`}>
          <i class="dot" />
          <b>{a.name}</b>
        </span>
        <div class="faint small">
          {maybe("admin.severity." + severity, severity)}
          {silenced(a) ? ` · ${t("admin.severity.silenced")}` : ""}
        </div>
      </td>
      <td class="c-time">
        <Ago time={a.since} />
      </td>
      <td class="long">
        {a.summary}
        {about(a) ? <div class="faint small">{about(a)}</div> : null}
      </td>
      <td class="wide long">
        {linkable(a.runbook) ? (
          <a href={a.runbook} target="_blank" rel="noreferrer">
            {t("admin.runbook")}
          </a>
        ) : (
          a.runbook
        )}
      </td>
      <td>
        <span class="buttons">
          {node ? (
            <a class="button wide" href={address(["machines"], { machine: node })} aria-label={t("admin.openMachine", { name: node })} title={t("admin.openMachine", { name: node })}>
              <Icon name="machines" />
            </a>
          ) : null}
          {silenced(a) ? null : (
            <button type="button" aria-label={`${t("admin.silence")}: ${a.name} ${about(a)}`} onClick={silence}>
              {t("admin.silence")}
            </button>
          )}
        </span>
      </td>
    </tr>
  );
}

export function Alerts() {
  const read = useRead("", async (signal) => ({ alerts: (await call("GET /api/v3/alerts", { signal })).items ?? [], silences: (await call("GET /api/v3/silences", { signal })).items ?? [] }), 15_000);
  const silencing = useSignal<V3ApiMatcher[] | null>(null);
  const choice = place.value.query.get("severity") ?? "";
  const value = read.value.value;
  const rows = (value?.alerts ?? []).filter((a) => !choice || (choice === "silenced" ? silenced(a) : a.severity === choice));
  return (
    <>
      <Top title={t("admin.tab.alerts")} paictl="paictl alert list --silenced" curl={curl("GET /api/v3/alerts", {})}>
        <button type="button" title={t("csvMore")} disabled={!value} onClick={() => save("alerts.csv", [csv(rows, columns)], "text/csv;charset=utf-8")}>
          <Icon name="down" /> {t("csv")}
        </button>
        <button type="button" class="primary" disabled={!value} onClick={() => (silencing.value = [])}>
          <Icon name="plus" /> {t("admin.newSilence")}
        </button>
      </Top>
      {value ? (
        <div class="filters">
          <Segments label={t("admin.severity")} of="severity" value={choice} choices={[["", t("state.all")], ...["critical", "warning", "info", "silenced"].map((x): [string, string] => [x, t(`admin.severity.${x}` as "admin.severity.info")])]} />
        </div>
      ) : null}
      {read.error.value ? <Problem of={read.error.value} again={read.again} /> : null}
      {!value ? (
        read.error.value ? null : <Loading />
      ) : (
        <>
          {rows.length === 0 ? (
            <p class="empty">{t(choice ? "admin.noAlertHere" : "admin.noAlert")}</p>
          ) : (
            <table class="rows alerts">
              <thead>
                <tr>
                  <th>{t("admin.alert")}</th>
                  <th class="c-time">{t("admin.since")}</th>
                  <th>{t("admin.summary")}</th>
                  <th class="wide">{t("admin.runbook")}</th>
                  <th aria-label={t("more")} />
                </tr>
              </thead>
              <tbody>
                {rows.map((a) => (
                  <Row key={a.name + a.since + JSON.stringify(a.labels)} a={a} silence={() => (silencing.value = matchersOf(a))} />
                ))}
              </tbody>
            </table>
          )}
          <h2 class="part">{t("admin.silences")}</h2>
          <SilenceList all={value.silences} changed={read.again} />
        </>
      )}
      {silencing.value && value ? (
        <Silencing
          of={silencing.value}
          alerts={value.alerts}
          end={(made) => {
            silencing.value = null;
            if (made) read.again();
          }}
        />
      ) : null}
    </>
  );
}
