// Parts of both views of logs: the live lines of several tasks, and the whole log of one.
import { signal } from "@preact/signals";
import { place, setQuery } from "./route";
import { t } from "./text";
import type { JobDetail } from "./types";

/** Whether lines are wrapped, and whether their times are shown. */
export const wrap = signal(localStorage.getItem("wrap") !== "false");
export const times = signal(false);

/** The classes of the element with the lines. */
export function screenClass(): string {
  return `screen ${wrap.value ? "wraps" : ""} ${times.value ? "timed" : ""}`;
}

/** The choice of a task. */
export function TaskChoice({ d, task }: { d: JobDetail; task: string }) {
  return (
    <select aria-label={t("task")} value={task} onChange={(e) => setQuery({ task: e.currentTarget.value || undefined, at: undefined })}>
      <option value="">{t("allTasks")}</option>
      {(d.taskList ?? []).map((x) => (
        <option key={`${x.role}[${x.index}]`} value={`${x.role}[${x.index}]`}>
          {x.role}[{x.index}]{x.node ? ` · ${x.node}` : ""}
        </option>
      ))}
    </select>
  );
}

function Tick({ label, checked, change }: { label: string; checked: boolean; change: (to: boolean) => void }) {
  return (
    <label class="tick">
      <input type="checkbox" checked={checked} onChange={(e) => change(e.currentTarget.checked)} /> {label}
    </label>
  );
}

/** The switches of a log. */
export function Ticks() {
  const previous = place.value.query.get("previous") === "true";
  return (
    <>
      <Tick label={t("previous")} checked={previous} change={(to) => setQuery({ previous: to ? "true" : undefined, at: undefined })} />
      <Tick label={t("times")} checked={times.value} change={(to) => (times.value = to)} />
      <Tick
        label={t("wrap")}
        checked={wrap.value}
        change={(to) => {
          wrap.value = to;
          localStorage.setItem("wrap", String(to));
        }}
      />
    </>
  );
}
