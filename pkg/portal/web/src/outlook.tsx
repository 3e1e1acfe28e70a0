// The prediction for a job if it were submitted now, and its cost.
import { t } from "./text";
import type { JobOutlook, V3SubmitOut } from "./types";
import { Icon } from "./ui";

const mostNamed = 4; // machines

function machines(o: JobOutlook): string {
  const names = o.machines ?? [];
  return names.length ? ": " + names.slice(0, mostNamed).join(", ") + (names.length > mostNamed ? " …" : "") : "";
}

function says(o: JobOutlook, of: V3SubmitOut): string {
  const on = { n: o.machineCount ?? 0, machines: machines(o), why: o.reason ?? "" };
  const some = o.startingTasks ? t("outlook.some", { ...on, starting: o.startingTasks, tasks: of.tasks }) + " " : "";
  switch (o.verdict) {
    case "starts":
      if (o.startingTasks) return t("outlook.atLeast", { starting: o.startingTasks, tasks: of.tasks });
      return o.machineCount ? t(o.machineCount === 1 ? "outlook.startsOnOne" : "outlook.startsOn", on) : t("outlook.starts");
    case "preempts":
      return some + t("outlook.preempts", { n: o.preempted ?? 0 });
    case "waits":
      return some + (o.position ? t("outlook.queue", { ...on, position: o.position, of: o.queueLength ?? o.position, vc: of.virtualCluster }) : t("outlook.waits", on));
    case "never":
      return t("outlook.never", on);
  }
  return t("outlook.unknown", on);
}

const looks: Record<string, ["good" | "warn" | "bad" | "faint", "check" | "queue" | "warn"]> = { starts: ["good", "check"], preempts: ["warn", "warn"], waits: ["warn", "queue"], never: ["bad", "warn"] };

export function Outlook({ of }: { of: V3SubmitOut }) {
  const o = of.outlook;
  if (!o) return null;
  const [look, icon] = looks[o.verdict] ?? ["faint", "queue"];
  const per = (o.largest?.gpusPerPod ?? 0) + (o.largest?.cpuCellsPerPod ?? 0);
  return (
    <div class="outlook" data-verdict={o.verdict}>
      <p class={look}>
        <Icon name={icon} /> {says(o, of)}
      </p>
      {o.after?.length ? <p class="faint">{t("outlook.after", { jobs: o.after.join(", ") })}</p> : null}
      {o.largest && (o.verdict !== "starts" || o.largest.pods > of.tasks) ? <p class="faint">{t(o.largest.cpuCellsPerPod ? "outlook.largestCPU" : "outlook.largest", { tasks: o.largest.pods, n: per })}</p> : null}
      {o.gpus > 0 ? <p class="faint">{o.gpuHours != null ? t("outlook.hours", { hours: o.gpuHours, gpus: o.gpus }) : t("outlook.hourly", { gpus: o.gpus })}</p> : null}
    </div>
  );
}
