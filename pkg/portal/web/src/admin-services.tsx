// The platform's services: which run, and what to do about the others.
import { Fragment } from "preact";
import { Command, Segments, Search, Top } from "./admin-parts";
import { call } from "./api";
import { csv } from "./list";
import { useRead } from "./read";
import { place, setQuery } from "./route";
import { curl, quoted } from "./shell";
import { maybe, t } from "./text";
import type { StateStatus } from "./types";
import { Ago, Icon, Loading, Problem, save } from "./ui";

const family: Record<string, string> = { ready: "good", starting: "run", failed: "bad", orphan: "wait", unknown: "wait" };

/** States that need no action. */
const calm = ["ready", "disabled", "not installed", "stopped"];

const columns: [string, (s: StateStatus) => unknown][] = [
  ["name", (s) => s.name],
  ["state", (s) => s.state],
  ["readyPods", (s) => s.readyPods],
  ["pods", (s) => s.pods],
  ["chart", (s) => s.chart],
  ["revision", (s) => s.revision],
  ["updated", (s) => s.updated],
  ["configuration", (s) => s.configuration],
  ["problems", (s) => s.problems?.map((p) => `${p.object}: ${p.message}`).join("; ")],
];

/** The commands that an operator may need for a service. The server can't run them: it may not read the releases. */
function commands(s: StateStatus): string[] {
  const name = quoted(s.name);
  if (["stopped", "not installed", "disabled"].includes(s.state)) return [s.hint || `paictl service start -n ${name}`];
  if (s.state === "orphan") return [`paictl service stop ${name}`];
  return [`paictl service status -n ${name}`, `paictl service logs ${name} -f`, `paictl service restart -n ${name} --force`, `paictl service stop ${name}`];
}

function Details({ s }: { s: StateStatus }) {
  return (
    <div class="open">
      {s.problems?.map((p, i) => (
        <div key={i} class="said">
          <p>
            <code>{p.object}</code> <b>{p.reason}</b>
          </p>
          <p>{p.message}</p>
          {p.hint ? (
            <ul class="remedy" aria-label={t("whatToDo")}>
              <li>{p.hint}</li>
            </ul>
          ) : null}
          {p.log?.length ? <pre tabIndex={0} class="code">{p.log.join("\n")}</pre> : null}
        </div>
      ))}
      {!s.problems?.length ? <p class="faint">{t("admin.noProblems")}</p> : null}
      <dl class="facts">
        {(
          [
            ["admin.namespace", s.namespace],
            ["admin.chart", s.chart],
            ["admin.revision", s.revision],
            ["admin.configuration", s.configuration],
            ["admin.installedBy", s.paictl && "paictl " + s.paictl],
          ] as const
        ).map(([key, x]) =>
          x ? (
            <div key={key}>
              <dt>{t(key)}</dt>
              <dd>{x}</dd>
            </div>
          ) : null,
        )}
      </dl>
      <Command lines={commands(s)} why={t("admin.serviceCommands")} />
    </div>
  );
}

export function Services() {
  const q = place.value.query;
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/services", { signal }), 10_000);
  const open = q.get("open");
  const word = (q.get("keyword") ?? "").toLowerCase();
  const choice = q.get("state") ?? "";
  const rows = (value.value?.items ?? []).filter((s) => (!word || s.name.toLowerCase().includes(word)) && (choice !== "trouble" || (s.problems?.length ?? 0) > 0 || !calm.includes(s.state)));
  return (
    <>
      <Top title={t("admin.tab.services")} paictl={"paictl service status" + (open ? " -n " + quoted(open) : "")} curl={curl("GET /api/v3/services", {})}>
        <button type="button" title={t("csvMore")} disabled={!value.value} onClick={() => save("services.csv", [csv(rows, columns)], "text/csv;charset=utf-8")}>
          <Icon name="down" /> {t("csv")}
        </button>
      </Top>
      <div class="filters">
        <Search label={t("admin.searchServices")} value={q.get("keyword") ?? ""} />
        <Segments
          label={t("state")}
          of="state"
          value={choice}
          choices={[
            ["", t("state.all")],
            ["trouble", t("admin.trouble")],
          ]}
        />
      </div>
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {value.value?.notes?.map((n) => (
        <p key={n.message} class="note">
          {n.message} {n.remedy ? <span class="faint">{n.remedy}</span> : null}
        </p>
      ))}
      {!value.value ? (
        error.value ? null : <Loading />
      ) : rows.length === 0 ? (
        <p class="empty">{t(choice || word ? "admin.noServiceHere" : "admin.noService")}</p>
      ) : (
        <table class="rows services">
          <thead>
            <tr>
              <th>{t("name")}</th>
              <th>{t("state")}</th>
              <th class="num">{t("admin.pods")}</th>
              <th class="wide">{t("admin.release")}</th>
              <th class="wide">{t("admin.configuration")}</th>
              <th class="c-time wide">{t("admin.updated")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((s) => (
              <Fragment key={s.name}>
                <tr>
                  <td class="c-name">
                    <button type="button" class="bare whole" aria-expanded={open === s.name} onClick={() => setQuery({ open: open === s.name ? undefined : s.name })}>
                      <Icon name={open === s.name ? "drop" : "chevron"} /> {s.name}
                    </button>
                  </td>
                  <td>
                    <span class={`state ${family[s.state] ?? "off"}`}>
                      <i class="dot" />
                      {maybe("admin.service." + s.state, s.state)}
                    </span>
                  </td>
                  <td class="num">{s.pods ? `${s.readyPods}/${s.pods}` : <span class="faint">–</span>}</td>
                  <td class="wide">
                    {s.chart} {s.revision ? <span class="faint">#{s.revision}</span> : null}
                  </td>
                  <td class="wide">{s.configuration === "up to date" ? <span class="faint">{t("admin.current")}</span> : s.configuration}</td>
                  <td class="c-time wide">{s.updated ? <Ago time={s.updated} /> : null}</td>
                </tr>
                {open === s.name ? (
                  <tr class="opened">
                    <td colSpan={6}>
                      <Details s={s} />
                    </td>
                  </tr>
                ) : s.problems?.length ? (
                  <tr class="why-row">
                    <td colSpan={6} class="long">
                      <code>{s.problems[0]!.object}</code> {s.problems[0]!.message}
                      {s.problems.length > 1 ? <span class="faint"> {t("admin.andMore", { n: s.problems.length - 1 })}</span> : null}
                    </td>
                  </tr>
                ) : null}
              </Fragment>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
