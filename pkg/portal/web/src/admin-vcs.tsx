// Virtual clusters: how much each owns and uses, and changes, which are shown before they are made.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Command, Field, Line, Names, Refusal, Search, Top, rebased, same } from "./admin-parts";
import { call } from "./api";
import { csv } from "./list";
import { useAct, useRead } from "./read";
import { address, go, place } from "./route";
import { curl, quoted } from "./shell";
import { maybe, t } from "./text";
import type { SchedulerApiChangedVirtualCluster, SchedulerApiVirtualCluster, V3ApiVirtualClusters, VcChangeSet, VcOutcome, VcRequest } from "./types";
import { Bar, Icon, Loading, Problem, save, toast } from "./ui";

type VC = SchedulerApiVirtualCluster;

/** How often the use of virtual clusters is read again, in milliseconds. */
const often = 5000;

const useVCs = () => useRead<V3ApiVirtualClusters>("", (signal) => call("GET /api/v3/virtual-clusters", { signal }), often);

/** A virtual cluster of machines without GPUs has CPU cells alone. */
const cpuOnly = (v: VC) => v.guaranteed === 0 && (v.cpuCells?.guaranteed ?? 0) > 0;
const amounts = (v: VC) => (cpuOnly(v) ? v.cpuCells! : v);

function cellsText(v: VC): string {
  return [...(v.virtualCells ?? []).map((c) => `${c.cellNumber} × ${c.cellType}`), ...(v.pinnedCells ?? []).map((id) => t("admin.pinnedCell", { id }))].join(", ");
}

function quotaText(v: VC): string {
  const q = v.quota;
  const named = (of: Record<string, number> | undefined, text: (name: string, n: string) => string) => Object.entries(of ?? {}).map(([name, n]) => text(name, n ? String(n) : "∞"));
  return [
    q?.perUser ? t("admin.perUser", { n: q.perUser }) : "",
    q?.perGroup ? t("admin.perGroup", { n: q.perGroup }) : "",
    ...named(q?.users, (name, n) => `${name}: ${n}`),
    ...named(q?.groups, (name, n) => `${t("admin.group")} ${name}: ${n}`),
  ]
    .filter(Boolean)
    .join(", ");
}

const columns: [string, (v: VC) => unknown][] = [
  ["name", (v) => v.name],
  ["guaranteed", (v) => v.guaranteed],
  ["used", (v) => v.used],
  ["free", (v) => v.free],
  ["bad", (v) => v.bad],
  ["opportunistic", (v) => v.opportunistic],
  ["waitingGangs", (v) => v.waitingGangs],
  ["waitingPods", (v) => v.waitingPods],
  ["cells", (v) => (v.virtualCells ?? []).map((c) => `${c.cellType}=${c.cellNumber}`).join(" ")],
  ["policy", (v) => v.policy],
];

export function VirtualClusters() {
  const q = place.value.query;
  const { value, error, again } = useVCs();
  const word = (q.get("keyword") ?? "").toLowerCase();
  const items = value.value?.items ?? [];
  const rows = items.filter((v) => !word || v.name.toLowerCase().includes(word));
  return (
    <>
      <Top title={t("vcs")} paictl="paictl vc list" curl={curl("GET /api/v3/virtual-clusters", {})}>
        <button type="button" title={t("csvMore")} disabled={!value.value} onClick={() => save("virtual-clusters.csv", [csv(rows, columns)], "text/csv;charset=utf-8")}>
          <Icon name="down" /> {t("csv")}
        </button>
        <a class="button primary" href={address(["admin", "virtual-clusters"], { add: "true" })}>
          <Icon name="plus" /> {t("admin.addVC")}
        </a>
      </Top>
      {items.length > 8 || word ? (
        <div class="filters">
          <Search label={t("admin.searchVCs")} value={q.get("keyword") ?? ""} />
        </div>
      ) : null}
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {value.value?.problem ? <p class="note">{t("admin.oldConfiguration", { why: value.value.problem })}</p> : null}
      {value.value?.note ? <p class="note">{value.value.note}</p> : null}
      {!value.value ? (
        error.value ? null : <Loading />
      ) : rows.length === 0 ? (
        <p class="empty">{t("admin.noVC")}</p>
      ) : (
        <table class="rows vc-table">
          <thead>
            <tr>
              <th>{t("name")}</th>
              <th class="num">{t("admin.guaranteed")}</th>
              <th class="num">{t("admin.inUse")}</th>
              <th class="num">{t("admin.free")}</th>
              <th class="wide" />
              <th class="num">{t("admin.waiting")}</th>
              <th class="wide">{t("admin.cells")}</th>
              <th class="wide">{t("admin.quota")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((v) => {
              const n = amounts(v);
              return (
                <tr key={v.name}>
                  <td class="c-name">
                    <a class="whole" href={address(["admin", "virtual-clusters", v.name])}>
                      {v.name}
                    </a>
                  </td>
                  <td class="num">
                    {n.guaranteed} {cpuOnly(v) ? <span class="faint">CPU</span> : null}
                  </td>
                  <td class="num">
                    {n.used}
                    {n.opportunistic > 0 ? <span class="faint" title={t("opportunistic", { n: n.opportunistic })}> +{n.opportunistic}</span> : null}
                  </td>
                  <td class="num">
                    {n.free}
                    {n.bad > 0 ? <span class="broken" title={t("broken", { n: n.bad })}> −{n.bad}</span> : null}
                  </td>
                  <td class="wide c-bar">
                    <Bar total={n.guaranteed} label={t("usage", { used: n.used, free: n.free, bad: n.bad })} parts={[{ n: n.used, class: "used" }, { n: n.bad, class: "bad" }]} />
                  </td>
                  <td class="num">{v.waitingGangs > 0 ? <span class="waits">{v.waitingGangs}</span> : <span class="faint">–</span>}</td>
                  <td class="wide long">{cellsText(v) || <span class="faint">–</span>}</td>
                  <td class="wide long">{quotaText(v) || <span class="faint">–</span>}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {value.value?.deleted?.length ? <p class="note">{t("admin.deletedVCs", { names: value.value.deleted.map((v) => v.name).join(", ") })}</p> : null}
    </>
  );
}

/** The policies of the scheduler, the default first. */
const policies = ["balanced", "fewer-kills", "start-now"];

/** What the form has. Numbers are texts while they are written. */
interface Draft {
  cells: [string, string][];
  perUser: string;
  perGroup: string;
  users: [string, string][];
  groups: [string, string][];
  pinned: string[];
  policy: string;
  takeFrom: string;
}

function draftOf(v: VC | null): Draft {
  const pairs = (of: Record<string, number> | undefined): [string, string][] => Object.entries(of ?? {}).map(([name, n]) => [name, String(n)]);
  return {
    cells: (v?.virtualCells ?? []).map((c) => [c.cellType, String(c.cellNumber)]),
    perUser: String(v?.quota?.perUser ?? 0),
    perGroup: String(v?.quota?.perGroup ?? 0),
    users: pairs(v?.quota?.users),
    groups: pairs(v?.quota?.groups),
    pinned: v?.pinnedCells ?? [],
    policy: v?.policy || policies[0]!,
    takeFrom: "",
  };
}

/** Returns the change that makes a virtual cluster what the form says; null if nothing differs. */
function requestOf(name: string, was: Draft, now: Draft): VcRequest | null {
  const out: VcRequest = { name };
  const number = (text: string | undefined) => Number(text || 0);
  const table = (of: [string, string][]) => new Map(of.filter(([k]) => k).map(([k, v]) => [k, number(v)]));
  const [before, after] = [table(was.cells), table(now.cells)];
  const cells = [...new Set([...before.keys(), ...after.keys()])].filter((k) => (before.get(k) ?? 0) !== (after.get(k) ?? 0)).map((cellType) => ({ cellType, cellNumber: after.get(cellType) ?? 0 }));
  if (cells.length) out.cells = cells;
  const [pin, unpin] = [now.pinned.filter((x) => !was.pinned.includes(x)), was.pinned.filter((x) => !now.pinned.includes(x))];
  if (pin.length) out.pin = pin;
  if (unpin.length) out.unpin = unpin;
  if (number(was.perUser) !== number(now.perUser)) out.perUser = number(now.perUser);
  if (number(was.perGroup) !== number(now.perGroup)) out.perGroup = number(now.perGroup);
  for (const key of ["users", "groups"] as const) {
    const [a, b] = [table(was[key]), table(now[key])];
    const change: Record<string, number | null> = {};
    for (const [k, n] of b) if (a.get(k) !== n) change[k] = n;
    for (const k of a.keys()) if (!b.has(k)) change[k] = null; // the quota of everyone applies again
    if (Object.keys(change).length) out[key] = change as Record<string, number>;
  }
  if (was.policy !== now.policy) out.policy = now.policy;
  if (Object.keys(out).length === 1) return null;
  if (now.takeFrom && out.cells) out.takeFrom = now.takeFrom;
  return out;
}

/** Returns the command that makes the same change. */
function commandOf(r: VcRequest, message: string, force: boolean): string {
  const named = (of: Record<string, number | null>) => quoted(Object.entries(of).map(([k, n]) => `${k}=${n ?? "default"}`).join(","));
  const out = [`paictl vc set ${quoted(r.name)}`];
  if (r.delete) out.push("--delete");
  if (r.cells) out.push("--cells " + quoted(r.cells.map((c) => `${c.cellType}=${c.cellNumber}`).join(",")));
  if (r.pin) out.push("--pin " + quoted(r.pin.join(",")));
  if (r.unpin) out.push("--unpin " + quoted(r.unpin.join(",")));
  if (r.perUser !== undefined) out.push("--quota-per-user " + r.perUser);
  if (r.perGroup !== undefined) out.push("--quota-per-group " + r.perGroup);
  if (r.users) out.push("--quota-user " + named(r.users));
  if (r.groups) out.push("--quota-group " + named(r.groups));
  if (r.policy) out.push("--policy " + r.policy);
  if (r.takeFrom) out.push("--take-from " + quoted(r.takeFrom));
  if (message) out.push("-m " + quoted(message));
  if (force) out.push("--force");
  return out.join(" ");
}

function Numbers({ label, value, set, name, types, hint }: { label: string; value: [string, string][]; set: (v: [string, string][]) => void; name: string; types?: string[]; hint?: string }) {
  const change = (i: number, pair: [string, string]) => set(value.map((x, j) => (j === i ? pair : x)));
  return (
    <div class="field" role="group" aria-label={label}>
      <span class="label">{label}</span>
      {value.map(([k, n], i) => (
        <div key={i} class="pair">
          <input aria-label={name} placeholder={name} value={k} list={types ? "cell-types" : undefined} autocomplete="off" spellcheck={false} onInput={(e) => change(i, [e.currentTarget.value, n])} />
          <input aria-label={t("admin.number")} type="number" min="0" step="1" value={n} onInput={(e) => change(i, [k, e.currentTarget.value])} />
          <button type="button" class="square" aria-label={t("admin.removeName", { name: k })} title={t("admin.removeName", { name: k })} onClick={() => set(value.filter((_, j) => j !== i))}>
            <Icon name="close" />
          </button>
        </div>
      ))}
      {types ? (
        <datalist id="cell-types">
          {types.map((x) => (
            <option key={x} value={x} />
          ))}
        </datalist>
      ) : null}
      <div>
        <button type="button" class="link" onClick={() => set([...value, [types?.find((x) => !value.some(([k]) => k === x)) ?? "", types ? "1" : "0"]])}>
          {t("admin.addPair")}
        </button>
      </div>
      {hint ? <small>{hint}</small> : null}
    </div>
  );
}

function Form({ d, put, types, others }: { d: Draft; put: (change: Partial<Draft>) => void; types: string[]; others: string[] }) {
  return (
    <>
      <Numbers label={t("admin.cells")} hint={t("admin.cellsHint")} name={t("admin.cellType")} value={d.cells} types={types} set={(v) => put({ cells: v })} />
      <Names label={t("admin.pinned")} hint={t("admin.pinnedHint")} value={d.pinned} set={(v) => put({ pinned: v })} add={t("admin.addPinned")} />
      {others.length ? (
        <Field label={t("admin.takeFrom")} hint={t("admin.takeFromHint")}>
          {(id) => (
            <select id={id} value={d.takeFrom} onChange={(e) => put({ takeFrom: e.currentTarget.value })}>
              <option value="">{t("admin.takeFromNone")}</option>
              {others.map((x) => (
                <option key={x} value={x}>
                  {x}
                </option>
              ))}
            </select>
          )}
        </Field>
      ) : null}
      <div class="pair">
        <Line label={t("admin.quotaPerUser")} hint={t("admin.noLimit")} type="number" value={d.perUser} set={(v) => put({ perUser: v })} />
        <Line label={t("admin.quotaPerGroup")} hint={t("admin.noLimit")} type="number" value={d.perGroup} set={(v) => put({ perGroup: v })} />
      </div>
      <Numbers label={t("admin.quotaUsers")} name={t("admin.person")} value={d.users} set={(v) => put({ users: v })} />
      <Numbers label={t("admin.quotaGroups")} name={t("admin.group")} value={d.groups} set={(v) => put({ groups: v })} />
      <Field label={t("admin.policy")} hint={maybe("admin.policy." + d.policy, "")}>
        {(id) => (
          <select id={id} value={d.policy} onChange={(e) => put({ policy: e.currentTarget.value })}>
            {[...new Set([...policies, d.policy])].map((x) => (
              <option key={x} value={x}>
                {x}
              </option>
            ))}
          </select>
        )}
      </Field>
    </>
  );
}

function Owns({ v }: { v?: VC }) {
  return v ? (
    <>
      <b>{amounts(v).guaranteed}</b> {t(cpuOnly(v) ? "admin.cpuCells" : "gpus")}
      {cellsText(v) ? <span class="faint"> ({cellsText(v)})</span> : null}
    </>
  ) : (
    <span class="faint">–</span>
  );
}

/** What a change does: to virtual clusters, to jobs, and to the file. */
function Effect({ out }: { out: VcOutcome }) {
  const e = out.effect;
  const problems = [...(e?.problems ?? []), ...(out.warnings ?? []).map((w) => ({ ...w, path: w.field }))];
  const changes = e?.changes ?? [];
  return (
    <>
      {out.problem ? <p class="note">{t("admin.oldConfiguration", { why: out.problem })}</p> : null}
      {out.note ? <p class="note">{out.note}</p> : null}
      {problems.length ? (
        <ul class="findings">
          {problems.map((p, i) => (
            <li key={i} class={p.severity === "warning" ? "warn" : "bad"}>
              {p.path ? <code>{p.path}</code> : null} {p.message} {p.remedy ? <span class="faint">{p.remedy}</span> : null}
            </li>
          ))}
        </ul>
      ) : null}
      {e?.virtualClusters?.length ? (
        <table class="rows owns">
          <thead>
            <tr>
              <th>{t("vc")}</th>
              <th>{t("admin.ownsNow")}</th>
              <th>{t("admin.ownsThen")}</th>
            </tr>
          </thead>
          <tbody>
            {e.virtualClusters.map((c: SchedulerApiChangedVirtualCluster) => (
              <tr key={c.name}>
                <td>{c.name}</td>
                <td class="long">
                  <Owns v={c.before} />
                </td>
                <td class="long">
                  <Owns v={c.after} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {changes.length ? (
        <>
          <h3>{t("admin.jobsAffected", { n: changes.length })}</h3>
          <table class="rows effects">
            <tbody>
              {changes.map((c) => (
                <tr key={c.vc + c.group}>
                  <td class="long">
                    <b>{c.group}</b>
                    <div class="faint small">
                      {c.user} · {c.vc} · {c.cpuCells ? `${c.cpuCells} ${t("admin.cpuCells")}` : `${c.gpus} ${t("gpus")}`}
                    </div>
                  </td>
                  <td class={`long effect-${c.effect}`}>
                    {maybe("admin.effect." + c.effect, c.effect)}
                    {c.reason ? <div class="faint small">{c.reason}</div> : null}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      ) : e?.valid && !out.note ? (
        <p class="good">
          <Icon name="check" /> {t("admin.noJobAffected")}
        </p>
      ) : null}
      {out.diff ? (
        <details open>
          <summary>{t("admin.diff")}</summary>
          <pre tabIndex={0} class="code diff">
            {out.diff.split("\n").map((line, i) => (
              <span key={i} class={/^\+(?!\+\+)/.test(line) ? "plus" : /^-(?!--)/.test(line) ? "minus" : ""}>
                {line + "\n"}
              </span>
            ))}
          </pre>
        </details>
      ) : null}
    </>
  );
}

/** Shows what a change would do, and makes it. A preview is of one request and one revision: after any other change it is made again. */
function Change({ request, done }: { request: VcRequest | null; done: () => void }) {
  const text = JSON.stringify(request);
  const seen = useSignal<{ of: string; out: VcOutcome } | null>(null);
  const stored = useSignal<{ of: string; out: VcOutcome } | null>(null);
  const message = useSignal("");
  const force = useSignal(false);
  const { busy, error, act } = useAct();
  useEffect(() => {
    error.value = null;
    force.value = false;
  }, [text]);
  const preview = () =>
    act(async () => {
      force.value = false;
      stored.value = null;
      seen.value = null;
      seen.value = { of: text, out: await call("PATCH /api/v3/virtual-clusters", { body: { changes: [request!], dryRun: true } }) };
    });
  const out = seen.value?.of === text ? seen.value.out : null;
  const change: VcChangeSet = { changes: request ? [request] : [], revision: out?.base, message: message.value || undefined, force: (out?.refused && force.value) || undefined };
  const apply = () =>
    act(async () => {
      const now = await call("PATCH /api/v3/virtual-clusters", { body: change });
      stored.value = { of: text, out: now };
      seen.value = null;
      message.value = "";
      toast(t("admin.stored", { n: now.revision ?? now.base }));
      done();
    });
  const shown = stored.value && (!request || stored.value.of === text) ? stored.value.out : null;
  const possible = out && (out.changed || out.pending) && out.effect?.valid !== false && (!out.refused || force.value);
  return (
    <>
      {shown ? (
        <p class="note stored">
          <Icon name="check" /> {t(shown.installed ? "admin.storedAndLoaded" : "admin.storedOnly", { n: shown.revision ?? shown.base })}
        </p>
      ) : null}
      {request && !shown ? (
        <>
          <div class="buttons start">
            <button type="button" class={out ? "" : "primary"} disabled={busy.value} onClick={() => void preview()}>
              {t(out ? "admin.previewAgain" : "admin.preview")}
            </button>
          </div>
          <Refusal of={error.value} again={() => void preview()} />
          {out ? (
            <div class="outcome" role="status">
              {!out.changed && !out.pending ? <p class="faint">{t("admin.nothingChanges", { n: out.base })}</p> : null}
              {out.pending ? <p class="note">{t("admin.pending", { n: out.base })}</p> : null}
              {out.effect?.valid === false ? <p class="bad">{t("admin.invalid")}</p> : null}
              {out.refused ? (
                <div class="problem refused" role="alert">
                  <Icon name="warn" />
                  <div>
                    <p class="says">{out.refused}</p>
                    {out.remedy ? <p>{out.remedy}</p> : null}
                  </div>
                </div>
              ) : null}
              <Effect out={out} />
              {(out.changed || out.pending) && out.effect?.valid !== false ? (
                <form
                  class="apply"
                  onSubmit={(e) => {
                    e.preventDefault();
                    void apply();
                  }}
                >
                  <Line label={t("admin.reason")} hint={t("admin.reasonHint")} value={message.value} set={(v) => (message.value = v)} />
                  {out.refused ? (
                    <label class="tick">
                      <input type="checkbox" name="force" checked={force.value} onChange={(e) => (force.value = e.currentTarget.checked)} />
                      <span>
                        {t("admin.force")}
                        <small>{t("admin.forceHint")}</small>
                      </span>
                    </label>
                  ) : null}
                  <div class="buttons">
                    <button type="submit" class={out.refused ? "primary danger" : "primary"} disabled={busy.value || !possible}>
                      {t("admin.apply", { n: out.base })}
                    </button>
                  </div>
                </form>
              ) : null}
            </div>
          ) : null}
          <Command lines={[commandOf(request, message.value, Boolean(change.force))]} why={t("admin.asCommand")} />
        </>
      ) : null}
    </>
  );
}

const typesOf = (all: VC[]) => [...new Set(all.flatMap((v) => (v.virtualCells ?? []).map((c) => c.cellType)))].sort();

export function NewVC() {
  const { value, error, again } = useVCs();
  const name = useSignal("");
  const d = useSignal(draftOf(null));
  const all = value.value?.items ?? [];
  const request = name.value ? requestOf(name.value, draftOf(null), d.value) : null;
  const example: VcRequest = request ?? { name: "NAME", cells: [{ cellType: typesOf(all)[0] ?? "TYPE", cellNumber: 1 }] };
  return (
    <>
      <Top title={t("admin.addVC")} up={["virtual-clusters", t("vcs")]} paictl={commandOf(example, "", false)} curl={curl("PATCH /api/v3/virtual-clusters", { body: { changes: [example], dryRun: true } })} />
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {value.value?.note ? <p class="note">{value.value.note}</p> : null}
      <div class="halves">
        <div class="form">
          <Line label={t("name")} value={name.value} required set={(v) => (name.value = v)} />
          <Form d={d.value} put={(change) => (d.value = { ...d.value, ...change })} types={typesOf(all)} others={all.map((v) => v.name)} />
        </div>
        <div>
          {all.some((v) => v.name === name.value) ? <p class="note">{t("admin.vcExists", { name: name.value })}</p> : null}
          <Change request={request} done={() => go(address(["admin", "virtual-clusters"]))} />
          {request ? null : <p class="empty">{t("admin.previewHint")}</p>}
        </div>
      </div>
    </>
  );
}

export function VCPage({ name }: { name: string }) {
  const { value, error, again } = useVCs();
  const was = useSignal<Draft | null>(null);
  const d = useSignal<Draft | null>(null);
  const deletes = useSignal(false);
  const heir = useSignal("");
  const all = value.value?.items ?? [];
  const v = all.find((x) => x.name === name);
  const known = JSON.stringify(v && draftOf(v));
  useEffect(() => {
    if (!v) return;
    const now = draftOf(v);
    d.value = d.value && was.value ? rebased(d.value, was.value, now) : now;
    was.value = now;
  }, [known]);
  const top = (r: VcRequest | null) => ({ title: name, up: ["virtual-clusters", t("vcs")] as [string, string], paictl: r ? commandOf(r, "", false) : `paictl vc show ${quoted(name)}`, curl: r ? curl("PATCH /api/v3/virtual-clusters", { body: { changes: [r], dryRun: true } }) : curl("GET /api/v3/virtual-clusters", {}) });
  if (error.value && !v) return <Problem of={error.value} again={again} />;
  if (!value.value) return <Loading />;
  if (!v)
    return (
      <>
        <Top {...top(null)} />
        <p class="empty">{t("admin.noSuchVC", { name })}</p>
      </>
    );
  if (!d.value || !was.value) return <Loading />;
  const others = all.map((x) => x.name).filter((x) => x !== name);
  const request: VcRequest | null = deletes.value ? { name, delete: true, takeFrom: heir.value || undefined } : requestOf(name, was.value, d.value);
  const n = amounts(v);
  return (
    <>
      <Top {...top(request)}>
        <button type="button" class="danger" aria-pressed={deletes.value} onClick={() => (deletes.value = !deletes.value)}>
          <Icon name={deletes.value ? "close" : "trash"} /> {t(deletes.value ? "admin.keep" : "remove")}
        </button>
      </Top>
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {value.value.problem ? <p class="note">{t("admin.oldConfiguration", { why: value.value.problem })}</p> : null}
      {value.value.note ? <p class="note">{value.value.note}</p> : null}
      <dl class="facts">
        {(
          [
            ["admin.guaranteed", n.guaranteed],
            ["admin.inUse", n.used],
            ["admin.free", n.free],
            ["admin.broken", n.bad],
            ["admin.lent", n.opportunistic],
            ["admin.waiting", v.waitingGangs],
          ] as const
        ).map(([key, x]) => (
          <div key={key}>
            <dt>{t(key)}</dt>
            <dd>{x}</dd>
          </div>
        ))}
        <div>
          <dt>{t("admin.cells")}</dt>
          <dd>{cellsText(v) || "–"}</dd>
        </div>
      </dl>
      <div class="halves">
        {deletes.value ? (
          <div class="form">
            <h2>{t("admin.deleteVC", { name })}</h2>
            <p>{t("admin.deleteVCHint")}</p>
            <Field label={t("admin.heir")}>
              {(id) => (
                <select id={id} value={heir.value} onChange={(e) => (heir.value = e.currentTarget.value)}>
                  <option value="">{t("admin.noHeir")}</option>
                  {others.map((x) => (
                    <option key={x} value={x}>
                      {x}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          </div>
        ) : (
          <div class="form">
            <Form d={d.value} put={(change) => (d.value = { ...d.value!, ...change })} types={typesOf(all)} others={others} />
            {same(d.value, was.value) ? null : (
              <div class="buttons">
                <button type="button" onClick={() => (d.value = was.value)}>
                  {t("admin.discard")}
                </button>
              </div>
            )}
          </div>
        )}
        <div>
          <Change
            request={request}
            done={() => {
              if (deletes.value) go(address(["admin", "virtual-clusters"]));
              else again();
            }}
          />
          {request ? null : <p class="empty">{t("admin.previewHint")}</p>}
        </div>
      </div>
    </>
  );
}
