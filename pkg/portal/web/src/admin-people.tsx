// People: who may sign in, their groups, passwords and tokens.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Command, Field, Line, More, Names, Pairs, Refusal, Search, Segments, Tick, Top, rebased, same, some } from "./admin-parts";
import { call } from "./api";
import { csv } from "./list";
import { useAct, useRead } from "./read";
import { address, go, place, setQuery } from "./route";
import { me } from "./session";
import { curl, quoted } from "./shell";
import { maybe, t } from "./text";
import type { PeopleV1UserSpec, V3ApiTokenRecord, V3ApiUser } from "./types";
import { Ago, Icon, Loading, Problem, ask, save, toast } from "./ui";

function PersonState({ u }: { u: V3ApiUser }) {
  return (
    <span class={`state ${u.disabled ? "off" : "good"}`}>
      <i class="dot" />
      {t(u.disabled ? "admin.disabled" : "admin.active")}
    </span>
  );
}

const columns: [string, (u: V3ApiUser) => unknown][] = [
  ["name", (u) => u.name],
  ["displayName", (u) => u.displayName],
  ["email", (u) => u.email],
  ["groups", (u) => u.groups?.join(" ")],
  ["administrator", (u) => u.administrator],
  ["disabled", (u) => u.disabled],
  ["created", (u) => u.created],
  ["lastSignIn", (u) => u.lastSignIn],
];

export function People() {
  const q = place.value.query;
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/users", { signal }));
  const most = useSignal(some);
  const word = (q.get("keyword") ?? "").toLowerCase();
  const choice = q.get("state") ?? "";
  const group = q.get("group") ?? "";
  const all = value.value?.items ?? [];
  const groups = [...new Set(all.flatMap((u) => u.groups ?? []).concat(group || []))].sort();
  const rows = all.filter(
    (u) =>
      (!word || [u.name, u.displayName, u.email, ...(u.groups ?? [])].join("\n").toLowerCase().includes(word)) && (!group || u.groups?.includes(group)) && (choice === "administrators" ? u.administrator : choice === "disabled" ? u.disabled : true),
  );
  return (
    <>
      <Top title={t("admin.tab.people")} paictl={"paictl user list" + (group ? " --group " + quoted(group) : "")} curl={curl("GET /api/v3/users", {})}>
        <button type="button" title={t("csvMore")} disabled={!value.value} onClick={() => save("people.csv", [csv(rows, columns)], "text/csv;charset=utf-8")}>
          <Icon name="down" /> {t("csv")}
        </button>
        <a class="button primary" href={address(["admin", "people"], { add: "true" })}>
          <Icon name="plus" /> {t("admin.addPerson")}
        </a>
      </Top>
      <div class="filters">
        <Search label={t("admin.searchPeople")} value={q.get("keyword") ?? ""} />
        <Segments
          label={t("state")}
          of="state"
          value={choice}
          choices={[
            ["", t("everyone")],
            ["administrators", t("admin.administrators")],
            ["disabled", t("admin.disabled")],
          ]}
        />
        <select aria-label={t("admin.group")} value={group} onChange={(e) => setQuery({ group: e.currentTarget.value || undefined })}>
          <option value="">{t("admin.anyGroup")}</option>
          {groups.map((g) => (
            <option key={g} value={g}>
              {g}
            </option>
          ))}
        </select>
      </div>
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {!value.value ? (
        error.value ? null : <Loading />
      ) : rows.length === 0 ? (
        <p class="empty">{t("admin.noPerson")}</p>
      ) : (
        <>
          <table class="rows people">
            <thead>
              <tr>
                <th>{t("name")}</th>
                <th class="wide">{t("admin.displayName")}</th>
                <th class="wide">{t("admin.groups")}</th>
                <th>{t("state")}</th>
                <th class="c-time">{t("admin.lastSignIn")}</th>
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, most.value).map((u) => (
                <tr key={u.name}>
                  <td class="c-name">
                    <a class="whole" href={address(["admin", "people", u.name])}>
                      {u.name}
                    </a>
                    {u.administrator ? <span class="tag strong">{t("admin.administrator")}</span> : null}
                  </td>
                  <td class="wide cut">{u.displayName || <span class="faint">{u.email}</span>}</td>
                  <td class="wide long">
                    {u.groups?.map((g) => (
                      <span key={g} class="tag">
                        {g}
                      </span>
                    ))}
                  </td>
                  <td>
                    <PersonState u={u} />
                  </td>
                  <td class="c-time">{u.lastSignIn ? <Ago time={u.lastSignIn} /> : t("admin.never")}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {rows.length > most.value ? <More n={rows.length} most={most} /> : <p class="under faint">{t("admin.people", { n: rows.length })}</p>}
        </>
      )}
    </>
  );
}

/** The fields of a person that the form has. */
interface Draft {
  displayName: string;
  email: string;
  groups: string[];
  identities: [string, string][];
  disabled: boolean;
}

function draftOf(s: PeopleV1UserSpec): Draft {
  return { displayName: s.displayName ?? "", email: s.email ?? "", groups: s.groups ?? [], identities: (s.identities ?? []).map((i) => [i.provider, i.subject]), disabled: s.disabled ?? false };
}

const identities = (d: Draft) => d.identities.filter((p) => p[0] || p[1]).map(([provider, subject]) => ({ provider, subject }));

/** Returns the commands that make the same changes of a person. */
function commands(name: string, was: Draft, now: Draft): string[] {
  const who = quoted(name);
  const out: string[] = [];
  const set: string[] = [];
  if (was.displayName !== now.displayName) set.push("--display-name " + quoted(now.displayName));
  if (was.email !== now.email) set.push("--email " + quoted(now.email));
  if (!same(was.groups, now.groups) && now.groups.length > 0) set.push(...now.groups.map((g) => "--group " + quoted(g)));
  if (set.length > 0) out.push(`paictl user set ${who} ${set.join(" ")}`);
  if (now.groups.length === 0) for (const g of was.groups) out.push(`paictl group remove-member ${quoted(g)} ${who}`);
  const text = (p: [string, string]) => `paictl user link ${who} --provider ${quoted(p[0])} --subject ${quoted(p[1])}`;
  for (const p of was.identities) if (!now.identities.some((x) => same(x, p))) out.push(text(p) + " --remove");
  for (const p of now.identities) if (p[0] && p[1] && !was.identities.some((x) => same(x, p))) out.push(text(p));
  if (was.disabled !== now.disabled) out.push(`paictl user ${now.disabled ? "disable" : "enable"} ${who}`);
  return out;
}

/** The names of all groups; empty until the server has answered. */
function useGroups(): string[] {
  const { value } = useRead("", (signal) => call("GET /api/v3/groups", { signal }));
  return (value.value?.items ?? []).map((g) => g.name);
}

export function NewPerson() {
  const groups = useGroups();
  const name = useSignal("");
  const password = useSignal("");
  const d = useSignal<Draft>({ displayName: "", email: "", groups: [], identities: [], disabled: false });
  const takeOver = useSignal(false);
  const { busy, error, act } = useAct();
  const put = (change: Partial<Draft>) => (d.value = { ...d.value, ...change });
  const body = { name: name.value, displayName: d.value.displayName || undefined, email: d.value.email || undefined, groups: d.value.groups, identities: identities(d.value), takeOverHistory: takeOver.value || undefined };
  const add = () =>
    act(async () => {
      await call("POST /api/v3/users", { body: { ...body, password: password.value || undefined } });
      toast(t("admin.added", { name: name.value }));
      go(address(["admin", "people", name.value]));
    });
  const command = ["paictl user add", quoted(name.value || "NAME")];
  if (d.value.displayName) command.push("--display-name " + quoted(d.value.displayName));
  if (d.value.email) command.push("--email " + quoted(d.value.email));
  command.push(...d.value.groups.map((g) => "--group " + quoted(g)));
  if (takeOver.value) command.push("--take-over-history");
  if (!password.value) command.push("--no-password");
  const lines = [command.join(" "), ...commands(name.value || "NAME", { ...d.value, identities: [] }, d.value)];
  return (
    <>
      <Top title={t("admin.addPerson")} up={["people", t("admin.tab.people")]} paictl={lines.join("\n")} curl={curl("POST /api/v3/users", { body })} />
      <form
        class="form"
        onSubmit={(e) => {
          e.preventDefault();
          void add();
        }}
      >
        <Line label={t("name")} hint={t("admin.nameHint")} value={name.value} required set={(v) => (name.value = v)} />
        <Line label={t("admin.displayName")} value={d.value.displayName} set={(v) => put({ displayName: v })} />
        <Line label={t("admin.email")} type="email" value={d.value.email} set={(v) => put({ email: v })} />
        <Names label={t("admin.groups")} hint={t("admin.defaultGroup")} value={d.value.groups} all={groups} set={(v) => put({ groups: v })} add={t("admin.addGroupTo")} />
        <Username name={name.value} />
        <Line label={t("admin.password")} hint={t("admin.passwordHint")} type="password" value={password.value} set={(v) => (password.value = v)} />
        <Pairs label={t("admin.identities")} hint={t("admin.identitiesHint")} value={d.value.identities} set={(v) => put({ identities: v })} second={t("admin.subject")} />
        <Tick label={t("admin.takeOver")} hint={t("admin.takeOverHint")} value={takeOver.value} set={(v) => (takeOver.value = v)} />
        {error.value ? <Problem of={error.value} /> : null}
        <div class="buttons">
          <a class="button" href={address(["admin", "people"])}>
            {t("cancel")}
          </a>
          <button type="submit" class="primary" disabled={busy.value || !name.value}>
            {t("admin.add")}
          </button>
        </div>
        <Command lines={lines} why={t("admin.asCommand")} />
      </form>
    </>
  );
}

export function PersonPage({ name }: { name: string }) {
  const path = { user: name };
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/users/{user}", { path, signal }));
  const groups = useGroups();
  const base = useSignal<PeopleV1UserSpec | null>(null);
  const d = useSignal<Draft | null>(null);
  const { busy, error: refused, act } = useAct();
  const put = (change: Partial<Draft>) => (d.value = { ...d.value!, ...change });
  const u = value.value;
  useEffect(() => {
    if (!u?.spec) return;
    const now = draftOf(u.spec);
    d.value = d.value && base.value ? rebased(d.value, draftOf(base.value), now) : now;
    base.value = u.spec;
    refused.value = null;
  }, [u]);
  if (error.value) return <Problem of={error.value} again={again} />;
  if (!u || !d.value || !base.value) return <Loading />;
  const was = draftOf(base.value);
  const changed = !same(was, d.value);
  const spec: PeopleV1UserSpec = { ...base.value, displayName: d.value.displayName || undefined, email: d.value.email || undefined, groups: d.value.groups, identities: identities(d.value), disabled: d.value.disabled || undefined };
  const store = () =>
    act(async () => {
      const now = await call("PUT /api/v3/users/{user}", { path, body: { was: base.value!, spec } });
      base.value = now.spec ?? spec;
      d.value = draftOf(base.value);
      value.value = now;
      toast(t("admin.saved"));
    });
  const lines = commands(name, was, d.value);
  const external = (u.groups ?? []).filter((g) => !was.groups.includes(g));
  return (
    <>
      <Top title={name} up={["people", t("admin.tab.people")]} paictl={lines.length ? lines.join("\n") : `paictl user show ${quoted(name)}`} curl={changed ? curl("PUT /api/v3/users/{user}", { path, body: { was: base.value, spec } }) : curl("GET /api/v3/users/{user}", { path })}>
        <a class="button" href={address(["admin", "audit"], { actor: name })}>
          {t("admin.theirAudit")}
        </a>
      </Top>
      <dl class="facts">
        <div>
          <dt>{t("state")}</dt>
          <dd>
            <PersonState u={u} />
            {u.administrator ? <span class="tag strong">{t("admin.administrator")}</span> : null}
          </dd>
        </div>
        <div>
          <dt>{t("admin.lastSignIn")}</dt>
          <dd>{u.lastSignIn ? <Ago time={u.lastSignIn} /> : t("admin.never")}</dd>
        </div>
        <div>
          <dt>{t("admin.created")}</dt>
          <dd>
            <Ago time={u.created} />
          </dd>
        </div>
        <div>
          <dt>{t("vcs")}</dt>
          <dd>{u.allVirtualClusters ? t("admin.allVCs") : u.virtualClusters?.map((v) => v.name).join(", ") || "–"}</dd>
        </div>
        <div>
          <dt>{t("admin.storages")}</dt>
          <dd>{u.storages?.join(", ") || "–"}</dd>
        </div>
      </dl>
      <div class="halves">
        <form
          class="form"
          onSubmit={(e) => {
            e.preventDefault();
            void store();
          }}
        >
          <Line label={t("admin.displayName")} value={d.value.displayName} set={(v) => put({ displayName: v })} />
          <Line label={t("admin.email")} type="email" value={d.value.email} set={(v) => put({ email: v })} />
          <Names
            label={t("admin.groups")}
            hint={external.length ? t("admin.externalGroups", { names: external.join(", ") }) : undefined}
            value={d.value.groups}
            all={groups}
            set={(v) => put({ groups: v })}
            add={t("admin.addGroupTo")}
          />
          <Pairs label={t("admin.identities")} hint={t("admin.identitiesHint")} value={d.value.identities} set={(v) => put({ identities: v })} second={t("admin.subject")} />
          <Tick label={t("admin.disable")} hint={t("admin.disableHint")} value={d.value.disabled} set={(v) => put({ disabled: v })} />
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
        <div>
          <Password name={name} />
          <Tokens name={name} />
          <h2>{t("admin.removePerson")}</h2>
          <div class="form">
            <p>{t("admin.removeHint")}</p>
            <div class="buttons">
              <button
                type="button"
                class="danger"
                onClick={() =>
                  ask({
                    title: t("admin.askRemove", { name }),
                    text: t("admin.removeHint"),
                    yes: t("admin.removePerson"),
                    danger: true,
                    act: async () => {
                      await call("DELETE /api/v3/users/{user}", { path });
                      toast(t("admin.removed", { name }));
                      go(address(["admin", "people"]));
                    },
                  })
                }
              >
                <Icon name="trash" /> {t("admin.removePerson")}
              </button>
            </div>
            <Command lines={[`paictl user remove ${quoted(name)}`]} />
          </div>
        </div>
      </div>
    </>
  );
}

/** Tells programs that keep passwords whose password the form is about. */
const Username = ({ name }: { name: string }) => <input type="text" autocomplete="username" value={name} readOnly hidden />;

function Password({ name }: { name: string }) {
  const own = name === me.value?.name;
  const old = useSignal("");
  const password = useSignal("");
  const { busy, error, act } = useAct();
  const set = () =>
    act(async () => {
      await call("PUT /api/v3/users/{user}/password", { path: { user: name }, body: { password: password.value, oldPassword: old.value || undefined } });
      old.value = password.value = "";
      toast(t("admin.passwordSet"));
    });
  return (
    <>
      <h2>{t("admin.password")}</h2>
      <form
        class="form"
        onSubmit={(e) => {
          e.preventDefault();
          void set();
        }}
      >
        <Username name={name} />
        {own ? (
          <Field label={t("admin.oldPassword")}>{(id) => <input id={id} type="password" autocomplete="current-password" value={old.value} onInput={(e) => (old.value = e.currentTarget.value)} />}</Field>
        ) : null}
        <Line label={t("admin.newPassword")} hint={t("admin.newPasswordHint")} type="password" value={password.value} set={(v) => (password.value = v)} />
        {error.value ? <Problem of={error.value} /> : null}
        <div class="buttons">
          <button type="submit" disabled={busy.value || !password.value || (own && !old.value)}>
            {t("admin.setPassword")}
          </button>
        </div>
        <Command lines={[`paictl user passwd ${quoted(name)}`]} />
      </form>
    </>
  );
}

function Tokens({ name }: { name: string }) {
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/tokens", { query: { user: name }, signal }));
  const items = value.value?.items ?? [];
  const own = (r: V3ApiTokenRecord) => r.id === me.value?.token.id;
  const revoke = (of: V3ApiTokenRecord[], title: string) =>
    ask({
      title,
      text: t(of.some(own) ? "admin.revokeOwn" : "admin.revokeHint"),
      yes: t("admin.revoke"),
      danger: true,
      act: async () => {
        try {
          // The session of this page is the last one.
          for (const r of [...of].sort((a, b) => Number(own(a)) - Number(own(b)))) await call("DELETE /api/v3/tokens/{token}", { path: { token: r.id } });
          toast(t("admin.revoked"));
        } finally {
          again();
        }
      },
    });
  return (
    <>
      <h2>{t("admin.tokens")}</h2>
      <div class="form">
        {error.value ? <Problem of={error.value} again={again} /> : null}
        {value.value && items.length === 0 ? <p class="faint">{t("admin.noTokens")}</p> : null}
        {items.length > 0 ? (
          <>
            <table class="rows tokens">
              <tbody>
                {items.map((r) => (
                  <tr key={r.id}>
                    <td class="cut" title={r.id}>
                      {maybe("admin.kind." + r.kind, r.kind)} {r.label ? <b>{r.label}</b> : null}
                      <br />
                      <span class="faint small">
                        {r.used ? t("admin.used") + " " : t("admin.created") + " "}
                        <Ago time={r.used ?? r.created} /> {r.address} {own(r) ? t("admin.thisSession") : null}
                      </span>
                    </td>
                    <td class="num">
                      <button type="button" onClick={() => revoke([r], t("admin.askRevoke", { name: r.label || r.id }))}>
                        {t("admin.revoke")}
                      </button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
            <div class="buttons">
              <button type="button" class="danger" onClick={() => revoke(items, t("admin.askRevokeAll", { name }))}>
                {t("admin.revokeAll")}
              </button>
            </div>
          </>
        ) : null}
        <Command lines={[`paictl token revoke --user ${quoted(name)} --all`]} />
      </div>
    </>
  );
}
