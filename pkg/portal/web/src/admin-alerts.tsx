// The alerts that fire.
import { Segments, Top } from "./admin-parts";
import { call } from "./api";
import { csv } from "./list";
import { useRead } from "./read";
import { place } from "./route";
import { curl } from "./shell";
import { maybe, t } from "./text";
import type { StatusAlert } from "./types";
import { Ago, Icon, Loading, Problem, save } from "./ui";

/** The labels that name what an alert is about. */
const objects = ["node", "instance", "job_name", "pod", "service", "namespace", "gpu", "minor_number"];

const family: Record<string, string> = { critical: "bad", warning: "wait" };

function about(a: StatusAlert): string {
  return objects.flatMap((k) => (a.labels?.[k] ? [`${k}=${a.labels[k]}`] : [])).join(" ");
}

/** A rule's address may be anything: only one of the web becomes a link. */
function linkable(address: string | undefined): boolean {
  return /^https?:\/\//i.test(address ?? "");
}

const columns: [string, (a: StatusAlert) => unknown][] = [
  ["name", (a) => a.name],
  ["severity", (a) => a.severity],
  ["since", (a) => a.since],
  ["silenced", (a) => a.silenced ?? false],
  ["about", about],
  ["summary", (a) => a.summary],
  ["runbook", (a) => a.runbook],
];

export function Alerts() {
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/status", { signal }), 15_000);
  const choice = place.value.query.get("severity") ?? "";
  const rows = (value.value?.alerts ?? []).filter((a) => !choice || (choice === "silenced" ? a.silenced : a.severity === choice));
  const source = value.value?.sources?.find((s) => s.name === "alerts");
  const missing = source && source.state !== "current";
  return (
    <>
      <Top title={t("admin.tab.alerts")} paictl="paictl status -o json | jq .alerts" curl={curl("GET /api/v3/status", {})}>
        <button type="button" title={t("csvMore")} disabled={!value.value} onClick={() => save("alerts.csv", [csv(rows, columns)], "text/csv;charset=utf-8")}>
          <Icon name="down" /> {t("csv")}
        </button>
      </Top>
      {missing ? null : (
        <div class="filters">
          <Segments label={t("admin.severity")} of="severity" value={choice} choices={[["", t("state.all")], ...["critical", "warning", "info", "silenced"].map((x): [string, string] => [x, t(`admin.severity.${x}` as "admin.severity.info")])]} />
        </div>
      )}
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {missing ? (
        <p class="note">
          {t("admin.alertsMissing", { why: source.message || source.state })} {source.hint ? <span class="faint">{source.hint}</span> : null}
        </p>
      ) : null}
      {!value.value ? (
        error.value ? null : <Loading />
      ) : rows.length === 0 ? (
        missing ? null : <p class="empty">{t(choice ? "admin.noAlertHere" : "admin.noAlert")}</p>
      ) : (
        <table class="rows alerts">
          <thead>
            <tr>
              <th>{t("admin.alert")}</th>
              <th class="c-time">{t("admin.since")}</th>
              <th>{t("admin.summary")}</th>
              <th class="wide">{t("admin.runbook")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((a) => (
              <tr key={a.name + a.since + JSON.stringify(a.labels)}>
                <td>
                  <span class={`state ${a.silenced ? "off" : (family[a.severity] ?? "run")}`}>
                    <i class="dot" />
                    <b>{a.name}</b>
                  </span>
                  <div class="faint small">
                    {maybe("admin.severity." + a.severity, a.severity)}
                    {a.silenced ? ` · ${t("admin.severity.silenced")}` : ""}
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
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
