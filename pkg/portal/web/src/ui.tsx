// Small parts that several pages use.
import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { failure, lost } from "./api";
import { useAct } from "./read";
import { maybe, t } from "./text";
import { exact, since } from "./time";

const paths = {
  home: "M2.5 7 8 2.5 13.5 7v6.5h-4V9.5h-3v4h-4z",
  jobs: "M2.5 4h11M2.5 8h11M2.5 12h7",
  plus: "M8 3v10M3 8h10",
  queue: "M2.5 3.5h11M4.5 8h9M6.5 12.5h7",
  machines: "M2.5 2.5h11v4.5h-11zM2.5 9h11v4.5h-11zM5 4.8h.01M5 11.3h.01",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5l3 3",
  stop: "M4 4h8v8H4z",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
  copy: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
  trash: "M3 4.5h10M6.5 4V2.5h3V4M4.5 4.5l.5 9h6l.5-9",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  down: "M8 2.5v8M4.5 7.5 8 11l3.5-3.5M3 13.5h10",
  link: "M6.5 9.5 9.5 6.5M7 4.5l1.5-1.5a2.8 2.8 0 0 1 4 4L11 8.5M9 11.5 7.5 13a2.8 2.8 0 0 1-4-4L5 7.5",
  chevron: "M6 4l4 4-4 4",
  up: "M4 10l4-4 4 4",
  drop: "M4 6l4 4 4-4",
  out: "M6.5 13.5h-4v-11h4M10 5l3 3-3 3M13 8H6",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  keys: "M1.5 4.5h13v7h-13zM4 7h.01M6.5 7h.01M9 7h.01M11.5 7h.01M5 9.3h6",
  close: "M4 4l8 8M12 4l-8 8",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  folder: "M2 4h4l1.5 2H14v7H2z",
  warn: "M8 2.5 14 13H2zM8 6.5v3M8 11.3h.01",
  check: "M3 8.5 6.5 12 13 4.5",
  shell: "M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10h3",
  back: "M10 4 6 8l4 4",
  page: "M2.5 3h11v10h-11zM2.5 6h11",
  usage: "M3 13.5V8M8 13.5v-11M13 13.5v-4",
  person: "M8 2.5a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4zM2.8 13.5a5.2 5.2 0 0 1 10.4 0",
  shield: "M8 1.8 13.3 4v4c0 3-2.2 5.2-5.3 6.2C4.9 13.2 2.7 11 2.7 8V4zM5.8 8l1.6 1.6 3-3",
  globe: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM2 8h12M8 2c4 4 4 8 0 12M8 2c-4 4-4 8 0 12",
};

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

/** Families of states, which have one colour each. */
const family: Record<string, string> = { running: "run", starting: "run", barrier: "run", succeeded: "good", failed: "bad", waiting: "wait", queued: "wait", retry: "wait", stopping: "off", stopped: "off", deleting: "off", deleted: "off" };

export function State({ state, position, deleted }: { state: string; position?: number; deleted?: boolean }) {
  return (
    <span class={`state ${family[state] ?? "off"}`}>
      <i class={state === "running" || state === "starting" ? "dot beats" : "dot"} />
      {maybe("state." + state, state)}
      {state === "queued" && position ? <span class="faint"> {t("position", { n: position })}</span> : null}
      {deleted && state !== "deleted" && state !== "deleting" ? <span class="faint"> ({t("deletedToo")})</span> : null}
    </span>
  );
}

export function Ago({ time }: { time?: string }) {
  return time ? (
    <time dateTime={time} title={exact(time)}>
      {since(time)}
    </time>
  ) : null;
}

/** An error: its sentence, what to do, its code, and the id of the request, by which an operator finds it. */
export function Problem({ of, again }: { of: unknown; again?: () => void }) {
  const f = failure(of);
  return (
    <div class="problem" role="alert">
      <Icon name="warn" />
      <div>
        <p class="says">{f.message}</p>
        {f.remedy ? <p>{f.remedy}</p> : null}
        <p class="faint">
          <code>{f.code}</code>
          {f.request ? (
            <>
              {" · "}
              {t("requestId", { id: "" })}
              <Copied text={f.request}>
                <code>{f.request}</code>
              </Copied>
            </>
          ) : null}
        </p>
        {again ? (
          <button type="button" onClick={again}>
            {t("again")}
          </button>
        ) : null}
      </div>
    </div>
  );
}

/** Says that the page isn't live while its stream is lost. */
export function Lost() {
  const f = lost.value;
  return f ? (
    <p class="lost" role="status">
      <Icon name="warn" /> {t("lost", { why: f.message })} {f.code !== "NoAnswer" ? <code>{f.code}</code> : null} {f.request ? <span class="faint">{t("requestId", { id: f.request })}</span> : null}
    </p>
  ) : null;
}

const toasts = signal<{ id: number; text: string }[]>([]);
let toastId = 0;

/** Shows a short message for some seconds. */
export function toast(text: string): void {
  const id = ++toastId;
  toasts.value = [...toasts.value, { id, text }];
  setTimeout(() => (toasts.value = toasts.value.filter((x) => x.id !== id)), 4000);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((x) => (
        <div key={x.id} class="toast">
          {x.text}
        </div>
      ))}
    </div>
  );
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(t("copied"));
  } catch {
    toast(text);
  }
}

export function Copied({ text, children }: { text: string; children: ComponentChildren }) {
  return (
    <button type="button" class="bare" title={t("copy")} onClick={() => void copy(text)}>
      {children}
    </button>
  );
}

/** Saves a text as a file of the person. */
export function save(name: string, parts: BlobPart[], type: string): void {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob(parts, { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

interface Item {
  label: string;
  icon?: IconName;
  danger?: boolean;
  run: () => void;
}

/** A button that opens a list of operations. */
export function Menu({ label, icon, items, children }: { label: string; icon?: IconName; items: (Item | null)[]; children?: ComponentChildren }) {
  const open = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open.value) return;
    const away = (e: Event) => {
      if (!box.current?.contains(e.target as Node)) open.value = false;
    };
    addEventListener("pointerdown", away);
    addEventListener("focusin", away);
    (box.current?.querySelector("[role=menuitem]") as HTMLElement)?.focus();
    return () => {
      removeEventListener("pointerdown", away);
      removeEventListener("focusin", away);
    };
  }, [open.value]);
  const keys = (e: KeyboardEvent) => {
    const all = [...(box.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (e.key === "Escape" && open.value) {
      open.value = false;
      (box.current?.querySelector("button") as HTMLElement).focus();
      e.stopPropagation();
    } else if (open.value && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
      all[(at + (e.key === "ArrowDown" ? 1 : all.length - 1)) % all.length]?.focus();
      e.preventDefault();
      e.stopPropagation();
    }
  };
  return (
    <div class="menu" ref={box} onKeyDown={keys}>
      <button type="button" class={children ? "" : "square"} aria-haspopup="menu" aria-expanded={open.value} aria-label={children ? undefined : label} title={label} onClick={() => (open.value = !open.value)}>
        {icon ? <Icon name={icon} /> : null}
        {children}
      </button>
      {open.value ? (
        <div class="menu-list" role="menu" aria-label={label}>
          {items.map((i) =>
            i ? (
              <button
                key={i.label}
                type="button"
                role="menuitem"
                class={i.danger ? "danger" : ""}
                onClick={() => {
                  open.value = false;
                  i.run();
                }}
              >
                {i.icon ? <Icon name={i.icon} /> : <span class="icon" />}
                {i.label}
              </button>
            ) : (
              <hr />
            ),
          )}
        </div>
      ) : null}
    </div>
  );
}

interface Question {
  title: string;
  text: string;
  yes: string;
  danger: boolean;
  act: () => Promise<void>;
}

const question = signal<Question | null>(null);

/** Asks before something is done. The dialog stays open if it fails, with the server's sentence. */
export function ask(q: Question): void {
  question.value = q;
}

export function Asking() {
  const q = question.value;
  const { busy, error, act } = useAct();
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    error.value = null;
    if (q) box.current?.showModal();
  }, [q]);
  if (!q) return null;
  const end = () => {
    box.current?.close();
    question.value = null;
  };
  const yes = () =>
    act(async () => {
      await q.act();
      end();
    });
  return (
    <dialog ref={box} onCancel={end} onClick={(e) => e.target === box.current && end()} aria-labelledby="asked">
      <div class="dialog">
        <h2 id="asked">{q.title}</h2>
        <p>{q.text}</p>
        {error.value ? <Problem of={error.value} /> : null}
        <div class="buttons">
          <button type="button" onClick={end}>
            {t("cancel")}
          </button>
          <button type="button" class={q.danger ? "primary danger" : "primary"} disabled={busy.value} onClick={() => void yes()}>
            {q.yes}
          </button>
        </div>
      </div>
    </dialog>
  );
}

export function Loading() {
  return <p class="loading faint">{t("loading")}</p>;
}

/** A bar of parts that share a whole. */
export function Bar({ parts, total, label }: { parts: { n: number; class: string }[]; total: number; label: string }) {
  return (
    <div class="bar" role="img" aria-label={label} title={label}>
      {parts.map((p) => (p.n > 0 ? <i key={p.class} class={p.class} style={{ width: `${(100 * p.n) / Math.max(total, 1)}%` }} /> : null))}
    </div>
  );
}
