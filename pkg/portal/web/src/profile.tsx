// The person: what they may use, their keys, tokens and password.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { call, toSignIn } from "./api";
import { useAct, useRead } from "./read";
import { address } from "./route";
import { begin, me, ownVCs } from "./session";
import { curl } from "./shell";
import { fingerprint, readKey } from "./sshkey";
import { maybe, t } from "./text";
import type { PeopleV1SSHKey, PeopleV1UserSpec, V3ApiIssuedToken, V3ApiTokenRecord, V3ApiUser } from "./types";
import { Ago, Icon, Loading, Menu, Problem, ask, copy, toast } from "./ui";

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="panel">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

export function Profile() {
  const name = me.value!.name;
  const { value, error, again } = useRead(name, (signal) => call("GET /api/v3/users/{user}", { path: { user: name }, signal }));
  useEffect(() => {
    document.title = t("profile") + " – paictl";
  }, []);
  const u = value.value;
  const change = async (next: Partial<PeopleV1UserSpec>) => {
    const was = value.value!.spec!;
    value.value = await call("PUT /api/v3/users/{user}", { path: { user: name }, body: { was, spec: { ...was, ...next } } });
  };
  return (
    <section class="page profile">
      <header class="top">
        <h1>{u?.displayName || name}</h1>
        <span class="grow" />
        <Menu
          label={t("more")}
          icon="more"
          items={[
            { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl whoami") },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/whoami", {})) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
          ]}
        />
      </header>
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {!u && !error.value ? <Loading /> : null}
      <div class="panels">
        {u ? <Self u={u} /> : null}
        {u?.spec ? <Names u={u} change={change} /> : null}
        {u?.spec ? <Keys u={u} change={change} /> : null}
        <Password name={name} />
        <Tokens />
      </div>
    </section>
  );
}

function List({ names, none }: { names: string[]; none: string }) {
  return names.length ? (
    <>
      {names.map((x) => (
        <span key={x} class="tag">
          {x}
        </span>
      ))}
    </>
  ) : (
    <span class="faint">{none}</span>
  );
}

function Self({ u }: { u: V3ApiUser }) {
  return (
    <Part title={t("account")}>
      <dl class="pairs">
        <div>
          <dt>{t("userName")}</dt>
          <dd>
            {u.name}
            {u.administrator ? <span class="tag official">{t("administrator")}</span> : null}
          </dd>
        </div>
        <div>
          <dt>{t("groups")}</dt>
          <dd>
            <List names={u.groups ?? []} none={t("noGroups")} />
          </dd>
        </div>
        <div>
          <dt>{t("storages")}</dt>
          <dd>
            <List names={u.storages ?? []} none={t("noStorages")} />
          </dd>
        </div>
        {u.pages?.length ? (
          <div>
            <dt>{t("pages")}</dt>
            <dd>
              <List names={u.pages} none="" />
            </dd>
          </div>
        ) : null}
        {u.identities?.length ? (
          <div>
            <dt>{t("identities")}</dt>
            <dd>
              <List names={u.identities.map((i) => i.provider)} none="" />
            </dd>
          </div>
        ) : null}
        {u.lastSignIn ? (
          <div>
            <dt>{t("lastSignIn")}</dt>
            <dd>
              <Ago time={u.lastSignIn} />
            </dd>
          </div>
        ) : null}
      </dl>
      <h3>{t("vcs")}</h3>
      {u.allVirtualClusters || u.administrator ? <p>{t("everyVC")}</p> : null}
      {u.virtualClusters?.length ? (
        <ul class="grants">
          {u.virtualClusters.map((v) => (
            <li key={v.name}>
              <a href={address(["jobs"], { vc: v.name, state: "active" })}>{v.name}</a>
              <span class="faint">
                {[t("grant.submit", { priority: v.maxPriority || "prod" }), v.seeJobs ? t("grant.seeJobs") : "", v.hostNetwork ? t("grant.hostNetwork") : ""].filter(Boolean).join(" · ")}
              </span>
            </li>
          ))}
        </ul>
      ) : u.allVirtualClusters || u.administrator ? null : (
        <p class="faint">{t("noVCs")}</p>
      )}
    </Part>
  );
}

type Change = (next: Partial<PeopleV1UserSpec>) => Promise<void>;

function Names({ u, change }: { u: V3ApiUser; change: Change }) {
  const form = useRef<HTMLFormElement>(null);
  const { busy, error, act } = useAct();
  const submit = (e: Event) => {
    e.preventDefault();
    const f = new FormData(form.current!);
    const text = (name: string) => String(f.get(name) ?? "").trim() || undefined;
    void act(async () => {
      await change({ displayName: text("displayName"), email: text("email"), defaultVirtualCluster: text("defaultVC") });
      toast(t("done.profile"));
      void begin();
    });
  };
  return (
    <Part title={t("nameAndMail")}>
      <form ref={form} class="fields" onSubmit={submit}>
        {error.value ? <Problem of={error.value} /> : null}
        <label>
          <span>{t("displayName")}</span>
          <input name="displayName" defaultValue={u.displayName} maxLength={256} autocomplete="name" />
        </label>
        <label>
          <span>{t("email")}</span>
          <input name="email" type="email" defaultValue={u.email} autocomplete="email" />
        </label>
        <label>
          <span>{t("defaultVC")}</span>
          <input name="defaultVC" list="own-vcs" defaultValue={u.spec?.defaultVirtualCluster} placeholder="default" maxLength={63} />
        </label>
        <datalist id="own-vcs">
          {ownVCs().map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <p class="faint small">{t("defaultVCHint")}</p>
        <button type="submit" disabled={busy.value}>
          {t("save")}
        </button>
      </form>
    </Part>
  );
}

function Key({ k, remove }: { k: PeopleV1SSHKey; remove: () => void }) {
  const key = readKey(k.value);
  const sum = useSignal("");
  useEffect(() => {
    if (typeof key !== "string") void fingerprint(key).then((x) => (sum.value = x));
  }, [k.value]);
  return (
    <li>
      <div>
        <b>{k.title || (typeof key !== "string" && key.comment) || t("untitled")}</b>
        <p class="faint small">
          {typeof key === "string" ? "" : key.type} <code>{sum.value}</code>
        </p>
      </div>
      <button type="button" class="square" title={t("remove")} aria-label={t("remove")} onClick={remove}>
        <Icon name="trash" />
      </button>
    </li>
  );
}

function Keys({ u, change }: { u: V3ApiUser; change: Change }) {
  const form = useRef<HTMLFormElement>(null);
  const wrong = useSignal("");
  const { busy, error, act } = useAct();
  const all = u.sshKeys ?? [];
  const add = (e: Event) => {
    e.preventDefault();
    const f = new FormData(form.current!);
    const value = String(f.get("value") ?? "").trim();
    const key = readKey(value);
    wrong.value = typeof key === "string" ? t(key) : all.some((k) => k.value.split(" ")[1] === value.split(/\s+/)[1]) ? t("key.known") : "";
    if (wrong.value || typeof key === "string") return;
    void act(async () => {
      await change({ sshKeys: [...all, { title: String(f.get("title") ?? "").trim() || key.comment, value }] });
      form.current?.reset();
      toast(t("done.addKey"));
    });
  };
  const remove = (k: PeopleV1SSHKey) =>
    ask({
      title: t("ask.removeKey", { name: k.title || t("untitled") }),
      text: t("ask.removeKey.more"),
      yes: t("remove"),
      danger: true,
      act: () => change({ sshKeys: all.filter((x) => x !== k) }),
    });
  return (
    <Part title={t("sshKeys")}>
      {all.length ? (
        <ul class="entries">
          {all.map((k) => (
            <Key key={k.value} k={k} remove={() => remove(k)} />
          ))}
        </ul>
      ) : (
        <p class="faint">{t("noKeys")}</p>
      )}
      <form ref={form} class="fields" onSubmit={add}>
        {error.value ? <Problem of={error.value} /> : null}
        <label>
          <span>{t("publicKey")}</span>
          <textarea name="value" class="mono" required rows={3} spellcheck={false} autocomplete="off" placeholder="ssh-ed25519 AAAA… ann@laptop" onInput={() => (wrong.value = "")} />
        </label>
        {wrong.value ? (
          <p class="bad" role="alert">
            {wrong.value}
          </p>
        ) : null}
        <label>
          <span>{t("title")}</span>
          <input name="title" autocomplete="off" />
        </label>
        <button type="submit" disabled={busy.value}>
          {t("addKey")}
        </button>
      </form>
    </Part>
  );
}

function Password({ name }: { name: string }) {
  const form = useRef<HTMLFormElement>(null);
  const wrong = useSignal("");
  const { busy, error, act } = useAct();
  const submit = (e: Event) => {
    e.preventDefault();
    const f = new FormData(form.current!);
    const text = (field: string) => String(f.get(field) ?? "");
    wrong.value = text("new") === text("again") ? "" : t("passwordsDiffer");
    if (wrong.value) return;
    void act(async () => {
      await call("PUT /api/v3/users/{user}/password", { path: { user: name }, body: { oldPassword: text("old"), password: text("new") } });
      toSignIn();
    });
  };
  return (
    <Part title={t("password")}>
      <form ref={form} class="fields" onSubmit={submit}>
        {error.value ? <Problem of={error.value} /> : null}
        <input type="text" name="username" value={name} autocomplete="username" hidden readOnly />
        <label>
          <span>{t("oldPassword")}</span>
          <input name="old" type="password" required autocomplete="current-password" />
        </label>
        <label>
          <span>{t("newPassword")}</span>
          <input name="new" type="password" required autocomplete="new-password" />
        </label>
        <label>
          <span>{t("newPasswordAgain")}</span>
          <input name="again" type="password" required autocomplete="new-password" onInput={() => (wrong.value = "")} />
        </label>
        {wrong.value ? (
          <p class="bad" role="alert">
            {wrong.value}
          </p>
        ) : null}
        <p class="faint small">{t("passwordEnds")}</p>
        <button type="submit" disabled={busy.value}>
          {t("changePassword")}
        </button>
      </form>
    </Part>
  );
}

const scopes = ["read", "submit", "admin", "secrets"] as const;
const lives = ["30", "90", "365", "0"] as const; // days; 0 is without an end

function Tokens() {
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/tokens", { signal }));
  const form = useRef<HTMLFormElement>(null);
  const { busy, error: refused, act } = useAct();
  const made = useSignal<V3ApiIssuedToken | null>(null);
  const all = value.value?.items ?? [];
  const create = (e: Event) => {
    e.preventDefault();
    const f = new FormData(form.current!);
    void act(async () => {
      const body = { label: String(f.get("label") ?? "").trim(), scopes: f.getAll("scopes").map(String), seconds: Number(f.get("days")) * 86_400 };
      made.value = await call("POST /api/v3/tokens", { body });
      form.current?.reset();
      again();
    });
  };
  const revoke = (r: V3ApiTokenRecord) =>
    ask({
      title: t("ask.revoke", { name: r.label || maybe("kind." + r.kind, r.kind) }),
      text: t(r.id === me.value?.token.id ? "ask.revoke.own" : "ask.revoke.more"),
      yes: t("revoke"),
      danger: true,
      act: async () => {
        await call("DELETE /api/v3/tokens/{token}", { path: { token: r.id } });
        if (r.id === me.value?.token.id) toSignIn();
        toast(t("done.revoke"));
        again();
      },
    });
  return (
    <section class="panel wide">
      <h2>{t("tokens")}</h2>
      <p class="faint">{t("tokensHint")}</p>
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {made.value ? (
        <div class="made" role="status">
          <p>{t("tokenOnce", { name: made.value.record.label || made.value.record.id })}</p>
          <div class="secret">
            <code>{made.value.token}</code>
            <button type="button" class="primary" onClick={() => void copy(made.value!.token)}>
              <Icon name="copy" /> {t("copy")}
            </button>
            <button type="button" onClick={() => (made.value = null)}>
              {t("close")}
            </button>
          </div>
        </div>
      ) : null}
      {value.value && all.length === 0 ? <p class="faint">{t("noTokens")}</p> : null}
      {all.length ? (
        <div class="scrolls" tabIndex={0}>
          <table class="rows">
            <thead>
              <tr>
                <th>{t("label")}</th>
                <th>{t("scopes")}</th>
                <th>{t("createdAt")}</th>
                <th>{t("lastUsed")}</th>
                <th>{t("expires")}</th>
                <th>{t("client")}</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {all.map((r) => (
                <tr key={r.id} data-token={r.id}>
                  <td>
                    {r.label || <span class="faint">{maybe("kind." + r.kind, r.kind)}</span>}
                    {r.id === me.value?.token.id ? <span class="tag">{t("thisSession")}</span> : null}
                  </td>
                  <td>{r.scopes?.join(", ")}</td>
                  <td>
                    <Ago time={r.created} />
                  </td>
                  <td>{r.used ? <Ago time={r.used} /> : <span class="faint">{t("never")}</span>}</td>
                  <td>{r.expires ? <Ago time={r.expires} /> : <span class="faint">{t("never")}</span>}</td>
                  <td class="client" title={r.client}>
                    {r.client} <span class="faint">{r.address}</span>
                  </td>
                  <td class="num">
                    <button type="button" onClick={() => revoke(r)}>
                      {t("revoke")}
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      <form ref={form} class="fields new-token" onSubmit={create}>
        <h3>{t("newToken")}</h3>
        {refused.value ? <Problem of={refused.value} /> : null}
        <div class="line">
          <label>
            <span>{t("label")}</span>
            <input name="label" required maxLength={200} autocomplete="off" />
          </label>
          <label>
            <span>{t("validFor")}</span>
            <select name="days">
              {lives.map((x) => (
                <option key={x} value={x} selected={x === "90"}>
                  {x === "0" ? t("untilRevoked") : t("lastDays", { n: x })}
                </option>
              ))}
            </select>
          </label>
          <fieldset>
            <legend>{t("scopes")}</legend>
            <div class="choices">
              {scopes.map((x) =>
                x === "admin" && !me.value?.grants.administrator ? null : (
                  <label key={x} class="tick" title={t(`scope.${x}`)}>
                    <input type="checkbox" name="scopes" value={x} defaultChecked={x === "read" || x === "submit"} /> {x}
                  </label>
                ),
              )}
            </div>
          </fieldset>
          <button type="submit" disabled={busy.value}>
            {t("createToken")}
          </button>
        </div>
      </form>
    </section>
  );
}
