// All requests to stop or requeue jobs, or to change machines, with their results.
import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { Canceling, Outcome, Phase, interval, isCancelable, isFinal, operationName, requester } from "./actions";
import { Command, Search, Segments, Top } from "./admin-parts";
import { call } from "./api";
import { csv } from "./list";
import { useRead } from "./read";
import { address, place, setQuery } from "./route";
import { curl, quoted } from "./shell";
import { t } from "./text";
import { duration, exact } from "./time";
import type { V3ApiAction } from "./types";
import { Ago, Icon, Loading, Problem, save } from "./ui";

const columns: [string, (a: V3ApiAction) => unknown][] = [
  ["name", (a) => a.name],
  ["operation", (a) => a.operation],
  ["job", (a) => a.job],
  ["machine", (a) => a.machine],
  ["gpu", (a) => a.gpu],
  ["by", (a) => `${a.by.kind} ${a.by.name}`],
  ["phase", (a) => a.phase],
  ["dryRun", (a) => a.dryRun ?? false],
  ["created", (a) => a.created],
  ["started", (a) => a.started],
  ["ended", (a) => a.ended],
  ["reason", (a) => a.reason],
  ["message", (a) => a.message],
];

/** The phases of each choice; all without one. */
const choices: Record<string, string[]> = { open: ["New", "Pending", "Noticed", "Acting"], ended: ["Succeeded", "Failed", "Refused", "Expired", "Canceled"] };

const page = 100;

function Target({ a }: { a: V3ApiAction }) {
  const [user, name] = (a.job ?? "").split("/");
  if (user && name) return <a href={address(["jobs", user, name])}>{a.job}</a>;
  return (
    <a href={address(["machines"], { machine: a.machine })}>
      {a.machine}
      {a.gpu === undefined ? "" : ` GPU ${a.gpu}`}
    </a>
  );
}

/** An action with the results of its parts, which lists leave out. */
function Details({ row, cancel }: { row: V3ApiAction; cancel: () => void }) {
  const { value, error } = useRead(row.name + row.phase, (signal) => call("GET /api/v3/actions/{action}", { path: { action: row.name }, signal }), (a) => interval(a ? [a] : null));
  const a = value.value ?? row;
  const facts: [string, string | undefined][] = [
    [t("name"), a.name],
    [t("reason"), a.reason],
    [t("action.grace"), a.graceSeconds ? duration(a.graceSeconds * 1000) : t("action.now")],
    [t("started"), a.started && exact(a.started)],
    [t("ended"), a.ended && exact(a.ended)],
    [t("admin.expires"), isFinal(a) ? undefined : exact(a.notAfter)],
    [t("admin.withdrawn"), a.canceled],
  ];
  return (
    <div class="open">
      {error.value ? <Problem of={error.value} /> : null}
      <Outcome a={a} />
      <dl class="facts">
        {facts.map(([name, text]) =>
          text ? (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </div>
          ) : null,
        )}
      </dl>
      <Command lines={[`paictl action get ${quoted(a.name)}`]} />
      {isCancelable(a) ? (
        <p>
          <button type="button" class="danger" onClick={cancel}>
            {t("action.cancel")}
          </button>
        </p>
      ) : null}
    </div>
  );
}

export function Actions() {
  const q = place.value.query;
  const [choice, machine, job, open] = [q.get("show") ?? "", q.get("machine") ?? "", q.get("job") ?? "", q.get("open")];
  const query = { phase: choices[choice], machine: machine || undefined, job: job || undefined, limit: page };
  const older = useSignal<{ of: string; items: V3ApiAction[]; next: string }>({ of: "", items: [], next: "" });
  const canceling = useSignal<V3ApiAction | null>(null);
  const key = JSON.stringify(query);
  const { value, error, again } = useRead(key, (signal) => call("GET /api/v3/actions", { query, signal }), (found) => interval(found?.items));
  const first = value.value?.items ?? [];
  const known = new Set(first.map((a) => a.name));
  const more = older.value.of === key ? older.value : { of: key, items: [], next: value.value?.next ?? "" };
  const rows = [...first, ...more.items.filter((a) => !known.has(a.name))];
  const next = async () => {
    const found = await call("GET /api/v3/actions", { query: { ...query, cursor: more.next } });
    older.value = { of: key, items: [...more.items, ...(found.items ?? [])], next: found.next ?? "" };
  };
  const flags = [...(choices[choice] ? ["--phase " + choices[choice].join(",")] : []), ...(machine ? ["--machine " + quoted(machine)] : []), ...(job ? ["--job " + quoted(job)] : [])];
  return (
    <>
      <Top title={t("admin.tab.actions")} paictl={["paictl action list", ...flags].join(" ")} curl={curl("GET /api/v3/actions", { query })}>
        <button type="button" title={t("csvMore")} disabled={!value.value} onClick={() => save("actions.csv", [csv(rows, columns)], "text/csv;charset=utf-8")}>
          <Icon name="down" /> {t("csv")}
        </button>
      </Top>
      <div class="filters">
        <Search label={t("admin.ofMachine")} of="machine" value={machine} />
        <Segments
          label={t("state")}
          of="show"
          value={choice}
          choices={[
            ["", t("state.all")],
            ["open", t("admin.openActions")],
            ["ended", t("admin.endedActions")],
          ]}
        />
        {job ? (
          <span class="tag">
            {job}
            <button type="button" class="bare" aria-label={t("admin.removeName", { name: job })} onClick={() => setQuery({ job: undefined })}>
              <Icon name="close" />
            </button>
          </span>
        ) : null}
      </div>
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {!value.value ? (
        error.value ? null : <Loading />
      ) : rows.length === 0 ? (
        <p class="empty">{t(choice || machine || job ? "admin.noActionHere" : "admin.noAction")}</p>
      ) : (
        <table class="rows requested">
          <thead>
            <tr>
              <th>{t("admin.operation")}</th>
              <th>{t("admin.target")}</th>
              <th>{t("state")}</th>
              <th class="wide">{t("admin.by")}</th>
              <th class="c-time">{t("admin.requested")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((a) => (
              <Fragment key={a.name}>
                <tr>
                  <td class="c-name">
                    <button type="button" class="bare whole" aria-expanded={open === a.name} onClick={() => setQuery({ open: open === a.name ? undefined : a.name })}>
                      <Icon name={open === a.name ? "drop" : "chevron"} /> {operationName(a)}
                    </button>
                  </td>
                  <td class="long">
                    <span class="above">
                      <Target a={a} />
                    </span>
                  </td>
                  <td>
                    <Phase a={a} />
                  </td>
                  <td class="wide">{requester(a)}</td>
                  <td class="c-time">
                    <Ago time={a.created} />
                  </td>
                </tr>
                {open === a.name ? (
                  <tr class="opened">
                    <td colSpan={5}>
                      <Details row={a} cancel={() => (canceling.value = a)} />
                    </td>
                  </tr>
                ) : (
                  <tr class="why-row">
                    <td colSpan={5} class="long">
                      {a.reason}
                      {a.message ? <div class="faint">{a.message}</div> : null}
                    </td>
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
      )}
      {more.next ? (
        <footer class="under">
          <button type="button" onClick={() => void next()}>
            {t("admin.showMore")}
          </button>
        </footer>
      ) : null}
      {canceling.value ? (
        <Canceling
          a={canceling.value}
          end={() => {
            canceling.value = null;
            again();
          }}
        />
      ) : null}
    </>
  );
}
