// Groups: what they grant, and their members.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Command, Line, Names, Pairs, Refusal, Search, Tick, Top, rebased, same } from "./admin-parts";
import { call } from "./api";
import { csv } from "./list";
import { useAct, useRead } from "./read";
import { address, go, place } from "./route";
import { ownVCs } from "./session";
import { curl, quoted } from "./shell";
import { t } from "./text";
import type { PeopleV1GroupSpec, PeopleV1VCGrant, V3ApiGroup } from "./types";
import { Icon, Loading, Problem, ask, save, toast } from "./ui";

const columns: [string, (g: V3ApiGroup) => unknown][] = [
  ["name", (g) => g.name],
  ["description", (g) => g.description],
  ["administrator", (g) => g.administrator ?? false],
  ["allVirtualClusters", (g) => g.allVirtualClusters ?? false],
  ["virtualClusters", (g) => g.virtualClusters?.map((v) => v.name).join(" ")],
  ["storages", (g) => g.storages?.join(" ")],
  ["pages", (g) => g.pages?.join(" ")],
  ["members", (g) => g.members?.join(" ")],
];

export function Groups() {
  const q = place.value.query;
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/groups", { signal }));
  const word = (q.get("keyword") ?? "").toLowerCase();
  const rows = (value.value?.items ?? []).filter((g) => !word || [g.name, g.description, ...(g.virtualClusters ?? []).map((v) => v.name), ...(g.storages ?? []), ...(g.members ?? [])].join("\n").toLowerCase().includes(word));
  return (
    <>
      <Top title={t("admin.tab.groups")} paictl="paictl group list" curl={curl("GET /api/v3/groups", {})}>
        <button type="button" title={t("csvMore")} disabled={!value.value} onClick={() => save("groups.csv", [csv(rows, columns)], "text/csv;charset=utf-8")}>
          <Icon name="down" /> {t("csv")}
        </button>
        <a class="button primary" href={address(["admin", "groups"], { add: "true" })}>
          <Icon name="plus" /> {t("admin.addGroup")}
        </a>
      </Top>
      <div class="filters">
        <Search label={t("admin.searchGroups")} value={q.get("keyword") ?? ""} />
      </div>
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {!value.value ? (
        error.value ? null : <Loading />
      ) : rows.length === 0 ? (
        <p class="empty">{t("admin.noGroup")}</p>
      ) : (
        <table class="rows groups">
          <thead>
            <tr>
              <th>{t("name")}</th>
              <th class="num">{t("admin.members")}</th>
              <th>{t("vcs")}</th>
              <th class="wide">{t("admin.storages")}</th>
              <th class="wide">{t("admin.pages")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((g) => (
              <tr key={g.name}>
                <td class="c-name">
                  <a class="whole" href={address(["admin", "groups", g.name])}>
                    {g.name}
                  </a>
                  {g.administrator ? <span class="tag strong">{t("admin.administrators")}</span> : null}
                  {g.description ? <div class="faint small cut">{g.description}</div> : null}
                </td>
                <td class="num">{g.members?.length ?? 0}</td>
                <td class="long">{g.administrator || g.allVirtualClusters ? t("admin.allVCs") : g.virtualClusters?.map((v) => v.name).join(", ") || <span class="faint">–</span>}</td>
                <td class="wide long">{g.storages?.join(", ") || <span class="faint">–</span>}</td>
                <td class="wide long">{g.administrator ? t("admin.allPages") : g.pages?.join(", ") || <span class="faint">–</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

/** The web pages that a group may grant. */
const pages = ["monitoring", "alerts", "monitoring-write"];
const priorities = ["oppo", "test", "prod", "crit"];

interface Draft {
  description: string;
  administrator: boolean;
  allVirtualClusters: boolean;
  virtualClusters: PeopleV1VCGrant[];
  storages: string[];
  pages: string[];
  external: [string, string][];
}

function draftOf(s: PeopleV1GroupSpec): Draft {
  return {
    description: s.description ?? "",
    administrator: s.administrator ?? false,
    allVirtualClusters: s.allVirtualClusters ?? false,
    virtualClusters: s.virtualClusters ?? [],
    storages: s.storages ?? [],
    pages: s.pages ?? [],
    external: (s.external ?? []).map((x) => [x.provider, x.name]),
  };
}

function specOf(base: PeopleV1GroupSpec, d: Draft): PeopleV1GroupSpec {
  return {
    ...base,
    description: d.description || undefined,
    administrator: d.administrator || undefined,
    allVirtualClusters: d.allVirtualClusters || undefined,
    virtualClusters: d.virtualClusters,
    storages: d.storages,
    pages: d.pages,
    external: d.external.filter((x) => x[0] || x[1]).map(([provider, name]) => ({ provider, name })),
  };
}

/** Returns a grant of a virtual cluster as an argument of paictl. */
function grantText(v: PeopleV1VCGrant): string {
  const options = [v.seeJobs ? "see-jobs" : "", v.hostNetwork ? "host-network" : "", v.maxPriority ?? ""].filter(Boolean).join(",");
  return quoted(v.name + (options ? "=" + options : ""));
}

/** Returns the arguments of paictl for what differs. */
function args(was: Draft, now: Draft): string[] {
  const out: string[] = [];
  if (was.description !== now.description) out.push("--description " + quoted(now.description));
  if (was.administrator !== now.administrator) out.push(now.administrator ? "--administrator" : "--administrator=false");
  if (was.allVirtualClusters !== now.allVirtualClusters) out.push(now.allVirtualClusters ? "--all-vcs" : "--all-vcs=false");
  for (const v of now.virtualClusters) if (!was.virtualClusters.some((x) => same(grantText(x), grantText(v)))) out.push("--add-vc " + grantText(v));
  for (const v of was.virtualClusters) if (!now.virtualClusters.some((x) => x.name === v.name)) out.push("--remove-vc " + quoted(v.name));
  const list = (flag: string, a: string[], b: string[]) => {
    for (const x of b) if (!a.includes(x)) out.push(`--add-${flag} ${quoted(x)}`);
    for (const x of a) if (!b.includes(x)) out.push(`--remove-${flag} ${quoted(x)}`);
  };
  list("storage", was.storages, now.storages);
  list("page", was.pages, now.pages);
  const text = (d: Draft) => d.external.filter((x) => x[0] && x[1]).map((x) => x.join("/"));
  list("external", text(was), text(now));
  return out;
}

function Form({ d, put }: { d: Draft; put: (change: Partial<Draft>) => void }) {
  const { value } = useRead("", (signal) => call("GET /api/v3/virtual-clusters", { signal }));
  const vcs = [...new Set([...ownVCs(), ...(value.value?.items ?? []).map((v) => v.name)])].sort();
  const change = (i: number, part: Partial<PeopleV1VCGrant>) => put({ virtualClusters: d.virtualClusters.map((v, j) => (j === i ? { ...v, ...part } : v)) });
  const left = vcs.filter((v) => !d.virtualClusters.some((x) => x.name === v));
  return (
    <>
      <Line label={t("admin.description")} value={d.description} set={(v) => put({ description: v })} />
      <Tick label={t("admin.grantsAdministration")} hint={t("admin.grantsAdministrationHint")} value={d.administrator} set={(v) => put({ administrator: v })} />
      <Tick label={t("admin.grantsAllVCs")} value={d.allVirtualClusters} set={(v) => put({ allVirtualClusters: v })} />
      <div class="field" role="group" aria-label={t("vcs")}>
        <span class="label">{t("vcs")}</span>
        {d.virtualClusters.map((v, i) => (
          <div key={v.name} class="grant">
            <b>{v.name}</b>
            <button type="button" class="square" aria-label={t("admin.removeName", { name: v.name })} title={t("admin.removeName", { name: v.name })} onClick={() => put({ virtualClusters: d.virtualClusters.filter((_, j) => j !== i) })}>
              <Icon name="close" />
            </button>
            <Tick label={t("admin.seeJobs")} value={v.seeJobs ?? false} set={(x) => change(i, { seeJobs: x || undefined })} />
            <Tick label={t("admin.hostNetwork")} value={v.hostNetwork ?? false} set={(x) => change(i, { hostNetwork: x || undefined })} />
            <select aria-label={t("admin.maxPriority")} title={t("admin.maxPriority")} value={v.maxPriority ?? ""} onChange={(e) => change(i, { maxPriority: e.currentTarget.value || undefined })}>
              <option value="">{t("admin.upTo", { name: "prod" })}</option>
              {priorities.map((p) => (
                <option key={p} value={p}>
                  {t("admin.upTo", { name: p })}
                </option>
              ))}
            </select>
          </div>
        ))}
        <div>
          <select
            aria-label={t("admin.addVCTo")}
            value=""
            disabled={left.length === 0}
            onChange={(e) => {
              if (e.currentTarget.value) put({ virtualClusters: [...d.virtualClusters, { name: e.currentTarget.value }] });
              e.currentTarget.value = "";
            }}
          >
            <option value="">{t("admin.addVCTo")}</option>
            {left.map((v) => (
              <option key={v} value={v}>
                {v}
              </option>
            ))}
          </select>
        </div>
      </div>
      <Names label={t("admin.storages")} hint={t("admin.storagesHint")} value={d.storages} set={(v) => put({ storages: v })} add={t("admin.addStorage")} />
      <div class="field" role="group" aria-label={t("admin.pages")}>
        <span class="label">{t("admin.pages")}</span>
        {pages.map((p) => (
          <Tick key={p} label={t(`admin.page.${p}` as "admin.page.alerts")} value={d.pages.includes(p)} set={(on) => put({ pages: pages.filter((x) => (x === p ? on : d.pages.includes(x))) })} />
        ))}
      </div>
      <Pairs label={t("admin.external")} hint={t("admin.externalHint")} value={d.external} set={(v) => put({ external: v })} second={t("admin.group")} />
    </>
  );
}

const nothing = draftOf({ name: "" });

export function NewGroup() {
  const name = useSignal("");
  const d = useSignal(nothing);
  const { busy, error, act } = useAct();
  const path = { group: name.value };
  const body = { spec: specOf({ name: name.value }, d.value) };
  const add = () =>
    act(async () => {
      await call("PUT /api/v3/groups/{group}", { path, body });
      toast(t("admin.added", { name: name.value }));
      go(address(["admin", "groups", name.value]));
    });
  const line = ["paictl group add", quoted(name.value || "NAME"), ...args(nothing, d.value).map((a) => a.replace(/^--add-/, "--"))].join(" ");
  return (
    <>
      <Top title={t("admin.addGroup")} up={["groups", t("admin.tab.groups")]} paictl={line} curl={curl("PUT /api/v3/groups/{group}", { path: { group: name.value || "NAME" }, body })} />
      <form
        class="form"
        onSubmit={(e) => {
          e.preventDefault();
          void add();
        }}
      >
        <Line label={t("name")} hint={t("admin.nameHint")} value={name.value} required set={(v) => (name.value = v)} />
        <Form d={d.value} put={(change) => (d.value = { ...d.value, ...change })} />
        {error.value ? <Problem of={error.value} /> : null}
        <div class="buttons">
          <a class="button" href={address(["admin", "groups"])}>
            {t("cancel")}
          </a>
          <button type="submit" class="primary" disabled={busy.value || !name.value}>
            {t("admin.add")}
          </button>
        </div>
        <Command lines={[line]} why={t("admin.asCommand")} />
      </form>
    </>
  );
}

export function GroupPage({ name }: { name: string }) {
  const path = { group: name };
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/groups/{group}", { path, signal }));
  const base = useSignal<PeopleV1GroupSpec | null>(null);
  const d = useSignal<Draft | null>(null);
  const { busy, error: refused, act } = useAct();
  const g = value.value;
  // An answer has the spec, and what isn't part of it.
  const spec = ({ members: _, created: __, ...rest }: V3ApiGroup): PeopleV1GroupSpec => rest;
  useEffect(() => {
    if (!g) return;
    const now = spec(g);
    d.value = d.value && base.value ? rebased(d.value, draftOf(base.value), draftOf(now)) : draftOf(now);
    base.value = now;
    refused.value = null;
  }, [g]);
  if (error.value) return <Problem of={error.value} again={again} />;
  if (!g || !d.value || !base.value) return <Loading />;
  const was = draftOf(base.value);
  const changed = !same(was, d.value);
  const next = specOf(base.value, d.value);
  const store = () =>
    act(async () => {
      const now = await call("PUT /api/v3/groups/{group}", { path, body: { was: base.value!, spec: next } });
      base.value = spec(now);
      d.value = draftOf(base.value);
      value.value = now;
      toast(t("admin.saved"));
    });
  const difference = args(was, d.value);
  const lines = difference.length ? [`paictl group set ${quoted(name)} ${difference.join(" ")}`] : [];
  return (
    <>
      <Top title={name} up={["groups", t("admin.tab.groups")]} paictl={lines[0] ?? `paictl group show ${quoted(name)}`} curl={changed ? curl("PUT /api/v3/groups/{group}", { path, body: { was: base.value, spec: next } }) : curl("GET /api/v3/groups/{group}", { path })}>
        <button
          type="button"
          class="danger"
          onClick={() =>
            ask({
              title: t("admin.askDeleteGroup", { name }),
              text: t("admin.deleteGroupHint", { n: g.members?.length ?? 0 }),
              yes: t("remove"),
              danger: true,
              act: async () => {
                await call("DELETE /api/v3/groups/{group}", { path });
                toast(t("admin.removed", { name }));
                go(address(["admin", "groups"]));
              },
            })
          }
        >
          <Icon name="trash" /> {t("remove")}
        </button>
      </Top>
      <div class="halves">
        <form
          class="form"
          onSubmit={(e) => {
            e.preventDefault();
            void store();
          }}
        >
          <Form d={d.value} put={(change) => (d.value = { ...d.value!, ...change })} />
          <Refusal of={refused.value} again={again} />
          <div class="buttons">
            {changed ? (
              <button type="button" onClick={() => (d.value = was)}>
                {t("admin.discard")}
              </button>
            ) : null}
            <button type="submit" class="primary" disabled={busy.value || !changed}>
              {t("admin.save")}
            </button>
          </div>
          <Command lines={lines} why={t("admin.asCommand")} />
        </form>
        <Members group={name} members={g.members ?? []} changed={again} />
      </div>
    </>
  );
}

/** The members of a group. The groups of a person are part of the person, so that a change is one of the person. */
function Members({ group, members, changed }: { group: string; members: string[]; changed: () => void }) {
  const { value, error, again } = useRead(members.join(), (signal) => call("GET /api/v3/users", { signal }));
  const { busy, error: refused, act } = useAct();
  const all = value.value?.items ?? [];
  const removable = (name: string) => all.find((u) => u.name === name)?.spec?.groups?.includes(group) ?? false;
  const others = all.filter((u) => !members.includes(u.name)).map((u) => u.name);
  const change = (name: string, to: (groups: string[]) => string[], done: string) =>
    act(async () => {
      const path = { user: name };
      const was = (await call("GET /api/v3/users/{user}", { path })).spec!;
      await call("PUT /api/v3/users/{user}", { path, body: { was, spec: { ...was, groups: to(was.groups ?? []) } } });
      toast(done);
      changed();
    });
  return (
    <div>
      <h2>
        {t("admin.members")} <span class="faint">{members.length}</span>
      </h2>
      <div class="form">
        {error.value ? <Problem of={error.value} again={again} /> : null}
        <Refusal of={refused.value} again={changed} />
        <div>
          <select
            class="add-member"
            aria-label={t("admin.addMember")}
            value=""
            disabled={busy.value || others.length === 0}
            onChange={(e) => {
              const name = e.currentTarget.value;
              e.currentTarget.value = "";
              if (name) void change(name, (groups) => [...groups, group], t("admin.memberAdded", { name, group }));
            }}
          >
            <option value="">{t("admin.addMember")}</option>
            {others.map((x) => (
              <option key={x} value={x}>
                {x}
              </option>
            ))}
          </select>
        </div>
        {members.length === 0 ? <p class="faint">{t("admin.noMembers")}</p> : null}
        {members.length > 0 ? (
          <table class="rows members">
            <tbody>
              {members.map((name) => (
                <tr key={name}>
                  <td>
                    <a href={address(["admin", "people", name])}>{name}</a> <span class="faint">{all.find((u) => u.name === name)?.displayName}</span>
                  </td>
                  <td class="num">
                    {removable(name) ? (
                      <button type="button" disabled={busy.value} onClick={() => void change(name, (groups) => groups.filter((x) => x !== group), t("admin.memberRemoved", { name, group }))}>
                        {t("admin.removeMember")}
                      </button>
                    ) : value.value ? (
                      <span class="faint">{t("admin.byProvider")}</span>
                    ) : null}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : null}
        <Command lines={[`paictl group add-member ${quoted(group)} NAME`, `paictl group remove-member ${quoted(group)} NAME`]} />
      </div>
    </div>
  );
}
