// The queue of a virtual cluster, the next job first.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "./api";
import { source, useCluster } from "./cluster";
import { VC } from "./home";
import { csv } from "./list";
import { Sources } from "./machines";
import { Metrics, Opened, type Span } from "./metrics";
import { place, setQuery, address } from "./route";
import { me } from "./session";
import { curl, quoted } from "./shell";
import { t } from "./text";
import type { JobWaitingGang } from "./types";
import { Ago, Icon, Loading, Menu, Problem, copy, save } from "./ui";

const columns: [string, (g: JobWaitingGang) => unknown][] = [
  ["position", (g) => g.positionInVC],
  ["job", (g) => g.job],
  ["user", (g) => g.user],
  ["gpus", (g) => g.gpus],
  ["milliCPU", (g) => g.milliCPU],
  ["memoryMB", (g) => g.memoryMB],
  ["tasks", (g) => g.pods],
  ["priority", (g) => g.priority],
  ["since", (g) => g.since],
  ["reason", (g) => g.reason],
];

/** How much a gang wants. */
function wants(g: JobWaitingGang): string {
  if (g.gpus > 0) return t("wantsGPUs", { n: g.gpus });
  if (g.shareOfGPUs) return t("wantsShare", { n: g.shareOfGPUs });
  return g.milliCPU ? t("wantsCPU", { n: g.milliCPU / 1000 }) : "–";
}

function OverTime({ vc }: { vc: string }) {
  const span = useSignal<Span>("1d");
  const path = { vc };
  return (
    <Metrics
      id={vc}
      span={span.value}
      choose={(x) => (span.value = x)}
      all="30d"
      live
      read={(query, signal) => call("GET /api/v3/virtual-clusters/{vc}/metrics", { path, query: { since: query.since }, signal })}
      command={`paictl vc metrics ${quoted(vc)}`}
      curl={(query) => curl("GET /api/v3/virtual-clusters/{vc}/metrics", { path, query })}
    />
  );
}

export function QueuePage() {
  const { cluster, error } = useCluster("virtualClusters");
  useEffect(() => {
    document.title = t("queue") + " – paictl";
  }, []);
  const c = cluster.value;
  const all = c?.virtualClusters ?? [];
  const asked = place.value.query.get("vc");
  const busiest = [...all].sort((a, b) => b.waitingGangs - a.waitingGangs)[0];
  const v = all.find((x) => x.name === asked) ?? (asked ? undefined : busiest);
  const command = "paictl job queue" + (v ? " --vc " + quoted(v.name) : "");
  const gangs = v?.queue ?? [];
  return (
    <section class="page">
      <header class="top">
        <h1>{t("queue")}</h1>
        <span class="grow" />
        <Menu
          label={t("more")}
          icon="more"
          items={[
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/queue", { query: { vc: v?.name } })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
          ]}
        />
        <button type="button" title={t("csvMore")} disabled={!v} onClick={() => save("queue.csv", [csv(gangs, columns)], "text/csv;charset=utf-8")}>
          <Icon name="down" /> {t("csv")}
        </button>
      </header>
      {error.value ? <Problem of={error.value} /> : null}
      {c ? <Sources c={c} names={["scheduler"]} /> : null}
      {!c ? error.value ? null : <Loading /> : null}
      {all.length > 0 ? (
        <div class="filters">
          <div class="segments" role="group" aria-label={t("vc")}>
            {all.map((x) => (
              <button key={x.name} type="button" aria-pressed={x.name === v?.name} onClick={() => setQuery({ vc: x.name })}>
                {x.name} {x.waitingGangs ? <span class="count">{x.waitingGangs}</span> : null}
              </button>
            ))}
          </div>
        </div>
      ) : c && source(c, "scheduler")?.state === "current" ? (
        <p class="empty">{t("noVCs")}</p>
      ) : null}
      {asked && c && !v ? <p class="empty">{t("noSuchVC", { name: asked })}</p> : null}
      {v ? (
        <div class="queue">
          <div class="vcs">
            <VC v={v} />
          </div>
          <Opened key={v.name} label={t("overTime")}>
            {() => <OverTime vc={v.name} />}
          </Opened>
          {gangs.length === 0 ? (
            <p class="empty">{t("nobodyWaits")}</p>
          ) : (
            <table class="rows">
              <thead>
                <tr>
                  <th class="num">#</th>
                  <th>{t("name")}</th>
                  <th>{t("wants")}</th>
                  <th class="num wide">{t("tasks")}</th>
                  <th class="num wide">{t("priority")}</th>
                  <th>{t("waitsSince")}</th>
                  <th class="reason">{t("waitsFor")}</th>
                </tr>
              </thead>
              <tbody>
                {gangs.map((g) => {
                  const [user, name] = g.job.split("/");
                  const mine = g.user && g.user === me.value?.name;
                  return (
                    <tr key={g.positionInVC + g.job + g.group} class={mine ? "mine" : ""}>
                      <td class="num">{g.positionInVC}</td>
                      <td>{user && name ? <a href={address(["jobs", user, name])}>{g.job}</a> : <span class="faint">{g.job}</span>}</td>
                      <td>{wants(g)}</td>
                      <td class="num wide">{g.pods}</td>
                      <td class="num wide">{g.priority}</td>
                      <td>
                        <Ago time={g.since} />
                      </td>
                      <td class="reason">{g.reason}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          )}
        </div>
      ) : null}
    </section>
  );
}
