// The list of jobs.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { failure, lost } from "./api";
import { curl, quoted } from "./shell";
import { useKeys } from "./keys";
import { columns, csv, everything, list, type Filter } from "./list";
import { address, go, place, setQuery } from "./route";
import { me, ownVCs } from "./session";
import { maybe, t } from "./text";
import { duration, now } from "./time";
import type { ListingRow } from "./types";
import { Ago, Icon, Loading, Menu, Problem, State, copy, save, toast } from "./ui";

/** How many jobs a page of the list has. */
const size = 50;

/** Choices of the filter by state, and the states that they mean. */
const choices: Record<string, string[]> = {
  all: [],
  active: ["waiting", "queued", "starting", "barrier", "running", "stopping", "retry"],
  running: ["running", "starting", "barrier"],
  waiting: ["waiting", "queued", "retry"],
  succeeded: ["succeeded"],
  failed: ["failed"],
  stopped: ["stopped"],
};

/** How long a job has run, or ran. */
export function ran(r: { started?: string; completed?: string }): string {
  if (!r.started) return "";
  return duration((r.completed ? Date.parse(r.completed) : now.value) - Date.parse(r.started));
}

export function Row({ r, chosen, owner }: { r: ListingRow; chosen?: boolean; owner?: boolean }) {
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (chosen) row.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <tr ref={row} class={chosen ? "chosen" : ""} data-job={r.user + "/" + r.name}>
      <td class="c-state">
        <State state={r.state} position={r.position} deleted={r.deleted} />
      </td>
      <td class="c-name">
        <a class="whole" href={address(["jobs", r.user, r.name])} title={r.name}>
          {r.name}
        </a>
        {r.tags?.map((tag) => (
          <span key={tag} class="tag">
            {tag}
          </span>
        ))}
      </td>
      {owner ? <td class="c-owner">{r.user}</td> : null}
      <td class="c-vc">{r.virtualCluster}</td>
      <td class="num c-gpus">{r.gpus > 0 ? r.gpus : <span class="faint">{r.gpus < 0 ? "?" : "–"}</span>}</td>
      <td class="num c-tasks">{r.tasks}</td>
      <td class="num c-duration">{ran(r)}</td>
      <td class="c-time">
        <Ago time={r.submitted} />
      </td>
    </tr>
  );
}

export function Head({ owner }: { owner?: boolean }) {
  return (
    <thead>
      <tr>
        <th class="c-state">{t("state")}</th>
        <th class="c-name">{t("name")}</th>
        {owner ? <th class="c-owner">{t("owner")}</th> : null}
        <th class="c-vc">{t("vc")}</th>
        <th class="num c-gpus">{t("gpus")}</th>
        <th class="num c-tasks">{t("tasks")}</th>
        <th class="num c-duration">{t("duration")}</th>
        <th class="c-time">{t("submitted")}</th>
      </tr>
    </thead>
  );
}

/** Reads the filter from the address. A state may also be one of the server's, from a link of OpenPAI's portal. */
function filterOf(q: URLSearchParams): Filter & { choice: string } {
  const choice = q.get("state") ?? "all";
  return { choice, state: Object.hasOwn(choices, choice) ? choices[choice] : [choice], user: q.get("user") ?? undefined, vc: q.get("vc") ?? undefined, keyword: q.get("keyword") ?? undefined };
}

export function Jobs() {
  const q = place.value.query.toString();
  const { choice, ...filter } = filterOf(place.value.query);
  const jobs = useMemo(() => list(filter, size), [q]);
  const at = useSignal(-1);
  const busy = useSignal(false);
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = t("jobs") + " – paictl";
    at.value = -1;
    return () => {
      jobs.end();
      lost.value = null;
    };
  }, [jobs]);

  useEffect(() => {
    const field = search.current!;
    if (document.activeElement !== field) field.value = filter.keyword ?? "";
  }, [filter.keyword]);

  // The rows of the last filter stay until the server has answered.
  const kept = useRef<ListingRow[] | null>(null);
  if (jobs.rows.value) kept.current = jobs.rows.value;
  const rows = jobs.rows.value ?? (jobs.error.value ? null : kept.current);
  const move = (by: number) => (at.value = Math.max(0, Math.min((rows?.length ?? 0) - 1, at.value + by)));
  useKeys({
    "/": () => search.current?.focus(),
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => {
      const r = rows?.[at.value];
      if (r) go(address(["jobs", r.user, r.name]));
    },
  });

  const timer = useRef<number>(0);
  const typed = (text: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ keyword: text || undefined }), 250) as unknown as number;
  };
  const download = async () => {
    busy.value = true;
    try {
      save("jobs.csv", [csv(await everything(filter), columns)], "text/csv;charset=utf-8");
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const more = async () => {
    busy.value = true;
    try {
      await jobs.older();
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const command = ["paictl job list"];
  if (!filter.user) command.push("--all-users");
  else if (filter.user !== me.value?.name) command.push("--user " + quoted(filter.user));
  if (filter.vc) command.push("--vc " + quoted(filter.vc));
  if (filter.state?.length) command.push("--state " + quoted(filter.state.join(",")));
  if (filter.keyword) command.push("--keyword " + quoted(filter.keyword));
  const mine = filter.user === me.value?.name;
  const filtered = q !== "";
  const vcs = [...new Set([...ownVCs(), ...(filter.vc ? [filter.vc] : [])])];

  return (
    <section class="page">
      <header class="top">
        <h1>{t("jobs")}</h1>
        <span class="grow" />
        <Menu
          label={t("more")}
          icon="more"
          items={[
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command.join(" ")) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/jobs", { query: filter })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
          ]}
        />
        <button type="button" title={t("csvMore")} disabled={busy.value} onClick={() => void download()}>
          <Icon name="down" /> {t("csv")}
        </button>
        <a class="button primary" href={address(["submit"])}>
          <Icon name="plus" /> {t("newJob")}
        </a>
      </header>
      <div class="filters">
        <label class="search">
          <Icon name="search" />
          <input ref={search} type="search" placeholder={t("search")} aria-label={t("search")} defaultValue={filter.keyword ?? ""} onInput={(e) => typed(e.currentTarget.value)} onKeyDown={(e) => e.key === "Escape" && e.currentTarget.blur()} />
          <kbd>/</kbd>
        </label>
        <div class="segments" role="group" aria-label={t("state")}>
          {Object.keys(choices).map((name) => (
            <button key={name} type="button" aria-pressed={choice === name} onClick={() => setQuery({ state: name === "all" ? undefined : name })}>
              {maybe("state." + name, name)}
            </button>
          ))}
          {Object.hasOwn(choices, choice) ? null : (
            <button type="button" aria-pressed="true" onClick={() => setQuery({ state: undefined })}>
              {maybe("state." + choice, choice)}
            </button>
          )}
        </div>
        <div class="segments" role="group" aria-label={t("owner")}>
          <button type="button" aria-pressed={!filter.user} onClick={() => setQuery({ user: undefined })}>
            {t("everyone")}
          </button>
          <button type="button" aria-pressed={mine} onClick={() => setQuery({ user: me.value?.name })}>
            {t("mine")}
          </button>
          {filter.user && !mine ? (
            <button type="button" aria-pressed="true" onClick={() => setQuery({ user: undefined })}>
              {filter.user} <Icon name="close" />
            </button>
          ) : null}
        </div>
        {vcs.length > 0 ? (
          <select aria-label={t("vc")} value={filter.vc ?? ""} onChange={(e) => setQuery({ vc: e.currentTarget.value || undefined })}>
            <option value="">{t("anyVC")}</option>
            {vcs.map((v) => (
              <option key={v} value={v}>
                {v}
              </option>
            ))}
          </select>
        ) : null}
      </div>
      {jobs.error.value ? <Problem of={jobs.error.value} again={() => go(location.pathname + location.search, true)} /> : null}
      {jobs.note.value ? <p class="note">{jobs.note.value}</p> : null}
      {!rows ? (
        jobs.error.value ? null : <Loading />
      ) : rows.length === 0 ? (
        <div class="empty">
          <p>{filtered ? t("noMatch") : t("noJobs")}</p>
          {filtered ? (
            <button type="button" onClick={() => go(address(["jobs"]))}>
              {t("clearFilters")}
            </button>
          ) : (
            <p class="faint">{t("noJobsHint")}</p>
          )}
        </div>
      ) : (
        <>
          <table class={jobs.rows.value ? "rows jobs" : "rows jobs old"} aria-busy={!jobs.rows.value}>
            <Head owner />
            <tbody>
              {rows.map((r, i) => (
                <Row key={r.uid} r={r} chosen={i === at.value} owner />
              ))}
            </tbody>
          </table>
          <footer class="under">
            <span class="faint">{t(jobs.next.value ? "shownMore" : "shown", { n: rows.length })}</span>
            {jobs.next.value ? (
              <button type="button" disabled={busy.value} onClick={() => void more()}>
                {t("older")}
              </button>
            ) : null}
          </footer>
        </>
      )}
    </section>
  );
}
