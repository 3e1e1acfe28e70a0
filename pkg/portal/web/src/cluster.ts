// The state of the cluster, as far as the person may see it. It follows the server.
import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { failure, lost, watchStatus, type Failure } from "./api";
import type { StatusCluster, StatusDelta, StatusGPU, StatusMachine, StatusSource } from "./types";

export type Part = "machines" | "virtualClusters" | "services" | "jobs" | "events" | "alerts";

export interface Following {
  cluster: Signal<StatusCluster | null>;
  error: Signal<Failure | null>;
}

/** Merges elements into a list by their keys. */
function merge<T>(list: T[] | null, news: T[] | undefined, gone: string[] | undefined, key: (x: T) => string): T[] {
  if (!news && !gone) return list ?? [];
  const known = new Map((list ?? []).map((x) => [key(x), x]));
  for (const x of news ?? []) known.set(key(x), x);
  for (const k of gone ?? []) known.delete(k);
  return [...known.values()];
}

/** Returns the state after a change. Parts that didn't change stay the same objects. */
export function apply(c: StatusCluster, d: StatusDelta): StatusCluster {
  return {
    ...c,
    at: d.at,
    verdict: d.verdict ?? c.verdict,
    counts: d.counts ?? c.counts,
    sources: d.sources ?? c.sources,
    virtualClusters: d.virtualClusters ?? c.virtualClusters,
    services: d.services ?? c.services,
    events: d.events ?? c.events,
    alerts: d.alerts ?? c.alerts,
    machines: merge(c.machines, d.machines, d.goneMachines, (m) => m.name),
    jobs: merge(c.jobs, d.jobs, d.goneJobs, (j) => j.uid),
  };
}

/** Follows parts of the cluster while a page is shown. */
export function useCluster(...parts: Part[]): Following {
  const out = useMemo<Following>(() => ({ cluster: signal(null), error: signal(null) }), []);
  useEffect(() => {
    const stop = new AbortController();
    watchStatus(
      parts,
      stop.signal,
      (c) => (out.cluster.value = c),
      (d) => out.cluster.value && (out.cluster.value = apply(out.cluster.value, d)),
    ).catch((e) => {
      if (!stop.signal.aborted) out.error.value = failure(e);
    });
    return () => {
      stop.abort();
      lost.value = null;
    };
  }, []);
  return out;
}

export function source(c: StatusCluster, name: string): StatusSource | undefined {
  return c.sources?.find((s) => s.name === name);
}

/** Reports whether a GPU can't be used. */
export function broken(g: StatusGPU): boolean {
  return g.health === "sick" || g.health === "missing";
}

/** Reports whether jobs can't get GPUs of a machine now. */
export function down(m: StatusMachine): boolean {
  return m.state !== "Ready" || !!m.cordoned;
}

/** Reports whether someone should look at a machine. */
export function troubled(m: StatusMachine): boolean {
  return m.state !== "Ready" || !!m.pressure?.length || (m.gpus ?? []).some(broken);
}

const names = new Intl.Collator("en", { numeric: true });

/** Orders machines by their names, gpu-2 before gpu-10. */
export function byName(a: { name: string }, b: { name: string }): number {
  return names.compare(a.name, b.name);
}
