// Silences of alerts: the list, and the dialog that makes one.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call } from "./api";
import { useAct } from "./read";
import { curl, quoted } from "./shell";
import { t } from "./text";
import { duration } from "./time";
import type { V3ApiAlert, V3ApiMatcher, V3ApiSilence } from "./types";
import { Ago, Copied, Icon, Problem, ask, toast } from "./ui";

/** Labels that say what an alert is about. The others differ between alerts about the same thing. */
const telling = ["alertname", "node", "node_name", "user", "job_name", "service", "gpu", "minor_number", "vc"];

const signs = ["=", "=~", "!=", "!~"] as const;

function signOf(m: V3ApiMatcher): string {
  return (m.not ? "!" : m.regex ? "=" : "") + (m.regex ? "~" : "=");
}

export function textOf(m: V3ApiMatcher): string {
  return m.label + signOf(m) + m.value;
}

/** Whether an alert has the labels that a silence selects; null if an expression can't be read. */
export function matches(a: V3ApiAlert, all: V3ApiMatcher[]): boolean | null {
  try {
    return all.length > 0 && all.every((m) => {
      const value = a.labels?.[m.label] ?? "";
      return (m.regex ? new RegExp(`^(?:${m.value})$`).test(value) : value === m.value) !== (m.not ?? false);
    });
  } catch {
    return null;
  }
}

/** The labels by which an alert is silenced unless the person chooses others. */
export function matchersOf(a: V3ApiAlert): V3ApiMatcher[] {
  return telling.flatMap((label) => (a.labels?.[label] ? [{ label, value: a.labels[label] }] : []));
}

/** Times of a silence in seconds. */
const times = [1800, 3600, 7200, 14_400, 28_800, 86_400, 259_200, 604_800, 2_592_000];

function command(all: V3ApiMatcher[], seconds: number, reason: string): string {
  const name = all.find((m) => m.label === "alertname" && !m.regex && !m.not);
  const rest = all.filter((m) => m !== name).map((m) => " --match " + quoted(textOf(m)));
  return `paictl alert silence${name ? " " + quoted(name.value) : ""}${rest.join("")} --for ${seconds}s --reason ${quoted(reason.trim() || t("admin.reasonHere"))}`;
}

function Row({ m, i, change, remove }: { m: V3ApiMatcher; i: number; change: (m: V3ApiMatcher) => void; remove: () => void }) {
  return (
    <div class="matcher">
      <input aria-label={t("admin.label", { n: i + 1 })} placeholder="alertname" value={m.label} required autocomplete="off" spellcheck={false} onInput={(e) => change({ ...m, label: e.currentTarget.value.trim() })} />
      <select aria-label={t("admin.comparison", { n: i + 1 })} value={signOf(m)} onChange={(e) => change({ label: m.label, value: m.value, regex: e.currentTarget.value.endsWith("~") || undefined, not: e.currentTarget.value.startsWith("!") || undefined })}>
        {signs.map((s) => (
          <option key={s} value={s}>
            {s}
          </option>
        ))}
      </select>
      <input aria-label={t("admin.labelValue", { n: i + 1 })} value={m.value} autocomplete="off" spellcheck={false} onInput={(e) => change({ ...m, value: e.currentTarget.value })} />
      <button type="button" class="square" aria-label={t("admin.removeName", { name: m.label })} title={t("admin.removeName", { name: m.label })} onClick={remove}>
        <Icon name="close" />
      </button>
    </div>
  );
}

/** A dialog that silences alerts. */
export function Silencing({ of, alerts, end }: { of: V3ApiMatcher[]; alerts: V3ApiAlert[]; end: (made: boolean) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const all = useSignal(of.length ? of : [{ label: "alertname", value: "" }]);
  const seconds = useSignal(7200);
  const reason = useSignal("");
  const { busy, error, act } = useAct();
  useEffect(() => dialog.current!.showModal(), []);
  const body = { matchers: all.value, seconds: seconds.value, reason: reason.value.trim() };
  const found = alerts.map((a) => matches(a, all.value));
  const n = found.filter(Boolean).length;
  const change = (i: number, m: V3ApiMatcher | null) => (all.value = all.value.flatMap((x, j) => (i !== j ? [x] : m ? [m] : [])));
  const send = () =>
    act(async () => {
      const s = await call("POST /api/v3/silences", { body });
      toast(t("admin.silenced", { n: s.alerts }));
      end(true);
    });
  return (
    <dialog ref={dialog} class="request" onClose={() => end(false)} onClick={(e) => e.target === dialog.current && end(false)} aria-labelledby="silence">
      <form
        class="dialog fields"
        onSubmit={(e) => {
          e.preventDefault();
          void send();
        }}
      >
        <h2 id="silence">{t("admin.silenceTitle")}</h2>
        <p>{t("admin.silenceMore")}</p>
        <fieldset class="matchers">
          <legend>{t("admin.matchers")}</legend>
          {all.value.map((m, i) => (
            <Row key={i} m={m} i={i} change={(now) => change(i, now)} remove={() => change(i, null)} />
          ))}
          <button type="button" class="link" onClick={() => (all.value = [...all.value, { label: "", value: "" }])}>
            {t("admin.addMatcher")}
          </button>
        </fieldset>
        <p role="status">
          <b>{found.includes(null) ? t("admin.badExpression") : t("admin.matchesNow", { n })}</b>
        </p>
        <label>
          {t("admin.silenceFor")}
          <select name="for" value={String(seconds.value)} onChange={(e) => (seconds.value = Number(e.currentTarget.value))}>
            {times.map((s) => (
              <option key={s} value={String(s)}>
                {duration(s * 1000).replace(/ 0[hms]$/, "")}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t("reason")}
          <input name="reason" required maxLength={500} autocomplete="off" value={reason.value} onInput={(e) => (reason.value = e.currentTarget.value)} />
        </label>
        <div class="commands">
          <Copied text={command(all.value, seconds.value, reason.value)}>
            <code>{command(all.value, seconds.value, reason.value)}</code> <Icon name="copy" />
          </Copied>
          <Copied text={curl("POST /api/v3/silences", { body })}>
            curl <Icon name="copy" />
          </Copied>
        </div>
        {error.value ? <Problem of={error.value} /> : null}
        <div class="buttons">
          <button type="button" onClick={() => end(false)}>
            {t("cancel")}
          </button>
          <button type="submit" class="primary" disabled={busy.value || !reason.value.trim() || all.value.length === 0}>
            {t("admin.silence")}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** The silences that haven't ended. */
export function SilenceList({ all, changed }: { all: V3ApiSilence[]; changed: () => void }) {
  const end = (s: V3ApiSilence) =>
    ask({
      title: t("admin.askUnsilence"),
      text: t("admin.askUnsilenceMore", { matchers: (s.matchers ?? []).map(textOf).join(", ") }),
      yes: t("admin.unsilence"),
      danger: false,
      act: async () => {
        await call("DELETE /api/v3/silences/{silence}", { path: { silence: s.id } });
        toast(t("admin.unsilenced"));
        changed();
      },
    });
  if (all.length === 0) return <p class="faint">{t("admin.noSilences")}</p>;
  return (
    <table class="rows silences">
      <thead>
        <tr>
          <th>{t("admin.matchers")}</th>
          <th class="num wide">{t("admin.tab.alerts")}</th>
          <th class="c-time">{t("admin.ends")}</th>
          <th class="wide">{t("admin.by")}</th>
          <th>{t("reason")}</th>
          <th aria-label={t("more")} />
        </tr>
      </thead>
      <tbody>
        {all.map((s) => (
          <tr key={s.id}>
            <td class="long">
              {(s.matchers ?? []).map((m) => (
                <code key={textOf(m)} class="tag">
                  {textOf(m)}
                </code>
              ))}
            </td>
            <td class="num wide">{s.alerts}</td>
            <td class="c-time">
              <Ago time={s.ends} />
            </td>
            <td class="wide">{s.by}</td>
            <td class="long">{s.reason}</td>
            <td>
              <button type="button" onClick={() => end(s)}>
                {t("admin.unsilence")}
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
