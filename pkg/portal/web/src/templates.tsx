// Job templates: the list, a template, and the form that adds or changes one.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, failure, type Failure } from "./api";
import { Parameters } from "./form";
import { useKeys } from "./keys";
import { filled, parameters } from "./parameters";
import { useRead } from "./read";
import { address, go, place, setQuery, type Query } from "./route";
import { me } from "./session";
import { curl, quoted } from "./shell";
import { text as draft } from "./submit";
import { isOfficial, mayChange, nameIn, official, specOf } from "./template";
import { t, type Text } from "./text";
import type { PeopleV1TemplateSpec, V3ApiTemplate } from "./types";
import { Ago, Icon, Loading, Menu, Problem, ask, copy, save, toast } from "./ui";

const views = ["all", "mine", "shared", "official", "starred"] as const;
const orders = ["stars", "uses", "updated", "name"] as const;
type Order = (typeof orders)[number];

function fits(x: V3ApiTemplate, view: string, label: string): boolean {
  if (label && !x.tags?.includes(label) && !x.categories?.includes(label)) return false;
  switch (view) {
    case "mine":
      return x.author === me.value?.name;
    case "shared":
      return x.author !== me.value?.name && !x.builtIn;
    case "official":
      return isOfficial(x);
    case "starred":
      return x.starred;
  }
  return true;
}

/** Orders templates: those of people first, and then the built-in ones, which have no times. */
function compare(order: Order) {
  return (a: V3ApiTemplate, b: V3ApiTemplate) => {
    if (a.builtIn !== b.builtIn) return a.builtIn ? 1 : -1;
    const by = order === "name" ? 0 : order === "updated" ? Date.parse(b.updated ?? "0") - Date.parse(a.updated ?? "0") : b[order] - a[order] || b.stars - a.stars;
    return by || a.name.localeCompare(b.name) || a.author.localeCompare(b.author);
  };
}

function Star({ x, changed }: { x: V3ApiTemplate; changed: (next: V3ApiTemplate) => void }) {
  const busy = useSignal(false);
  const press = async () => {
    busy.value = true;
    try {
      changed(await call(x.starred ? "DELETE /api/v3/templates/{template}/star" : "PUT /api/v3/templates/{template}/star", { path: { template: x.id } }));
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  return (
    <button type="button" class="star" aria-pressed={x.starred} aria-label={t("star") + ": " + x.stars} title={t(x.starred ? "unstar" : "star")} disabled={busy.value} onClick={() => void press()}>
      <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M8 2l1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5z" />
      </svg>
      {x.stars}
    </button>
  );
}

function Labels({ x }: { x: V3ApiTemplate }) {
  const all = [...(x.categories ?? []).filter((c) => c !== official), ...(x.tags ?? [])];
  return (
    <>
      {isOfficial(x) ? (
        <a class="tag official" href={address(["templates"], { view: "official" })}>
          {t("official")}
        </a>
      ) : null}
      {all.map((label) => (
        <a key={label} class="tag" href={address(["templates"], { label })}>
          {label}
        </a>
      ))}
    </>
  );
}

/** Says whose a template is. */
function author(x: V3ApiTemplate): string {
  return x.builtIn ? t("builtIn") : x.author;
}

/** Says with whom a template is shared. */
function sharedWith(x: V3ApiTemplate): string {
  if (x.public) return t("everyone");
  return x.groups?.length ? x.groups.join(", ") : t("onlyAuthor");
}

function Card({ x, chosen, changed }: { x: V3ApiTemplate; chosen: boolean; changed: (next: V3ApiTemplate) => void }) {
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (chosen) card.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <article ref={card} class={chosen ? "template chosen" : "template"}>
      <header>
        <a class="whole" href={address(["templates", x.id])}>
          {x.name}
        </a>
        <Star x={x} changed={changed} />
      </header>
      <p class="summary">{x.summary || <span class="faint">{t("noSummary")}</span>}</p>
      <p class="labels">
        <Labels x={x} />
      </p>
      <footer class="faint small">
        <span>{author(x)}</span>
        <span>{t("usedTimes", { n: x.uses })}</span>
        <Ago time={x.updated} />
        <span title={t("sharedWith")}>{sharedWith(x)}</span>
      </footer>
    </article>
  );
}

export function Templates() {
  const q = place.value.query;
  const keyword = q.get("keyword") ?? "";
  const view = views.find((x) => x === q.get("view")) ?? "all";
  const order = orders.find((x) => x === q.get("order")) ?? "stars";
  const label = q.get("label") ?? "";
  const mine = view === "mine" ? me.value!.name : "";
  const search = useRef<HTMLInputElement>(null);
  const at = useSignal(-1);
  const { value, error, again } = useRead(keyword + "\n" + mine, (signal) => call("GET /api/v3/templates", { query: { keyword, author: mine }, signal }));
  useEffect(() => {
    document.title = t("templates") + " – paictl";
  }, []);
  useEffect(() => {
    at.value = -1;
    if (document.activeElement !== search.current) search.current!.value = keyword;
  }, [q.toString()]);
  const timer = useRef<number>(0);
  const typed = (word: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ keyword: word || undefined }), 250) as unknown as number;
  };
  useEffect(() => () => clearTimeout(timer.current), []);

  const all = value.value?.items ?? [];
  const rows = all.filter((x) => fits(x, view, label)).sort(compare(order));
  const labels = [...new Set([...all.flatMap((x) => [...(x.categories ?? []), ...(x.tags ?? [])]), ...(label ? [label] : [])])].filter((x) => x !== official).sort();
  const filtered = keyword !== "" || view !== "all" || label !== "";
  const move = (by: number) => (at.value = Math.max(0, Math.min(rows.length - 1, at.value + by)));
  useKeys({
    "/": () => search.current?.focus(),
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => {
      const x = rows[at.value];
      if (x) go(address(["templates", x.id]));
    },
  });
  const replaced = (next: V3ApiTemplate) => (value.value = { items: all.map((x) => (x.id === next.id ? next : x)) });
  const command = ["paictl job template list"];
  if (mine) command.push("--mine");
  if (keyword) command.push("--keyword " + quoted(keyword));
  return (
    <section class="page">
      <header class="top">
        <h1>{t("templates")}</h1>
        <span class="grow" />
        <Menu
          label={t("more")}
          icon="more"
          items={[
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command.join(" ")) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/templates", { query: { keyword, author: mine } })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
          ]}
        />
        <a class="button primary" href={address(["templates", "new"])}>
          <Icon name="plus" /> {t("newTemplate")}
        </a>
      </header>
      <div class="filters">
        <label class="search">
          <Icon name="search" />
          <input ref={search} type="search" placeholder={t("searchTemplates")} aria-label={t("searchTemplates")} defaultValue={keyword} onInput={(e) => typed(e.currentTarget.value)} onKeyDown={(e) => e.key === "Escape" && e.currentTarget.blur()} />
          <kbd>/</kbd>
        </label>
        <div class="segments" role="group" aria-label={t("templates")}>
          {views.map((name) => (
            <button key={name} type="button" aria-pressed={view === name} onClick={() => setQuery({ view: name === "all" ? undefined : name })}>
              {t(`view.${name}`)}
            </button>
          ))}
        </div>
        {labels.length > 0 ? (
          <select aria-label={t("labels")} value={label} onChange={(e) => setQuery({ label: e.currentTarget.value || undefined })}>
            <option value="">{t("anyLabel")}</option>
            {labels.map((x) => (
              <option key={x} value={x}>
                {x}
              </option>
            ))}
          </select>
        ) : null}
        <select aria-label={t("order")} value={order} onChange={(e) => setQuery({ order: e.currentTarget.value === "stars" ? undefined : e.currentTarget.value })}>
          {orders.map((x) => (
            <option key={x} value={x}>
              {t(`order.${x}`)}
            </option>
          ))}
        </select>
      </div>
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {!value.value ? (
        error.value ? null : <Loading />
      ) : rows.length === 0 ? (
        <div class="empty">
          <p>{t(filtered ? "noTemplateMatch" : "noTemplates")}</p>
          {filtered ? (
            <button type="button" onClick={() => go(address(["templates"]))}>
              {t("clearFilters")}
            </button>
          ) : (
            <p class="faint">{t("noTemplatesHint")}</p>
          )}
        </div>
      ) : (
        <div class="templates">
          {rows.map((x, i) => (
            <Card key={x.id} x={x} chosen={i === at.value} changed={replaced} />
          ))}
        </div>
      )}
    </section>
  );
}

/** A template, or the form that changes it. */
export function TemplatePage({ id }: { id: string }) {
  const { value, error, again } = useRead(id, (signal) => call("GET /api/v3/templates/{template}", { path: { template: id }, signal }));
  const x = value.value;
  useEffect(() => {
    document.title = (x?.name ?? t("templates")) + " – paictl";
  }, [x?.name]);
  if (!x) return error.value ? <Problem of={error.value} again={again} /> : <Loading />;
  if (place.value.query.get("edit")) {
    return <Edit title={t("editTemplate", { name: x.name })} spec={specOf(x)} store={(spec) => call("PUT /api/v3/templates/{template}", { path: { template: id }, body: { spec, version: x.version } })} done={(next) => {
      value.value = next;
      go(address(["templates", id]));
    }} cancel={address(["templates", id])} />;
  }
  return <Shown x={x} changed={(next) => (value.value = next)} />;
}

function Shown({ x, changed: took }: { x: V3ApiTemplate; changed: (next: V3ApiTemplate) => void }) {
  const path = { template: x.id };
  const full = x.author === me.value?.name ? x.name : `${x.author}/${x.name}`;
  const values = useSignal<Query>(Object.fromEntries([...place.value.query].filter(([key]) => key.startsWith("set."))));
  const file = filled(x.job, new URLSearchParams(values.value as Record<string, string>));
  const masked = x.job.includes("******");
  const change = (name: string, value: string) => {
    const had = parameters(x.job).find((p) => p.name === name);
    values.value = { ...values.value, ["set." + name]: had?.value === value ? undefined : value };
  };
  const given = () => Object.entries(values.value).filter(([, v]) => v !== undefined) as [string, string][];
  const submit = masked
    ? `paictl job template show ${quoted(full)} --config > job.yaml`
    : [`paictl job submit --template ${quoted(full)}`, ...given().map(([k, v]) => "--set " + quoted(k.slice(4) + "=" + v))].join(" ");
  const remove = () =>
    ask({
      title: t("ask.removeTemplate", { name: x.name }),
      text: t("ask.removeTemplate.more"),
      yes: t("remove"),
      danger: true,
      act: async () => {
        await call("DELETE /api/v3/templates/{template}", { path });
        toast(t("done.removeTemplate"));
        go(address(["templates"]));
      },
    });
  return (
    <section class="page template-page">
      <header class="top">
        <nav class="crumbs">
          <a href={address(["templates"])}>{t("templates")}</a>
          <Icon name="chevron" />
        </nav>
        <h1 title={x.name}>{x.name}</h1>
        <span class="grow" />
        <div class="actions">
          <Star x={x} changed={took} />
          <a class="button primary" href={address(["submit"], { template: x.id, ...Object.fromEntries(given()) })}>
            <Icon name="plus" /> {t("use")}
          </a>
          <Menu
            label={t("more")}
            icon="more"
            items={[
              { label: t("copyPaictl"), icon: "copy", run: () => void copy(`paictl job template show ${quoted(full)}`) },
              { label: t("copySubmit"), icon: "copy", run: () => void copy(submit) },
              { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/templates/{template}", { path })) },
              { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
              null,
              { label: t("copyTemplate"), icon: "plus", run: () => go(address(["templates", "new"], { template: x.id })) },
              ...(mayChange(x)
                ? [{ label: t("edit"), icon: "file" as const, run: () => go(address(["templates", x.id], { edit: "yes" })) }, { label: t("remove"), icon: "trash" as const, danger: true, run: remove }]
                : []),
            ]}
          />
        </div>
      </header>
      {x.summary ? <p class="lead">{x.summary}</p> : null}
      <dl class="facts">
        <Fact name="author">{author(x)}</Fact>
        <Fact name="sharedWith">{sharedWith(x)}</Fact>
        <Fact name="uses">{x.uses}</Fact>
        {x.builtIn ? null : (
          <>
            <Fact name="version">{x.version}</Fact>
            <Fact name="changedAt">
              <Ago time={x.updated} />
            </Fact>
            <Fact name="createdAt">
              <Ago time={x.created} />
            </Fact>
          </>
        )}
        {x.tags?.length || x.categories?.length ? (
          <Fact name="labels">
            <Labels x={x} />
          </Fact>
        ) : null}
        {x.dataUrl ? (
          <Fact name="data">
            {x.dataType} <code>{x.dataUrl}</code>
          </Fact>
        ) : null}
      </dl>
      {masked ? <p class="note">{t("templateMasked")}</p> : null}
      <div class="editor-and-check">
        <div>
          {x.description ? <div class="description">{x.description}</div> : null}
          <div class="filters">
            <h2>{t("jobFile")}</h2>
            <span class="grow" />
            <button type="button" onClick={() => void copy(file)}>
              <Icon name="copy" /> {t("copy")}
            </button>
            <button type="button" onClick={() => save(`${nameIn(x.job) || "job"}.yaml`, [file], "text/yaml")}>
              <Icon name="down" /> {t("download")}
            </button>
          </div>
          <pre tabIndex={0} class="code">{file}</pre>
        </div>
        <aside>
          <Parameters text={file} change={change} done={() => go(address(place.value.path, Object.fromEntries(given())), true)} />
          <p class="faint">{t("useHint")}</p>
        </aside>
      </div>
    </section>
  );
}

function Fact({ name, children }: { name: Text; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{t(name)}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The form for a new template: empty, of the file of the page Submit, of a job, or of another template. */
export function NewTemplate() {
  const of = place.value.query.get("job") ?? "";
  const template = place.value.query.get("template") ?? "";
  const { value, error, again } = useRead(of + "\n" + template, async (signal): Promise<PeopleV1TemplateSpec> => {
    const mine = (job: string) => ({ name: nameIn(job), author: me.value!.name, type: "template", job });
    if (template) {
      const x = await call("GET /api/v3/templates/{template}", { path: { template }, signal });
      return { ...specOf(x), author: me.value!.name, public: false, groups: [], categories: x.categories?.filter((c) => c !== official) };
    }
    if (!of) return mine(place.value.query.get("from") === "submit" ? draft.value : "");
    const [user, name] = of.split("/");
    const job = await call("GET /api/v3/jobs/{user}/{name}/brief", { path: { user: user ?? "", name: name ?? "" }, signal });
    return mine(job.config ?? "");
  });
  useEffect(() => {
    document.title = t("newTemplate") + " – paictl";
  }, []);
  if (value.value === null) return error.value ? <Problem of={error.value} again={again} /> : <Loading />;
  const spec = value.value;
  return <Edit title={template ? t("copyOf", { name: spec.name }) : of ? t("templateOf", { job: of }) : t("newTemplate")} spec={spec} store={(body) => call("POST /api/v3/templates", { body })} done={(x) => go(address(["templates", x.id]), true)} cancel={address(template ? ["templates", template] : of ? ["jobs", ...of.split("/")] : ["templates"])} />;
}

/** Words between commas. */
function words(text: string): string[] {
  return text.split(/[,，]/).map((x) => x.trim()).filter(Boolean);
}

function Edit({ title, spec, store, done, cancel }: { title: string; spec: PeopleV1TemplateSpec; store: (spec: PeopleV1TemplateSpec) => Promise<V3ApiTemplate>; done: (x: V3ApiTemplate) => void; cancel: string }) {
  const form = useRef<HTMLFormElement>(null);
  const error = useSignal<Failure | null>(null);
  const busy = useSignal(false);
  const dirty = useRef(false);
  const open = useSignal(spec.public ? "public" : spec.groups?.length ? "groups" : "private");
  const groups = [...new Set([...(spec.groups ?? []), ...(me.value?.groups ?? [])])].sort();
  useEffect(() => {
    const leaves = (e: BeforeUnloadEvent) => {
      if (dirty.current) e.preventDefault();
    };
    addEventListener("beforeunload", leaves);
    return () => removeEventListener("beforeunload", leaves);
  }, []);
  const send = async (e: Event) => {
    e.preventDefault();
    const f = new FormData(form.current!);
    const text = (name: string) => String(f.get(name) ?? "");
    const categories = words(text("categories")).filter((c) => c !== official);
    if (f.get("official")) categories.push(official);
    busy.value = true;
    error.value = null;
    try {
      const next = await store({
        ...spec,
        name: text("name").trim(),
        summary: text("summary").trim(),
        description: text("description").replaceAll("\r\n", "\n"),
        categories,
        tags: words(text("tags")),
        public: open.value === "public",
        groups: open.value === "groups" ? f.getAll("groups").map(String) : [],
        job: text("job").replaceAll("\r\n", "\n"),
      });
      dirty.current = false;
      toast(t("done.keepTemplate"));
      done(next);
    } catch (e) {
      error.value = failure(e);
      scrollTo(0, 0);
    } finally {
      busy.value = false;
    }
  };
  return (
    <section class="page">
      <form ref={form} class="fields" onSubmit={(e) => void send(e)} onInput={() => (dirty.current = true)}>
        <header class="top">
          <h1>{title}</h1>
          <span class="grow" />
          <a class="button" href={cancel}>
            {t("cancel")}
          </a>
          <button type="submit" class="primary" disabled={busy.value}>
            {t("save")}
          </button>
        </header>
        {error.value ? (
          <>
            <Problem of={error.value} />
            {error.value.findings.length ? (
              <ul class="findings">
                {error.value.findings.map((f, i) => (
                  <li key={i}>
                    {f.line ? t("line", { n: f.line }) + ": " : ""}
                    {f.message} {f.remedy ? <span class="faint">{f.remedy}</span> : null}
                  </li>
                ))}
              </ul>
            ) : null}
          </>
        ) : null}
        <div class="columns">
          <div>
            <label>
              <span>{t("name")}</span>
              <input name="name" required maxLength={100} defaultValue={spec.name} autocomplete="off" />
            </label>
            <label>
              <span>{t("summary")}</span>
              <input name="summary" maxLength={1024} defaultValue={spec.summary} autocomplete="off" />
            </label>
            <label>
              <span>{t("description")}</span>
              <textarea name="description" rows={8} defaultValue={spec.description} />
            </label>
            <label>
              <span>{t("tags")}</span>
              <input name="tags" defaultValue={spec.tags?.join(", ")} autocomplete="off" />
              <span class="faint small">{t("commas")}</span>
            </label>
            <label>
              <span>{t("categories")}</span>
              <input name="categories" defaultValue={spec.categories?.filter((c) => c !== official).join(", ")} autocomplete="off" />
            </label>
            {me.value?.grants.administrator || spec.categories?.includes(official) ? (
              <label class="tick">
                <input type="checkbox" name="official" defaultChecked={spec.categories?.includes(official)} /> {t("official")}
              </label>
            ) : null}
            <fieldset>
              <legend>{t("sharedWith")}</legend>
              {(["private", "groups", "public"] as const).map((x) =>
                x === "groups" && groups.length === 0 ? null : (
                  <label key={x} class="tick">
                    <input type="radio" name="open" value={x} checked={open.value === x} onChange={() => (open.value = x)} /> {t(`share.${x}`)}
                  </label>
                ),
              )}
              {open.value === "groups" ? (
                <div class="choices">
                  {groups.map((g) => (
                    <label key={g} class="tick">
                      <input type="checkbox" name="groups" value={g} defaultChecked={spec.groups?.includes(g)} /> {g}
                    </label>
                  ))}
                </div>
              ) : null}
            </fieldset>
          </div>
          <label class="file">
            <span>{t("jobFile")}</span>
            <textarea name="job" required rows={26} spellcheck={false} autocomplete="off" autocapitalize="off" wrap="off" defaultValue={spec.job} />
            <span class="faint small">{t("templateSecrets")}</span>
          </label>
        </div>
      </form>
    </section>
  );
}
