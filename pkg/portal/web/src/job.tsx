// One job: why it is in its state, its tasks, logs, events, configuration and attempts.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Failure, call, failure, frames, lasting, lost } from "./api";
import { ran } from "./jobs";
import { useKeys } from "./keys";
import { later } from "./later";
import { Scale, Tags } from "./jobedit";
import { Metrics, spans } from "./metrics";
import { useRead } from "./read";
import { address, go, place, setQuery } from "./route";
import { me } from "./session";
import { curl, quoted } from "./shell";
import { Files } from "./files";
import { Shell } from "./terminal";
import { maybe, t } from "./text";
import type { JobApiAttempt, JobApiTaskAttempt, JobDetail, JobTask, JobWhy, V3ApiEvents } from "./types";
import { Ago, Icon, Loading, Menu, Problem, State, ask, copy, save, toast } from "./ui";

const done = ["succeeded", "failed", "stopped", "deleted"];

/** The exit of a task: its code, and the name that the platform's rules give it. */
export function Exit({ of }: { of: { completion?: JobApiTaskAttempt["completion"] } }) {
  const c = of.completion;
  if (!c) return null;
  return (
    <span class={c.code === 0 ? "good" : "bad"} title={c.diagnostics}>
      {c.code}
      {c.phrase && c.phrase !== "Succeeded" ? <span class="faint"> {c.phrase}</span> : null}
    </span>
  );
}

function useJob(user: string, name: string, round: number) {
  const detail = useSignal<JobDetail | null>(null);
  const error = useSignal<Failure | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    detail.value = null;
    error.value = null;
    const path = { user, name };
    lasting(stop.signal, (alive) =>
      frames("GET /api/v3/jobs/{user}/{name}/follow", { path }, stop.signal, (f) => {
        if (f.detail) {
          alive();
          detail.value = f.detail;
        }
        if (f.problem) lost.value = new Failure(503, "UnavailableError", f.problem);
        if (f.back) lost.value = null;
      }),
    ).catch((e) => {
      if (!stop.signal.aborted) error.value = failure(e);
    });
    return () => {
      stop.abort();
      lost.value = null;
    };
  }, [user, name, round]);
  return { detail, error };
}

/** A text that differs if the job has changed in a way that its explanation may depend on. */
function mark(d: JobDetail | null): string | null {
  return d ? [d.uid, d.state, d.position, d.retries, d.message, ...(d.taskList ?? []).map((x) => x.phase)].join() : null;
}

function Why({ d, user, name }: { d: JobDetail; user: string; name: string }) {
  const { value, error } = useRead<JobWhy>(mark(d), (signal) => call("GET /api/v3/jobs/{user}/{name}/why", { path: { user, name }, signal }));
  if (error.value) return <Problem of={error.value} />;
  const w = value.value;
  if (!w) return <div class="why pending" aria-busy="true" />;
  return (
    <div class={`why is-${d.state}`}>
      <p class="sentence">{w.sentence}</p>
      {w.remedy?.length ? (
        <ul class="remedy" aria-label={t("whatToDo")}>
          {w.remedy.map((r) => (
            <li key={r}>{r}</li>
          ))}
        </ul>
      ) : null}
      {w.facts?.length || w.log?.length ? (
        <details>
          <summary>{t("details")}</summary>
          <dl>
            {w.facts?.map((f) => (
              <div key={f.what}>
                <dt>{f.what}</dt>
                <dd>{f.text}</dd>
              </div>
            ))}
          </dl>
          {w.log?.length ? <pre tabIndex={0} aria-label={t("lastLines")}>{w.log.join("\n")}</pre> : null}
        </details>
      ) : null}
    </div>
  );
}

/** How many tasks are drawn at first. */
const some = 200;

function Tasks({ d, enter, open }: { d: JobDetail; enter: boolean; open: (e: MouseEvent) => void }) {
  const text = useSignal("");
  const most = useSignal(some);
  const all = d.taskList ?? [];
  const word = text.value.toLowerCase();
  const fits = (x: JobTask) => !word || `${x.role}[${x.index}] ${x.phase} ${x.node ?? ""} ${x.ip ?? ""} ${x.completion?.phrase ?? ""}`.toLowerCase().includes(word);
  const rows = all.filter(fits);
  const counts = new Map<string, number>();
  for (const x of all) counts.set(x.phase, (counts.get(x.phase) ?? 0) + 1);
  if (all.length === 0) return <p class="empty">{t("noTasks")}</p>;
  return (
    <>
      {all.length > 8 ? (
        <div class="filters">
          <label class="search">
            <Icon name="search" />
            <input type="search" placeholder={t("filterTasks")} aria-label={t("filterTasks")} onInput={(e) => (text.value = e.currentTarget.value)} />
          </label>
          {[...counts].map(([phase, n]) => (
            <button key={phase} type="button" class="bare" onClick={() => (text.value = text.value === phase ? "" : phase)}>
              <State state={phase} /> <span class="faint">{n}</span>
            </button>
          ))}
        </div>
      ) : null}
      <table class="rows tasks">
        <thead>
          <tr>
            <th>{t("task")}</th>
            <th>{t("state")}</th>
            <th>{t("machine")}</th>
            <th class="c-address">{t("address")}</th>
            <th>{t("exit")}</th>
            <th class="num">{t("duration")}</th>
            <th class="num c-retries">{t("retries")}</th>
            {enter ? <th class="c-shell" /> : null}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most.value).map((x) => (
            <tr key={x.role + x.index}>
              <td class="c-name">
                <a class="whole" href={address(place.value.path, { tab: "logs", task: `${x.role}[${x.index}]` })}>
                  {x.role}[{x.index}]
                </a>
              </td>
              <td>
                <State state={x.phase} />
              </td>
              <td>{x.node}</td>
              <td class="c-address">{x.ip ? <code>{x.ip}</code> : null}</td>
              <td>
                <Exit of={x} />
              </td>
              <td class="num">{ran({ started: x.run, completed: x.completed })}</td>
              <td class="num c-retries">{x.retries || ""}</td>
              {enter ? (
                <td class="c-shell">
                  {x.phase === "running" ? (
                    <a class="button square" href={address(place.value.path, { tab: "shell", task: `${x.role}[${x.index}]` })} onClick={open} title={t("openShell", { task: `${x.role}[${x.index}]` })} aria-label={t("openShell", { task: `${x.role}[${x.index}]` })}>
                      <Icon name="shell" />
                    </a>
                  ) : null}
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > most.value ? (
        <footer class="under">
          <button type="button" onClick={() => (most.value += 1000)}>
            {t("moreTasks", { n: rows.length - most.value })}
          </button>
        </footer>
      ) : null}
    </>
  );
}

function Events({ d, user, name }: { d: JobDetail; user: string; name: string }) {
  const { value, error } = useRead<V3ApiEvents>(mark(d), (signal) => call("GET /api/v3/jobs/{user}/{name}/events", { path: { user, name }, signal }));
  if (error.value) return <Problem of={error.value} />;
  if (!value.value) return <Loading />;
  const items = [...(value.value.items ?? [])].reverse();
  return (
    <>
      {value.value.note ? <p class="note">{value.value.note}</p> : null}
      {items.length === 0 ? (
        <p class="empty">{t("noEvents")}</p>
      ) : (
        <table class="rows">
          <thead>
            <tr>
              <th>{t("time")}</th>
              <th>{t("reason")}</th>
              <th>{t("message")}</th>
              <th class="c-object">{t("object")}</th>
            </tr>
          </thead>
          <tbody>
            {items.map((e) => (
              <tr key={e.uid} class={e.type === "Warning" ? "warning" : ""}>
                <td class="c-time">
                  <Ago time={e.time} />
                </td>
                <td>
                  {e.reason}
                  {e.count > 1 ? <span class="faint"> ×{e.count}</span> : null}
                </td>
                <td class="long">{e.message}</td>
                <td class="c-object faint">{e.object}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function Config({ d }: { d: JobDetail }) {
  if (!d.config) return <p class="empty">{t("noConfig")}</p>;
  return (
    <>
      <div class="filters">
        <button type="button" onClick={() => void copy(d.config!)}>
          <Icon name="copy" /> {t("copy")}
        </button>
        <button type="button" onClick={() => save(`${d.name}.yaml`, [d.config!], "text/yaml")}>
          <Icon name="down" /> {t("download")}
        </button>
        {d.config.includes("******") ? <span class="faint">{t("masked")}</span> : null}
      </div>
      {d.clonedFrom ? <Parent d={d} /> : null}
      <pre tabIndex={0} class="code">{d.config}</pre>
    </>
  );
}

function OverTime({ d, user, name, live, command }: { d: JobDetail; user: string; name: string; live: boolean; command: string }) {
  const q = place.value.query;
  const path = { user, name };
  const task = q.get("task") ?? "";
  const tasks = [...new Set([...(d.taskList ?? []).slice(0, some).map((x) => `${x.role}[${x.index}]`), ...(task ? [task] : [])])];
  return (
    <Metrics
      id={d.uid}
      span={spans.find((x) => x === q.get("span")) ?? "all"}
      choose={(x) => setQuery({ span: x === "all" ? undefined : x })}
      all=""
      live={live}
      task={task}
      read={(query, signal) => call("GET /api/v3/jobs/{user}/{name}/metrics", { path, query, signal })}
      command={command}
      curl={(query) => curl("GET /api/v3/jobs/{user}/{name}/metrics", { path, query })}
    >
      {tasks.length > 1 ? (
        <select aria-label={t("task")} value={task} onChange={(e) => setQuery({ task: e.currentTarget.value || undefined })}>
          <option value="">{t("allTasks")}</option>
          {tasks.map((x) => (
            <option key={x} value={x}>
              {x}
            </option>
          ))}
        </select>
      ) : null}
    </Metrics>
  );
}

function Attempt({ a }: { a: JobApiAttempt }) {
  return (
    <details class="attempt">
      <summary>
        <b>
          {t("attempt")} {a.id}
        </b>
        <Ago time={a.started} />
        <span>{ran({ started: a.run ?? a.started, completed: a.completed })}</span>
        <Exit of={a as { completion?: JobApiTaskAttempt["completion"] }} />
      </summary>
      {a.completion?.trigger?.message ? <p>{a.completion.trigger.message}</p> : null}
      <table class="rows">
        <thead>
          <tr>
            <th>{t("task")}</th>
            <th class="num">{t("attempt")}</th>
            <th>{t("machine")}</th>
            <th>{t("started")}</th>
            <th class="num">{t("duration")}</th>
            <th>{t("exit")}</th>
          </tr>
        </thead>
        <tbody>
          {(a.tasks ?? []).slice(0, 500).map((x) => (
            <tr key={x.role + x.index + "." + x.id}>
              <td>
                {x.role}[{x.index}]
              </td>
              <td class="num">{x.id}</td>
              <td>{x.node}</td>
              <td>
                <Ago time={x.started} />
              </td>
              <td class="num">{ran({ started: x.run, completed: x.completed })}</td>
              <td>
                <Exit of={x} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

const Logs = later(() => import("./logs").then((file) => file.Logs));
const Parent = later(() => import("./parent").then((file) => file.Parent));

const tabs = ["overview", "logs", "metrics", "events", "config", "attempts", "files", "shell"] as const;

export function JobPage({ user, name }: { user: string; name: string }) {
  const round = useSignal(0);
  const { detail, error } = useJob(user, name, round.value);
  const d = detail.value;
  const path = { user, name };
  const allowed = useRead(d ? d.uid : null, (signal) => call("GET /api/v3/jobs/{user}/{name}/allowed", { path, signal }));
  const may = (what: string) => allowed.value.value?.operations?.includes(what) ?? false;
  const isDone = done.includes(d?.state ?? "");
  // A shell that is open stays open while the person looks at other tabs.
  // It is opened by a click, not by an address: the audit records it.
  const shell = useSignal(false);
  const scaling = useSignal(false);
  const asked = place.value.query.get("tab");
  const offered = tabs.filter((x) => (x !== "shell" && x !== "files") || (x === "shell" && shell.value) || (may("enter") && !isDone));
  const tab = offered.find((x) => x === asked) ?? "overview";
  const full = user === me.value?.name ? name : `${user}/${name}`;
  useEffect(() => {
    document.title = `${name} – paictl`;
  }, [name]);
  useKeys(Object.fromEntries(offered.map((x, i) => [String(i + 1), () => setQuery({ tab: x === "overview" ? undefined : x, task: undefined, at: undefined })])));

  if (!d) return error.value ? <Problem of={error.value} again={() => round.value++} /> : <Loading />;
  const act = (what: "stop" | "retry" | "remove") =>
    ask({
      title: t(`ask.${what}`, { job: full }),
      text: t(`ask.${what}.more`),
      yes: t(what),
      danger: what !== "retry",
      act: async () => {
        if (what === "stop") await call("POST /api/v3/jobs/{user}/{name}/stop", { path });
        if (what === "retry") await call("POST /api/v3/jobs/{user}/{name}/retry", { path });
        if (what === "remove") await call("DELETE /api/v3/jobs/{user}/{name}", { path });
        toast(t(`done.${what}`));
        if (what === "remove") go(address(["jobs"]));
        else round.value++;
      },
    });
  const task = place.value.query.get("task");
  const command = tab === "shell" ? `paictl job shell ${quoted(full)}${task ? ` --task ${quoted(task)}` : ""}` : tab === "logs" ? `paictl job logs ${quoted(full)}${task ? ` --task ${quoted(task)}` : ""}${place.value.query.get("previous") ? " --previous" : " -f"}` : tab === "events" ? `paictl job events ${quoted(full)}` : tab === "metrics" ? `paictl job metrics ${quoted(full)}` : `paictl job get ${quoted(full)}`;
  const route = tab === "logs" ? "GET /api/v3/jobs/{user}/{name}/logs" : tab === "events" ? "GET /api/v3/jobs/{user}/{name}/events" : tab === "metrics" ? "GET /api/v3/jobs/{user}/{name}/metrics" : "GET /api/v3/jobs/{user}/{name}";
  // A link to a line is a request for it.
  const one = /^(.*)\[(\d+)\]$/.exec(task ?? "");
  const curlOf = () =>
    tab === "logs" && one
      ? curl("GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log", { path: { user, name, role: one[1]!, index: one[2]! }, query: { at: place.value.query.get("at") ?? undefined, previous: place.value.query.get("previous") === "true" } })
      : curl(route, { path });
  return (
    <section class="page job">
      <header class="top">
        <nav class="crumbs">
          <a href={address(["jobs"])}>{t("jobs")}</a>
          <Icon name="chevron" />
          <a href={address(["jobs"], { user })}>{user}</a>
          <Icon name="chevron" />
        </nav>
        <h1 title={name}>{name}</h1>
        <State state={d.state} position={d.position} deleted={d.deleted} />
        <span class="grow" />
        <div class="actions">
          {d.config ? (
            <a class="button" href={address(["submit"], { clone: `${user}/${name}`, uid: d.uid })}>
              <Icon name="copy" /> {t("clone")}
            </a>
          ) : null}
          {may("retry") && isDone ? (
            <button type="button" onClick={() => act("retry")}>
              <Icon name="retry" /> {t("retry")}
            </button>
          ) : null}
          {may("stop") && !isDone && d.state !== "stopping" && d.state !== "deleting" ? (
            <button type="button" class="danger" onClick={() => act("stop")}>
              <Icon name="stop" /> {t("stop")}
            </button>
          ) : null}
          <Menu
            label={t("more")}
            icon="more"
            items={[
              { label: t("copyName"), icon: "copy", run: () => void copy(full) },
              { label: t("copyPaictl"), icon: "copy", run: () => void copy(command) },
              { label: t("copyCurl"), icon: "copy", run: () => void copy(curlOf()) },
              { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
              ...(d.config ? [{ label: t("saveTemplate"), icon: "file" as const, run: () => go(address(["templates", "new"], { job: `${user}/${name}` })) }] : []),
              ...(may("scale") && !isDone ? [{ label: t("scale"), icon: "queue" as const, run: () => (scaling.value = true) }] : []),
              ...(may("delete") && d.live ? [null, { label: t("remove"), icon: "trash" as const, danger: true, run: () => act("remove") }] : []),
            ]}
          />
        </div>
      </header>
      {scaling.value ? <Scale d={d} end={() => (scaling.value = false)} /> : null}
      {error.value ? <Problem of={error.value} again={() => round.value++} /> : null}
      <Why d={d} user={user} name={name} />
      {d.note ? <p class="note">{d.note}</p> : null}
      <dl class="facts">
        <Fact name={t("owner")} value={d.user} />
        <Fact name={t("vc")} value={d.virtualCluster} />
        <Fact name={t("gpus")} value={d.gpus > 0 ? d.gpus : d.gpus < 0 ? "?" : "–"} />
        <Fact name={t("tasks")} value={d.tasks} />
        <Fact name={t("priority")} value={d.priority} />
        <Fact name={t("submitted")} value={<Ago time={d.submitted} />} />
        <Fact name={t("duration")} value={ran(d)} />
        <Fact name={t("retries")} value={d.retries || undefined} />
        <Fact name={t("tags")} value={d.tags?.length || may("tag") ? <Tags d={d} change={may("tag")} changed={() => round.value++} /> : undefined} />
      </dl>
      <div class="tabs" role="tablist">
        {offered.map((x) => (
          <a key={x} role="tab" aria-selected={x === tab} href={address(place.value.path, { tab: x === "overview" ? undefined : x })}>
            {maybe(x, x)}
          </a>
        ))}
      </div>
      <div class="tab" role="tabpanel">
        {tab === "overview" ? <Tasks d={d} enter={may("enter") && !isDone} open={(e) => (shell.value ||= !(e.ctrlKey || e.metaKey || e.shiftKey))} /> : null}
        {tab === "logs" ? <Logs key={d.uid} d={d} user={user} name={name} /> : null}
        {tab === "metrics" ? <OverTime d={d} user={user} name={name} live={!isDone} command={`paictl job metrics ${quoted(full)}`} /> : null}
        {tab === "events" ? <Events d={d} user={user} name={name} /> : null}
        {tab === "config" ? <Config d={d} /> : null}
        {tab === "attempts" ? (d.attempts?.length ? d.attempts.map((a) => <Attempt key={a.id} a={a} />) : <p class="empty">{t("noAttempts")}</p>) : null}
        {tab === "files" ? <Files key={d.uid} d={d} user={user} name={name} full={full} /> : null}
        {tab === "shell" && !shell.value ? (
          <div class="empty">
            <p>
              <button type="button" class="primary" onClick={() => (shell.value = true)}>
                <Icon name="shell" /> {task ? t("openShell", { task }) : t("shell.start")}
              </button>
            </p>
            <p class="faint">{t("shell.audited")}</p>
          </div>
        ) : null}
        {shell.value ? <Shell key={d.uid} d={d} user={user} name={name} shown={tab === "shell"} /> : null}
      </div>
    </section>
  );
}

function Fact({ name, value }: { name: string; value: unknown }) {
  return value === undefined || value === "" ? null : (
    <div>
      <dt>{name}</dt>
      <dd>{value as string}</dd>
    </div>
  );
}
