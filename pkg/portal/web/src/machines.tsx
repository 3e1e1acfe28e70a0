// The machines of the cluster, and the map of their GPUs.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { call } from "./api";
import { broken, byName, down, source, troubled, useCluster } from "./cluster";
import { useKeys } from "./keys";
import { csv } from "./list";
import { GPUMap, Legend, explain, ways, type By } from "./map";
import { Metrics, Opened, type Span } from "./metrics";
import { address, go, place, setQuery } from "./route";
import { later } from "./later";
import { me } from "./session";
import { curl, quoted } from "./shell";
import { maybe, t } from "./text";
import type { StatusCluster, StatusGPU, StatusMachine } from "./types";
import { Ago, Icon, Loading, Menu, Problem, copy, save } from "./ui";

const MachineActions = later(() => import("./actions").then((file) => file.MachineActions));
const Requesting = later(() => import("./actions").then((file) => file.Requesting));

const shows = ["all", "free", "troubled"] as const;

function chosen(m: StatusMachine, show: string, word: string, sku: string): boolean {
  if (sku && m.sku !== sku) return false;
  if (word && !m.name.toLowerCase().includes(word.toLowerCase())) return false;
  if (show === "free") return !down(m) && (m.gpus ?? []).some((g) => !g.owner && !broken(g));
  return show !== "troubled" || troubled(m);
}

const columns: [string, (m: StatusMachine) => unknown][] = [
  ["name", (m) => m.name],
  ["state", (m) => m.state],
  ["cordoned", (m) => !!m.cordoned],
  ["cordonReason", (m) => m.cordonReason],
  ["pressure", (m) => m.pressure?.join(" ")],
  ["sku", (m) => m.sku],
  ["gpus", (m) => m.gpus?.length ?? 0],
  ["gpusUsed", (m) => m.gpus?.filter((g) => g.owner).length ?? 0],
  ["gpusBroken", (m) => m.gpus?.filter(broken).length ?? 0],
  ["milliCPU", (m) => m.cpu.total],
  ["milliCPUUsed", (m) => m.cpu.used],
  ["memoryMiB", (m) => m.memory.total],
  ["memoryMiBUsed", (m) => m.memory.used],
  ["pods", (m) => m.pods],
  ["since", (m) => m.since],
];

/** How a machine is, in one word. */
export function MachineState({ m }: { m: StatusMachine }) {
  const key = m.state !== "Ready" ? "bad" : m.cordoned || m.pressure?.length ? "wait" : "good";
  return (
    <span class={`state ${key}`}>
      <i class="dot" />
      {maybe("machine." + m.state, m.state)}
      {m.cordoned ? <span class="faint"> {t("cordoned")}</span> : null}
    </span>
  );
}

/** How many GPUs of a machine are used. */
function GPUs({ m }: { m: StatusMachine }) {
  const all = m.gpus ?? [];
  if (all.length === 0) return <span class="faint">–</span>;
  const sick = all.filter(broken).length;
  return (
    <>
      {all.filter((g) => g.owner).length} / {all.length}
      {sick ? <span class="broken"> {t("broken", { n: sick })}</span> : null}
    </>
  );
}

function percent(a: { used: number; total: number }): string {
  return a.total ? Math.round((100 * a.used) / a.total) + " %" : "–";
}

/** The numbers of the cluster in one line. */
export function Counts({ c }: { c: StatusCluster }) {
  const n = c.counts;
  return (
    <p class="numbers">
      <span>
        <b>{n.MachinesReady}</b> {t("ofMachines", { n: n.Machines })}
      </span>
      <span>
        <b>{n.GPUsUsed}</b> {t("ofGPUs", { n: n.GPUs })}
      </span>
      {n.GPUsSick ? <span class="broken">{t("broken", { n: n.GPUsSick })}</span> : null}
    </p>
  );
}

/** Says which parts of the state aren't current. */
export function Sources({ c, names }: { c: StatusCluster; names: string[] }) {
  const old = names.map((n) => source(c, n)).filter((s) => s && s.state !== "current");
  return (
    <>
      {old.map((s) => (
        <p key={s!.name} class="note">
          {t("sourceIs", { name: maybe("source." + s!.name, s!.name), state: maybe("sourceState." + s!.state, s!.state) })} {s!.since && s!.state === "stale" ? <Ago time={s!.since} /> : null} {s!.message}
          {s!.hint ? <span class="faint"> {s!.hint}</span> : null}
        </p>
      ))}
    </>
  );
}

export function Machines() {
  const { cluster, error } = useCluster("machines");
  const q = place.value.query;
  const by = (ways as string[]).includes(q.get("by") ?? "") ? (q.get("by") as By) : "use";
  const show = q.get("show") ?? "all";
  const [word, sku, open, wall] = [q.get("find") ?? "", q.get("sku") ?? "", q.get("machine"), q.get("view") === "wall"];
  const search = useRef<HTMLInputElement>(null);
  const c = cluster.value;
  const skus = useMemo(() => [...new Set((c?.machines ?? []).map((m) => m.sku ?? "").filter(Boolean))].sort(), [c?.machines]);
  const machines = useMemo(() => (c?.machines ?? []).filter((m) => chosen(m, show, word, sku)).sort(byName), [c?.machines, show, word, sku]);
  useEffect(() => {
    document.title = t("machines") + " – paictl";
  }, []);
  useEffect(() => {
    document.documentElement.classList.toggle("wall", wall);
    return () => document.documentElement.classList.remove("wall");
  }, [wall]);
  useKeys({
    "/": () => search.current?.focus(),
    Escape: () => (open ? setQuery({ machine: undefined }) : wall ? setQuery({ view: undefined }) : undefined),
  });
  const one = open ? c?.machines?.find((m) => m.name === open) : undefined;
  return (
    <section class="page machines">
      <header class="top">
        <h1>{wall ? c?.name : t("machines")}</h1>
        {c ? <Counts c={c} /> : null}
        <span class="grow" />
        <div class="segments" role="group" aria-label={t("mapBy")}>
          {ways.map((way) => (
            <button key={way} type="button" aria-pressed={by === way} onClick={() => setQuery({ by: way === "use" ? undefined : way })}>
              {t(("mapBy." + way) as "mapBy.use")}
            </button>
          ))}
        </div>
        <button type="button" title={t("wallMore")} onClick={() => setQuery({ view: wall ? undefined : "wall" })}>
          <Icon name={wall ? "close" : "page"} /> {t(wall ? "wallEnd" : "wall")}
        </button>
        {wall ? null : (
          <Menu
            label={t("more")}
            icon="more"
            items={[
              { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl status --once") },
              { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/status", { query: { parts: ["machines"] } })) },
              { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
            ]}
          />
        )}
        {wall ? null : (
          <button type="button" title={t("csvMore")} disabled={!c} onClick={() => save("machines.csv", [csv(machines, columns)], "text/csv;charset=utf-8")}>
            <Icon name="down" /> {t("csv")}
          </button>
        )}
      </header>
      {wall ? null : (
        <div class="filters">
          <label class="search">
            <Icon name="search" />
            <input ref={search} type="search" placeholder={t("searchMachines")} aria-label={t("searchMachines")} defaultValue={word} onInput={(e) => setQuery({ find: e.currentTarget.value || undefined })} onKeyDown={(e) => e.key === "Escape" && e.currentTarget.blur()} />
            <kbd>/</kbd>
          </label>
          <div class="segments" role="group" aria-label={t("state")}>
            {shows.map((name) => (
              <button key={name} type="button" aria-pressed={show === name} onClick={() => setQuery({ show: name === "all" ? undefined : name })}>
                {t(("show." + name) as "show.all")}
              </button>
            ))}
          </div>
          {skus.length > 1 ? (
            <select aria-label={t("sku")} value={sku} onChange={(e) => setQuery({ sku: e.currentTarget.value || undefined })}>
              <option value="">{t("anySKU")}</option>
              {skus.map((s) => (
                <option key={s} value={s}>
                  {s}
                </option>
              ))}
            </select>
          ) : null}
        </div>
      )}
      {error.value ? <Problem of={error.value} /> : null}
      {c ? <Sources c={c} names={by === "use" ? ["api", "prometheus"] : by === "owner" ? ["api", "jobs"] : ["api"]} /> : null}
      {!c ? (
        error.value ? null : <Loading />
      ) : machines.length === 0 ? (
        <div class="empty">
          <p>{c.machines?.length ? t("noMachineMatch") : t("noMachines")}</p>
          {c.machines?.length ? (
            <button type="button" onClick={() => go(address(["machines"]))}>
              {t("clearFilters")}
            </button>
          ) : null}
        </div>
      ) : (
        <>
          <GPUMap machines={machines} by={by} fit={wall ? innerHeight - 170 : 380} largest={wall ? 44 : 20} open={(name) => setQuery({ machine: name })} />
          <Legend machines={machines} by={by} />
          {wall ? null : <List machines={machines} />}
        </>
      )}
      {one ? <One m={one} close={() => setQuery({ machine: undefined })} /> : null}
    </section>
  );
}

/** How many machines the table has; the map has all. */
const most = 200;

function List({ machines }: { machines: StatusMachine[] }) {
  const asked = useSignal<{ machine: string; operation: "cordon" | "uncordon" | "drain" } | null>(null);
  const may = me.value?.grants.administrator;
  const items = (m: StatusMachine) => (m.cordoned ? (["uncordon", "drain"] as const) : (["cordon", "drain"] as const)).map((operation) => ({ label: t(`machine.${operation}`), run: () => (asked.value = { machine: m.name, operation }) }));
  return (
    <>
      <table class="rows">
        <thead>
          <tr>
            <th>{t("name")}</th>
            <th>{t("state")}</th>
            <th>{t("sku")}</th>
            <th class="num">{t("gpus")}</th>
            <th class="num wide">{t("cpuUse")}</th>
            <th class="num wide">{t("memoryUse")}</th>
            <th class="num wide">{t("pods")}</th>
            <th class="wide">{t("sinceTime")}</th>
            {may ? <th aria-label={t("more")} /> : null}
          </tr>
        </thead>
        <tbody>
          {machines.slice(0, most).map((m) => (
            <tr key={m.name} data-machine={m.name}>
              <td>
                <a class="whole" href={address(["machines"], { ...Object.fromEntries(place.value.query), machine: m.name })}>
                  {m.name}
                </a>
              </td>
              <td title={m.message}>
                <MachineState m={m} />
              </td>
              <td>{m.sku}</td>
              <td class="num">
                <GPUs m={m} />
              </td>
              <td class="num wide">{percent(m.cpu)}</td>
              <td class="num wide">{percent(m.memory)}</td>
              <td class="num wide">{m.pods}</td>
              <td class="wide">
                <Ago time={m.since} />
              </td>
              {may ? (
                <td class="above">
                  <Menu label={t("machine.operations", { name: m.name })} icon="more" items={items(m)} />
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
      <footer class="under">
        <span class="faint">{t(machines.length > most ? "machinesMore" : "machinesShown", { n: machines.length, most })}</span>
      </footer>
      {asked.value ? <Requesting key={asked.value.machine + asked.value.operation} {...asked.value} end={() => (asked.value = null)} /> : null}
    </>
  );
}

function Held({ g }: { g: StatusGPU }) {
  const o = g.owner;
  if (!o) return <span class="faint">{broken(g) ? "" : t("mapFree")}</span>;
  const [user, name] = (o.job ?? "").split("/");
  return (
    <>
      {user && name ? <a href={address(["jobs", user, name])}>{o.job}</a> : <span class="faint">{o.pod || t("mapSomeone")}</span>} {o.task ? <span class="faint">{o.task}</span> : null}
    </>
  );
}

function OverTime({ machine }: { machine: string }) {
  const span = useSignal<Span>("6h");
  const path = { machine };
  return (
    <Metrics
      id={machine}
      span={span.value}
      choose={(x) => (span.value = x)}
      all="30d"
      live
      height={120}
      read={(query, signal) => call("GET /api/v3/machines/{machine}/metrics", { path, query: { since: query.since }, signal })}
      command={`paictl node metrics ${quoted(machine)}`}
      curl={(query) => curl("GET /api/v3/machines/{machine}/metrics", { path, query })}
    />
  );
}

/** One machine with its GPUs. */
function One({ m, close }: { m: StatusMachine; close: () => void }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.focus(), [m.name]);
  const facts: [string, string | undefined][] = [
    [t("sku"), m.sku],
    [t("roles"), m.roles?.join(", ")],
    [t("machineAddress"), m.address],
    [t("gpuModel"), [...new Set((m.gpus ?? []).map((g) => g.model).filter(Boolean))].join(", ")],
    [t("driver"), m.driver],
    ["Kubernetes", m.kubelet],
    [t("kernel"), m.kernel],
    [t("os"), m.os],
  ];
  return (
    <aside class="drawer" ref={box} tabIndex={-1} aria-label={m.name}>
      <header class="top">
        <h2>{m.name}</h2>
        <MachineState m={m} />
        <span class="grow" />
        <button type="button" class="square" aria-label={t("close")} title={t("close")} onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      {m.message ? <p class="note">{m.message}</p> : null}
      {m.cordoned && (m.cordonedBy || m.cordonReason) ? (
        <p class="note">
          {m.cordonedBy ? t("cordonedBy", { name: m.cordonedBy }) : t("cordoned")}
          {m.cordonReason ? ": " + m.cordonReason : ""}
        </p>
      ) : null}
      {m.hint ? <p class="faint small">{m.hint}</p> : null}
      {m.pressure?.length ? <p class="note">{m.pressure.join(", ")}</p> : null}
      <dl class="facts small">
        {facts.map(([name, value]) =>
          value ? (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ) : null,
        )}
        <div>
          <dt>{t("cpuUse")}</dt>
          <dd>
            {t("coresOf", { used: m.cpu.used / 1000, of: m.cpu.total / 1000 })}
          </dd>
        </div>
        <div>
          <dt>{t("memoryUse")}</dt>
          <dd>{t("gibOf", { used: Math.round(m.memory.used / 102.4) / 10, of: Math.round(m.memory.total / 102.4) / 10 })}</dd>
        </div>
      </dl>
      {m.gpus?.length ? (
        <table class="rows small">
          <thead>
            <tr>
              <th class="num">GPU</th>
              <th>{t("health")}</th>
              <th>{t("holder")}</th>
              <th class="num">{t("useNow")}</th>
            </tr>
          </thead>
          <tbody>
            {m.gpus.map((g) => (
              <tr key={g.index} title={explain(m, g)}>
                <td class="num">{g.index}</td>
                <td class={broken(g) ? "broken" : ""}>
                  {maybe("gpu." + g.health, g.health)}
                  {g.reason ? <div class="faint">{g.reason}</div> : null}
                </td>
                <td>
                  <Held g={g} />
                </td>
                <td class="num">{g.use ? Math.round(g.use.utilisation) + " %" : <span class="faint">–</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="faint">{t("noGPUs")}</p>
      )}
      <Opened key={m.name} label={t("overTime")}>
        {() => <OverTime machine={m.name} />}
      </Opened>
      {me.value?.grants.administrator ? (
        <>
          <p class="buttons">
            <button type="button" onClick={() => void copy("paictl node gpu list " + quoted(m.name))}>
              <Icon name="copy" /> paictl node gpu list
            </button>
          </p>
          <MachineActions key={m.name} m={m} />
        </>
      ) : null}
    </aside>
  );
}
