// Parts that the pages of the administration share.
import { type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type Failure } from "./api";
import { useKeys } from "./keys";
import { address, setQuery } from "./route";
import { t } from "./text";
import { Copied, Icon, Menu, Problem, copy } from "./ui";

/** How many rows a table draws at first. */
export const some = 200;

/** The head of a page: its title, its buttons, and the menu with commands to copy. */
export function Top({ title, up, children, paictl, curl }: { title: string; up?: [string, string]; children?: ComponentChildren; paictl: string; curl: string }) {
  useEffect(() => {
    document.title = title + " – paictl";
  }, [title]);
  return (
    <header class="top">
      {up ? (
        <nav class="crumbs">
          <a href={address(["admin", up[0]])}>{up[1]}</a>
          <Icon name="chevron" />
        </nav>
      ) : null}
      <h1 title={title}>{title}</h1>
      <span class="grow" />
      <Menu
        label={t("more")}
        icon="more"
        items={[
          { label: t("copyPaictl"), icon: "copy", run: () => void copy(paictl) },
          { label: t("copyCurl"), icon: "copy", run: () => void copy(curl) },
          { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
        ]}
      />
      {children}
    </header>
  );
}

/** A field of the address that rows are searched by. */
export function Search({ label, of = "keyword", value }: { label: string; of?: string; value: string }) {
  const field = useRef<HTMLInputElement>(null);
  const timer = useRef(0);
  useKeys({ "/": () => field.current?.focus() });
  useEffect(() => {
    if (document.activeElement !== field.current) field.current!.value = value;
  }, [value]);
  const typed = (text: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ [of]: text || undefined }), 200) as unknown as number;
  };
  return (
    <label class="search">
      <Icon name="search" />
      <input ref={field} type="search" placeholder={label} aria-label={label} defaultValue={value} onInput={(e) => typed(e.currentTarget.value)} onKeyDown={(e) => e.key === "Escape" && e.currentTarget.blur()} />
      <kbd>/</kbd>
    </label>
  );
}

/** Buttons of which one is chosen, kept in the address. The first is without a value. */
export function Segments({ label, of, value, choices }: { label: string; of: string; value: string; choices: [string, string][] }) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {choices.map(([name, text]) => (
        <button key={name} type="button" aria-pressed={value === name} onClick={() => setQuery({ [of]: name || undefined })}>
          {text}
        </button>
      ))}
    </div>
  );
}

let fields = 0;

/** A field of a form with its label. The child gets the id of the label's element. */
export function Field({ label, hint, children }: { label: string; hint?: string; children: (id: string) => ComponentChildren }) {
  const id = useRef("");
  id.current ||= "field-" + ++fields;
  return (
    <div class="field">
      <label for={id.current}>{label}</label>
      {children(id.current)}
      {hint ? <small>{hint}</small> : null}
    </div>
  );
}

export function Line({ label, hint, value, set, type = "text", required }: { label: string; hint?: string; value: string; set: (v: string) => void; type?: "text" | "email" | "password" | "number"; required?: boolean }) {
  return (
    <Field label={label} hint={hint}>
      {(id) => <input id={id} type={type as "text"} value={value} required={required} autocomplete={type === "password" ? "new-password" : "off"} spellcheck={false} onInput={(e) => set(e.currentTarget.value)} />}
    </Field>
  );
}

export function Tick({ label, hint, value, set, disabled }: { label: string; hint?: string; value: boolean; set: (v: boolean) => void; disabled?: boolean }) {
  return (
    <label class="tick">
      <input type="checkbox" checked={value} disabled={disabled} onChange={(e) => set(e.currentTarget.checked)} />
      <span>
        {label}
        {hint ? <small>{hint}</small> : null}
      </span>
    </label>
  );
}

/** A list of names: each can be removed, and others added from those that exist or, without these, by typing. */
export function Names({ label, hint, value, all, set, add }: { label: string; hint?: string; value: string[]; all?: string[]; set: (v: string[]) => void; add: string }) {
  const more = (name: string) => {
    if (name && !value.includes(name)) set([...value, name]);
  };
  const rest = all?.filter((x) => !value.includes(x));
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <div class="names">
          {value.map((name) => (
            <span key={name} class="tag">
              {name}
              <button type="button" class="bare" aria-label={t("admin.removeName", { name })} title={t("admin.removeName", { name })} onClick={() => set(value.filter((x) => x !== name))}>
                <Icon name="close" />
              </button>
            </span>
          ))}
          {rest ? (
            <select
              id={id}
              value=""
              disabled={rest.length === 0}
              onChange={(e) => {
                more(e.currentTarget.value);
                e.currentTarget.value = "";
              }}
            >
              <option value="">{add}</option>
              {rest.map((x) => (
                <option key={x} value={x}>
                  {x}
                </option>
              ))}
            </select>
          ) : (
            <input
              id={id}
              placeholder={add}
              autocomplete="off"
              spellcheck={false}
              onChange={(e) => {
                more(e.currentTarget.value.trim());
                e.currentTarget.value = "";
              }}
              onKeyDown={(e) => {
                if (e.key !== "Enter") return;
                e.preventDefault(); // it would send the form
                e.currentTarget.dispatchEvent(new Event("change"));
              }}
            />
          )}
        </div>
      )}
    </Field>
  );
}

/** Pairs of a provider of sign-ins and the name of something there. */
export function Pairs({ label, hint, value, set, second }: { label: string; hint?: string; value: [string, string][]; set: (v: [string, string][]) => void; second: string }) {
  const change = (i: number, pair: [string, string]) => set(value.map((x, j) => (j === i ? pair : x)));
  return (
    <div class="field" role="group" aria-label={label}>
      <span class="label">{label}</span>
      {value.map((pair, i) => (
        <div key={i} class="pair">
          <input aria-label={t("admin.provider")} placeholder={t("admin.provider")} value={pair[0]} autocomplete="off" spellcheck={false} onInput={(e) => change(i, [e.currentTarget.value, pair[1]])} />
          <input aria-label={second} placeholder={second} value={pair[1]} autocomplete="off" spellcheck={false} onInput={(e) => change(i, [pair[0], e.currentTarget.value])} />
          <button type="button" class="square" aria-label={t("admin.removeName", { name: pair.join("/") })} title={t("admin.removeName", { name: pair.join("/") })} onClick={() => set(value.filter((_, j) => j !== i))}>
            <Icon name="close" />
          </button>
        </div>
      ))}
      <div>
        <button type="button" class="link" onClick={() => set([...value, ["", ""]])}>
          {t("admin.addPair")}
        </button>
      </div>
      {hint ? <small>{hint}</small> : null}
    </div>
  );
}

/** Commands that do the same as the page. */
export function Command({ lines, why }: { lines: string[]; why?: string }) {
  if (lines.length === 0) return null;
  return (
    <div class="command">
      {why ? <p class="faint small">{why}</p> : null}
      {lines.map((line) => (
        <Copied key={line} text={line}>
          <code>{line}</code>
          <Icon name="copy" />
        </Copied>
      ))}
    </div>
  );
}

/** The error of a change. If someone else has changed the thing, it offers to read it again. */
export function Refusal({ of, again }: { of: Failure | null; again: () => void }) {
  if (!of) return null;
  return (
    <>
      <Problem of={of} />
      {of.status === 409 ? (
        <p class="note">
          {t("admin.conflict")}{" "}
          <button type="button" onClick={again}>
            {t("admin.readAgain")}
          </button>
        </p>
      ) : null}
    </>
  );
}

/** Returns a draft on a new base: what the person has changed stays, and everything else is as it is now. */
export function rebased<T extends object>(draft: T, was: T, now: T): T {
  const out = { ...now };
  for (const k of Object.keys(now) as (keyof T)[]) if (!same(draft[k], was[k])) out[k] = draft[k];
  return out;
}

export function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Keeps the rows of a long table few. */
export function More({ n, most }: { n: number; most: Signal<number> }) {
  return n > most.value ? (
    <footer class="under">
      <span class="faint">{t("admin.shownOf", { n: most.value, all: n })}</span>
      <button type="button" onClick={() => (most.value += 1000)}>
        {t("admin.showMore")}
      </button>
    </footer>
  ) : null;
}
