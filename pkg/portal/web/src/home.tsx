// The first page: the jobs of the person, and where GPUs are free.
import { useEffect, useMemo } from "preact/hooks";
import { call, lost } from "./api";
import { Head, Row } from "./jobs";
import { useCluster } from "./cluster";
import { list } from "./list";
import { GPUMap, Legend } from "./map";
import { useRead } from "./read";
import { address, go } from "./route";
import { me } from "./session";
import { curl } from "./shell";
import { t } from "./text";
import type { SchedulerApiVirtualCluster, StatusMachine, V3ApiVirtualClusters } from "./types";
import { Bar, Icon, Loading, Menu, Problem, copy } from "./ui";

const refresh = 15_000; // milliseconds

export function VC({ v }: { v: SchedulerApiVirtualCluster }) {
  const onlyCPU = v.guaranteed === 0 && v.cpuCells !== undefined;
  const { guaranteed, used, free, bad, opportunistic } = onlyCPU ? v.cpuCells! : v;
  const largest = Math.max(0, ...(v.freeByLevel ?? []).filter((l) => l.count > 0).map((l) => l.gpus));
  return (
    <article class="vc">
      <header>
        <a href={address(["jobs"], { vc: v.name, state: "active" })}>{v.name}</a>
        <span class={v.waitingGangs ? "waits" : "faint"}>{v.waitingGangs ? t("waitingJobs", { n: v.waitingGangs }) : t("nobodyWaits")}</span>
      </header>
      <p class="amount">
        <b>{t("free", { n: free })}</b> <span class="faint">{t(onlyCPU ? "ofCPU" : "ofTotal", { n: guaranteed })}</span>
      </p>
      <Bar
        total={guaranteed}
        label={t("usage", { used, free, bad })}
        parts={[
          { n: used, class: "used" },
          { n: Math.max(0, guaranteed - used - free - bad), class: "lent" },
          { n: bad, class: "bad" },
        ]}
      />
      <p class="faint small">
        {onlyCPU ? null : largest > 0 ? t("largest", { n: largest }) : v.freeByLevel ? t("largestNone") : null}
        {bad > 0 ? <span class="broken"> {t("broken", { n: bad })}</span> : null}
        {opportunistic > 0 ? <span> {t("opportunistic", { n: opportunistic })}</span> : null}
      </p>
    </article>
  );
}

/** The map of the machines, as far as there are GPUs. */
function Map({ machines }: { machines: StatusMachine[] }) {
  const those = machines.filter((m) => m.gpus?.length);
  if (those.length === 0) return null;
  return (
    <>
      <header class="part">
        <h2>{t("gpuMap")}</h2>
        <a href={address(["machines"])}>{t("machines")}</a>
      </header>
      <GPUMap machines={those} by="owner" fit={260} largest={14} open={(name) => go(address(["machines"], { machine: name }))} />
      <Legend machines={those} by="owner" />
    </>
  );
}

export function VCs() {
  const { value: all, error } = useRead<V3ApiVirtualClusters>("", (signal) => call("GET /api/v3/virtual-clusters", { signal }), refresh);
  const items = all.value?.items ?? [];
  return (
    <>
      {error.value ? <Problem of={error.value} /> : null}
      {all.value?.note ? <p class="note">{all.value.note}</p> : null}
      {all.value?.problem ? <p class="note">{all.value.problem}</p> : null}
      {!all.value && !error.value ? <Loading /> : null}
      {all.value && items.length === 0 ? <p class="empty">{t("noVCs")}</p> : null}
      <div class="vcs">
        {items.map((v) => (
          <VC key={v.name} v={v} />
        ))}
      </div>
    </>
  );
}

/** How many jobs the first page has. */
const size = 15;

export function Home() {
  const user = me.value!.name;
  const jobs = useMemo(() => list({ user }, size), [user]);
  const { cluster } = useCluster("machines");
  useEffect(() => {
    document.title = "paictl";
    return () => {
      jobs.end();
      lost.value = null;
    };
  }, [jobs]);
  const rows = jobs.rows.value?.slice(0, size);
  return (
    <section class="page">
      <header class="top">
        <h1>{t("hello", { name: me.value!.displayName || user })}</h1>
        <span class="grow" />
        <Menu
          label={t("more")}
          icon="more"
          items={[
            { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl job list") },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/jobs", { query: { user } })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
          ]}
        />
        <a class="button primary" href={address(["submit"])}>
          <Icon name="plus" /> {t("newJob")}
        </a>
      </header>
      <div class="two">
      <section>
      <header class="part">
        <h2>{t("myJobs")}</h2>
        <a href={address(["jobs"], { user })}>{t("allMine")}</a>
      </header>
      {jobs.error.value ? <Problem of={jobs.error.value} /> : null}
      {!rows ? (
        jobs.error.value ? null : <Loading />
      ) : rows.length === 0 ? (
        <div class="empty">
          <p>{t("noJobs")}</p>
          <p class="faint">{t("noJobsHint")}</p>
        </div>
      ) : (
        <table class="rows jobs">
          <Head />
          <tbody>
            {rows.map((r) => (
              <Row key={r.uid} r={r} />
            ))}
          </tbody>
        </table>
      )}
      </section>
      <section>
      <header class="part">
        <h2>{t("vcs")}</h2>
      </header>
      <VCs />
      <Map machines={cluster.value?.machines ?? []} />
      </section>
      </div>
    </section>
  );
}
