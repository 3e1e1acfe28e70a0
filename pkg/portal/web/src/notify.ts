// Notifications of the browser when jobs of the person end.
import { signal } from "@preact/signals";
import { watchJobs } from "./api";
import { address, go } from "./route";
import { me } from "./session";
import { maybe, t } from "./text";
import type { ListingRow } from "./types";

const key = "notify";
const ends = ["succeeded", "failed", "stopped"];

/** Whether the person wants notifications in this browser, and the browser shows them. */
export const notifies = signal(possible() && Notification.permission === "granted" && localStorage.getItem(key) === "yes");

/** Reports whether the browser has notifications. Some have none, and phones only for installed pages. */
export function possible(): boolean {
  return "Notification" in window;
}

let stop: AbortController | null = null;

/** Turns notifications on or off. It returns a sentence if the browser refuses them. */
export async function setNotifies(on: boolean): Promise<string> {
  if (on && (await Notification.requestPermission()) !== "granted") return t("notifyRefused");
  localStorage.setItem(key, on ? "yes" : "no");
  notifies.value = on;
  follow();
  return "";
}

/** Follows the jobs of the person while notifications are on. */
export function follow(): void {
  stop?.abort();
  stop = null;
  const user = me.value?.name;
  if (!notifies.value || !user) return;
  stop = new AbortController();
  // States by uid. A job that began and ended between two connections isn't shown.
  let known: Map<string, string> | null = null;
  const see = (r: ListingRow) => {
    const before = known!.get(r.uid);
    known!.set(r.uid, r.state);
    if (before !== undefined && before !== r.state && ends.includes(r.state)) show(r);
  };
  watchJobs({ user, limit: 100 }, stop.signal, {
    whole(rows) {
      if (known) rows.forEach(see);
      else known = new Map(rows.map((r) => [r.uid, r.state]));
    },
    changed: (r) => known && (known.has(r.uid) ? see(r) : known.set(r.uid, r.state)),
    gone: (uid) => void known?.delete(uid),
  }).catch(() => {
    // The pages show why the server doesn't answer.
  });
}

function show(r: ListingRow): void {
  // One notification for a job, also with several tabs: they have the same tag.
  const n = new Notification(r.name, { body: maybe("state." + r.state, r.state), tag: r.uid + r.state });
  n.onclick = () => {
    window.focus();
    go(address(["jobs", r.user, r.name]));
    n.close();
  };
}
