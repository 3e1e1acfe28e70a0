// Requests to change a machine, and their results. Only administrators see them.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call } from "./api";
import { useKeys } from "./keys";
import { useAct, useRead } from "./read";
import { address } from "./route";
import { curl, quoted } from "./shell";
import { maybe, t } from "./text";
import "./text-actions";
import { duration } from "./time";
import type { StatusMachine, V3ApiAction, V3ApiNewAction } from "./types";
import { Ago, Copied, Icon, Loading, Problem } from "./ui";

export type Operation = "cordon" | "uncordon" | "drain";

/** How often a page looks at actions in milliseconds: often, while one can change. */
const [often, seldom] = [1500, 15_000];

/** Phases that don't change any more. */
const final = ["Succeeded", "Failed", "Refused", "Expired", "Canceled"];

const family: Record<string, string> = { New: "wait", Pending: "wait", Noticed: "wait", Acting: "run", Succeeded: "good", Failed: "bad", Refused: "bad" };

export function isFinal(a: V3ApiAction): boolean {
  return final.includes(a.phase);
}

/** Whether the server lets someone withdraw an action: those that have begun end, except for drains. */
export function isCancelable(a: V3ApiAction): boolean {
  return !isFinal(a) && !a.canceled && (a.operation === "drain" || !a.started);
}

export function interval(all: V3ApiAction[] | null | undefined): number {
  return all?.every(isFinal) ?? true ? seldom : often;
}

export function operationName(a: V3ApiAction): string {
  return maybe("action." + a.operation, a.operation);
}

export function requester(a: V3ApiAction): string {
  return a.by.kind === "person" ? a.by.name : `${maybe("action.by." + a.by.kind, a.by.kind)} ${a.by.name}`;
}

export function Phase({ a }: { a: V3ApiAction }) {
  return (
    <span class={`state ${family[a.phase] ?? "off"}`}>
      <i class={a.phase === "Acting" ? "dot beats" : "dot"} />
      {maybe("action.phase." + a.phase, a.phase)}
      {a.dryRun ? <span class="faint"> {t("action.dry")}</span> : null}
    </span>
  );
}

/** What an action did, or waits for, with its parts. */
export function Outcome({ a }: { a: V3ApiAction }) {
  const left = (a.results ?? []).filter((r) => !r.done);
  return (
    <div class="outcome" role="status" aria-live="polite">
      <p>
        <Phase a={a} /> {a.message}
      </p>
      {a.phase === "Noticed" && a.acts ? (
        <p class="faint">
          {t("action.acts")} <Ago time={a.acts} />
        </p>
      ) : null}
      {a.results?.length ? (
        <p class="faint">{t("action.parts", { done: a.results.length - left.length, n: a.results.length })}</p>
      ) : null}
      {left.length ? (
        <ul class="small">
          {left.slice(0, 20).map((r) => (
            <li key={r.target}>
              {r.target} {r.message ? <span class="faint">{r.message}</span> : null}
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}

/** Graces in seconds. */
const graces = [0, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400, 259_200, 604_800];

/** The command that makes the same request. */
function command(machine: string, operation: Operation, body: { reason: string; graceSeconds?: number }): string {
  return `paictl node ${operation} ${quoted(machine)} --reason ${quoted(body.reason || t("action.reasonHere"))}${body.graceSeconds ? ` --grace ${body.graceSeconds}s` : ""}`;
}

/** The jobs that have tasks on a machine. */
function useJobsOn(machine: string) {
  return useRead(machine, async (signal) => ((await call("GET /api/v3/status", { query: { parts: ["jobs"] }, signal })).jobs ?? []).filter((j) => j.live && j.nodes?.includes(machine)));
}

/** Says which jobs an operation affects. */
function Affected({ machine, operation }: { machine: string; operation: Operation }) {
  const { value, error } = useJobsOn(machine);
  const jobs = value.value;
  const most = 8;
  if (error.value) return <Problem of={error.value} />;
  if (!jobs) return <Loading />;
  return (
    <div class="affected">
      <p>
        <b>{t(operation === "drain" ? "action.moves" : "action.stays", { n: jobs.length })}</b>
      </p>
      {jobs.length ? (
        <p>
          {jobs.slice(0, most).map((j) => (
            <a key={j.uid} class="tag" href={address(["jobs", j.user, j.name])} target="_blank" rel="noreferrer">
              {j.user}/{j.name}
            </a>
          ))}
          {jobs.length > most ? <span class="faint"> {t("action.andMore", { n: jobs.length - most })}</span> : null}
        </p>
      ) : null}
    </div>
  );
}

/** Follows one action until its phase is final. */
function Following({ name }: { name: string }) {
  const { value, error } = useRead(name, (signal) => call("GET /api/v3/actions/{action}", { path: { action: name }, signal }), (a) => (a && isFinal(a) ? 0 : often));
  return error.value ? <Problem of={error.value} /> : value.value ? <Outcome a={value.value} /> : <Loading />;
}

/** A dialog that requests an operation on a machine, and shows its result while it is open. */
export function Requesting({ machine, operation, end, made }: { machine: string; operation: Operation; end: () => void; made?: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const reason = useSignal("");
  const grace = useSignal(0);
  const field = useRef<HTMLInputElement>(null);
  const sent = useSignal<V3ApiAction | null>(null);
  const { busy, error, act } = useAct();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current!.showModal();
    field.current!.focus();
    return () => before?.focus?.();
  }, []);
  const body: V3ApiNewAction = { operation, machine, reason: reason.value.trim(), graceSeconds: grace.value || undefined };
  const send = (dryRun: boolean) =>
    act(async () => {
      sent.value = await call("POST /api/v3/actions", { body: { ...body, dryRun: dryRun || undefined } });
      made?.();
    });
  const title = t(`action.ask.${operation}`, { machine });
  const idle = busy.value || !reason.value.trim() || (sent.value !== null && !sent.value.dryRun);
  return (
    <dialog ref={dialog} class="request" onClose={end} onClick={(e) => e.target === dialog.current && end()} aria-labelledby="request">
      <form
        class="dialog fields"
        onSubmit={(e) => {
          e.preventDefault();
          void send(false);
        }}
      >
        <h2 id="request">{title}</h2>
        <p>{t(`action.more.${operation}`)}</p>
        {operation === "uncordon" ? null : <Affected machine={machine} operation={operation} />}
        <label>
          {t("action.reason")}
          <input ref={field} name="reason" required maxLength={500} autocomplete="off" value={reason.value} onInput={(e) => (reason.value = e.currentTarget.value)} />
        </label>
        <label>
          {t("action.grace")}
          <select name="grace" value={String(grace.value)} onChange={(e) => (grace.value = Number(e.currentTarget.value))}>
            {graces.map((s) => (
              <option key={s} value={String(s)}>
                {s ? t("action.graceOf", { time: duration(s * 1000).replace(/ 0[hms]$/, "") }) : t("action.now")}
              </option>
            ))}
          </select>
        </label>
        <div class="commands">
          <Copied text={command(machine, operation, body)}>
            <code>{command(machine, operation, body)}</code> <Icon name="copy" />
          </Copied>
          <Copied text={curl("POST /api/v3/actions", { body })}>
            curl <Icon name="copy" />
          </Copied>
        </div>
        {error.value ? <Problem of={error.value} /> : null}
        {sent.value ? <Following key={sent.value.name} name={sent.value.name} /> : null}
        <div class="buttons">
          <button type="button" onClick={end}>
            {t(sent.value ? "close" : "cancel")}
          </button>
          <button type="button" name="dry" title={t("action.dryRunMore")} disabled={idle} onClick={() => void send(true)}>
            {t("action.dryRun")}
          </button>
          <button type="submit" class={operation === "drain" ? "primary danger" : "primary"} disabled={idle}>
            {t(`action.${operation}`)}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** Asks why an action is withdrawn, and withdraws it. */
export function Canceling({ a, end }: { a: V3ApiAction; end: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const reason = useSignal("");
  const { busy, error, act } = useAct();
  useEffect(() => dialog.current!.showModal(), []);
  const send = () =>
    act(async () => {
      await call("POST /api/v3/actions/{action}/cancel", { path: { action: a.name }, body: { reason: reason.value.trim() } });
      end();
    });
  return (
    <dialog ref={dialog} class="request" onClose={end} onClick={(e) => e.target === dialog.current && end()} aria-labelledby="cancel">
      <form
        class="dialog fields"
        onSubmit={(e) => {
          e.preventDefault();
          void send();
        }}
      >
        <h2 id="cancel">{t("action.askCancel", { operation: operationName(a), target: a.machine ?? a.job ?? "" })}</h2>
        <p>{t(a.started ? "action.cancelBegun" : "action.cancelMore")}</p>
        <label>
          {t("action.reason")}
          <input name="reason" required maxLength={200} autocomplete="off" value={reason.value} onInput={(e) => (reason.value = e.currentTarget.value)} />
        </label>
        {error.value ? <Problem of={error.value} /> : null}
        <div class="buttons">
          <button type="button" onClick={end}>
            {t("close")}
          </button>
          <button type="submit" class="primary danger" disabled={busy.value || !reason.value.trim()}>
            {t("action.cancel")}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** How many actions the page of a machine shows. */
const shown = 5;

/** The operations on a machine, and its latest actions. */
export function MachineActions({ m, asked }: { m: StatusMachine; asked?: Operation }) {
  const operation = useSignal<Operation | null>(asked ?? null);
  const canceling = useSignal<V3ApiAction | null>(null);
  const { value, error, again } = useRead(m.name, (signal) => call("GET /api/v3/actions", { query: { machine: m.name, limit: shown }, signal }), (page) => interval(page?.items));
  const ask = (o: Operation) => () => (operation.value = o);
  useKeys({ c: ask(m.cordoned ? "uncordon" : "cordon"), d: ask("drain") });
  const all = value.value?.items ?? [];
  return (
    <section class="requests" aria-label={t("action.actions")}>
      <p class="buttons">
        {m.cordoned ? (
          <button type="button" title="c" onClick={ask("uncordon")}>
            <Icon name="check" /> {t("action.uncordon")}
          </button>
        ) : (
          <button type="button" title="c" onClick={ask("cordon")}>
            <Icon name="stop" /> {t("action.cordon")}
          </button>
        )}
        <button type="button" title="d" onClick={ask("drain")}>
          <Icon name="out" /> {t("action.drain")}
        </button>
      </p>
      {error.value ? <Problem of={error.value} again={again} /> : null}
      {all.length ? (
        <>
          <ul class="steps">
            {all.map((a) => (
              <li key={a.name}>
                <p>
                  <b>{operationName(a)}</b> <Phase a={a} /> <span class="grow" />
                  <span class="faint">
                    {requester(a)} · <Ago time={a.created} />
                  </span>
                </p>
                <p>{a.reason}</p>
                {a.message ? <p class="faint">{a.message}</p> : null}
                {isCancelable(a) ? (
                  <button type="button" class="link" onClick={() => (canceling.value = a)}>
                    {t("action.cancel")}
                  </button>
                ) : null}
              </li>
            ))}
          </ul>
          <p>
            <a href={address(["admin", "actions"], { machine: m.name })}>{t("action.allOf")}</a>
          </p>
        </>
      ) : null}
      {operation.value ? <Requesting key={operation.value} machine={m.name} operation={operation.value} end={() => (operation.value = null)} made={again} /> : null}
      {canceling.value ? (
        <Canceling
          a={canceling.value}
          end={() => {
            canceling.value = null;
            again();
          }}
        />
      ) : null}
    </section>
  );
}
