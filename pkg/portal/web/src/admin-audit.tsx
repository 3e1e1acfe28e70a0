// The audit: what people changed, and what was refused.
import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect } from "preact/hooks";
import { Segments, Top } from "./admin-parts";
import { Failure, call, failure } from "./api";
import { csv } from "./list";
import { address, go, place, setQuery } from "./route";
import { curl, quoted } from "./shell";
import { maybe, t } from "./text";
import { exact } from "./time";
import type { AuditRecord, Routes } from "./types";
import { Ago, Copied, Icon, Loading, Problem, save, toast } from "./ui";

type Query = NonNullable<Routes["GET /api/v3/audit"]["query"]>;

/** How many records a page has, and how many a file at most. */
const size = 50;
const most = 100_000;

const words = ["actor", "object", "owner", "kind", "verb", "outcome"] as const;
const kinds = ["job", "template", "user", "group", "token", "virtual-cluster", "page", "code"];
const verbs = ["submit", "stop", "retry", "scale", "delete", "tag", "enter", "sign-in", "sign-out", "manage", "change", "add", "remove", "revoke"];
const times = ["1h", "24h", "7d", "30d"];

const outcomes: Record<string, string> = { done: "good", refused: "wait", failed: "bad" };

const units: Record<string, number> = { h: 3600_000, d: 86400_000 };

/** Returns the time of a filter: 12h and 30d count from now. */
function instant(text: string): string | undefined {
  const m = /^(\d{1,6})([hd])$/.exec(text);
  const at = m ? Date.now() - Number(m[1]) * units[m[2]!]! : Date.parse(text);
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

function filterOf(q: URLSearchParams): Query {
  const out: Query = {};
  for (const k of words) if (q.get(k)) out[k] = q.get(k)!;
  out.since = instant(q.get("since") ?? "");
  out.until = instant(q.get("until") ?? "");
  return out;
}

/** The value of a field for a local time. */
function local(text: string): string {
  const at = Date.parse(text);
  if (Number.isNaN(at)) return "";
  const d = new Date(at);
  return new Date(at - d.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const columns: [string, (r: AuditRecord) => unknown][] = [
  ["time", (r) => r.time],
  ["actor", (r) => r.actor],
  ["verb", (r) => r.verb],
  ["kind", (r) => r.kind],
  ["object", (r) => r.object],
  ["owner", (r) => r.owner],
  ["virtualCluster", (r) => r.vc],
  ["outcome", (r) => r.outcome],
  ["status", (r) => r.status],
  ["reason", (r) => r.reason],
  ["address", (r) => r.address],
  ["token", (r) => r.token],
  ["request", (r) => r.request],
  ["detail", (r) => (r.detail ? JSON.stringify(r.detail) : "")],
];

/** A word of the filter, which counts when it is complete: each is compared as a whole. */
function Word({ of, label, list }: { of: (typeof words)[number]; label: string; list?: string[] }) {
  const value = place.value.query.get(of) ?? "";
  return (
    <label class="word">
      <span>{label}</span>
      <input
        key={value}
        name={of}
        defaultValue={value}
        list={list ? "audit-" + of : undefined}
        autocomplete="off"
        spellcheck={false}
        onChange={(e) => setQuery({ [of]: e.currentTarget.value.trim() || undefined })}
      />
      {list ? (
        <datalist id={"audit-" + of}>
          {list.map((x) => (
            <option key={x} value={x} />
          ))}
        </datalist>
      ) : null}
    </label>
  );
}

function Time({ of, label }: { of: "since" | "until"; label: string }) {
  const value = place.value.query.get(of) ?? "";
  return (
    <label class="word">
      <span>{label}</span>
      <input key={value} type="datetime-local" defaultValue={local(instant(value) ?? "")} onChange={(e) => setQuery({ [of]: e.currentTarget.value ? new Date(e.currentTarget.value).toISOString() : undefined })} />
    </label>
  );
}

function Details({ r }: { r: AuditRecord }) {
  const facts: [string, string | number | undefined][] = [
    [t("time"), exact(r.time)],
    [t("reason"), r.reason],
    ...Object.entries(r.detail ?? {}),
    [t("owner"), r.owner],
    [t("vc"), r.vc],
    [t("admin.status"), r.status],
    [t("address"), r.address],
    [t("admin.token"), r.token],
    [t("admin.request"), r.request],
    [t("admin.actorUID"), r.actorUID],
    [t("admin.record"), r.id],
  ];
  return (
    <dl class="open details">
      {facts.map(([name, value]) =>
        value ? (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === "string" && value === r.request ? <Copied text={value}>{value}</Copied> : value}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}

/** The address of what a record is about, if there is a page for it. */
function pageOf(r: AuditRecord): string[] | null {
  if (!r.object) return null;
  if (r.kind === "job" && r.owner) return ["jobs", r.owner, r.object];
  if (r.kind === "user") return ["admin", "people", r.object];
  if (r.kind === "group") return ["admin", "groups", r.object];
  if (r.kind === "virtual-cluster" && !r.object.includes(",")) return ["admin", "virtual-clusters", r.object];
  return null;
}

export function Audit() {
  const q = place.value.query;
  const open = q.get("open");
  const key = [...q].filter(([k]) => k !== "open").join("&");
  const rows = useSignal<AuditRecord[] | null>(null);
  const next = useSignal("");
  const error = useSignal<Failure | null>(null);
  const busy = useSignal(false);
  const round = useSignal(0);
  useEffect(() => {
    const stop = new AbortController();
    busy.value = true;
    call("GET /api/v3/audit", { query: { ...filterOf(q), limit: size }, signal: stop.signal }).then(
      (page) => {
        rows.value = page.items ?? [];
        next.value = page.next ?? "";
        error.value = null;
        busy.value = false;
      },
      (e) => {
        if (stop.signal.aborted) return;
        rows.value = null;
        error.value = failure(e);
        busy.value = false;
      },
    );
    return () => stop.abort();
  }, [key, round.value]);
  const more = async () => {
    busy.value = true;
    try {
      // The time of a page before stays the same: "24h" counts from when the cursor's page was asked for, which the cursor bounds.
      const page = await call("GET /api/v3/audit", { query: { ...filterOf(q), limit: size, cursor: next.value } });
      rows.value = [...(rows.value ?? []), ...(page.items ?? [])];
      next.value = page.next ?? "";
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const download = async () => {
    busy.value = true;
    try {
      const filter = filterOf(q);
      const all: AuditRecord[] = [];
      let cursor = "";
      do {
        const page = await call("GET /api/v3/audit", { query: { ...filter, limit: 1000, cursor } });
        all.push(...(page.items ?? []));
        cursor = page.next ?? "";
      } while (cursor && all.length < most);
      if (cursor) toast(t("admin.csvCut", { n: all.length }));
      save("audit.csv", [csv(all, columns)], "text/csv;charset=utf-8");
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const command = ["paictl audit"];
  for (const k of [...words, "since", "until"]) if (q.get(k)) command.push(`--${k} ${quoted(q.get(k)!)}`);
  const since = q.get("since") ?? "";
  const filtered = key !== "";
  return (
    <>
      <Top title={t("admin.tab.audit")} paictl={command.join(" ")} curl={curl("GET /api/v3/audit", { query: filterOf(q) })}>
        <button type="button" disabled={busy.value} onClick={() => round.value++}>
          <Icon name="retry" /> {t("admin.readAgain")}
        </button>
        <button type="button" title={t("csvMore")} disabled={busy.value} onClick={() => void download()}>
          <Icon name="down" /> {t("csv")}
        </button>
      </Top>
      <div class="filters words">
        <Word of="actor" label={t("admin.actor")} />
        <Word of="verb" label={t("admin.verb")} list={verbs} />
        <Word of="kind" label={t("admin.kind")} list={kinds} />
        <Word of="object" label={t("object")} />
        <Time of="since" label={t("admin.from")} />
        <Time of="until" label={t("admin.until")} />
      </div>
      <div class="filters">
        <Segments label={t("admin.outcome")} of="outcome" value={q.get("outcome") ?? ""} choices={[["", t("state.all")], ...Object.keys(outcomes).map((x): [string, string] => [x, t(`admin.outcome.${x}` as "admin.outcome.done")])]} />
        <Segments label={t("time")} of="since" value={since} choices={[["", t("admin.anyTime")], ...times.map((x): [string, string] => [x, t(`admin.last.${x}` as "admin.last.1h")])]} />
        {filtered ? (
          <button type="button" onClick={() => go(address(["admin", "audit"]))}>
            {t("clearFilters")}
          </button>
        ) : null}
      </div>
      {error.value ? <Problem of={error.value} again={() => round.value++} /> : null}
      {!rows.value ? (
        error.value ? null : <Loading />
      ) : rows.value.length === 0 ? (
        <p class="empty">{t(filtered ? "admin.noRecordHere" : "admin.noRecord")}</p>
      ) : (
        <>
          <table class="rows audit" aria-busy={busy.value}>
            <thead>
              <tr>
                <th class="c-time">{t("time")}</th>
                <th>{t("admin.actor")}</th>
                <th>{t("admin.verb")}</th>
                <th>{t("object")}</th>
                <th>{t("admin.outcome")}</th>
                <th class="wide">{t("reason")}</th>
              </tr>
            </thead>
            <tbody>
              {rows.value.map((r) => {
                const page = pageOf(r);
                return (
                  <Fragment key={r.id}>
                    <tr>
                      <td class="c-time c-name">
                        <button type="button" class="bare whole" aria-expanded={open === r.id} title={t("details")} onClick={() => setQuery({ open: open === r.id ? undefined : r.id })}>
                          <Icon name={open === r.id ? "drop" : "chevron"} /> <Ago time={r.time} />
                        </button>
                      </td>
                      <td class="cut">{r.actor || <span class="faint">–</span>}</td>
                      <td>{r.verb}</td>
                      <td class="cut">
                        <span class="faint">{r.kind}</span>{" "}
                        {page ? (
                          <a class="above" href={address(page)}>
                            {r.kind === "job" ? `${r.owner}/${r.object}` : r.object}
                          </a>
                        ) : (
                          r.object
                        )}
                      </td>
                      <td>
                        <span class={`state ${outcomes[r.outcome] ?? "off"}`}>
                          <i class="dot" />
                          {maybe("admin.outcome." + r.outcome, r.outcome)}
                        </span>
                      </td>
                      <td class="wide cut faint" title={r.reason}>
                        {r.reason || Object.entries(r.detail ?? {}).map(([k, v]) => `${k}: ${v}`).join(", ")}
                      </td>
                    </tr>
                    {open === r.id ? (
                      <tr class="opened">
                        <td colSpan={6}>
                          <Details r={r} />
                        </td>
                      </tr>
                    ) : null}
                  </Fragment>
                );
              })}
            </tbody>
          </table>
          <footer class="under">
            <span class="faint">{t("admin.records", { n: rows.value.length })}</span>
            {next.value ? (
              <button type="button" disabled={busy.value} onClick={() => void more()}>
                {t("admin.olderRecords")}
              </button>
            ) : null}
          </footer>
        </>
      )}
    </>
  );
}
