// Fields of the form of a job. Each shows one part of the file, and changes it while a person types.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { JobDocument } from "./jobdoc";
import { t } from "./text";
import { Icon } from "./ui";
import type { Path } from "./yaml";

let fields = 0;

interface Field {
  d: JobDocument;
  path: Path;
  label: string;
  hint?: string;
}

/** A label, and what it is about. A part that the form can't change is shown as such. */
function Labelled({ d, path, label, hint, wide, able, children }: Field & { wide?: boolean; able: boolean; children: (id: string) => ComponentChildren }) {
  const id = useRef("");
  id.current ||= "job-" + ++fields;
  const n = d.node(path);
  return (
    <div class={wide ? "field whole-row" : "field"}>
      <label for={id.current}>{label}</label>
      {able ? (
        children(id.current)
      ) : (
        <button type="button" id={id.current} class="link" onClick={() => d.refuse(n?.from ?? 0)}>
          {t("form.inDocument")}
        </button>
      )}
      {hint ? <small>{hint}</small> : null}
    </div>
  );
}

/**
 * A text while someone types it. An empty one removes the part when they leave the field, so that its line stays until then. clean returns a typed text as
 * the file has it. If the file has another text by now, such as that of another file, the field shows that.
 */
function useTyping(now: string, write: (text: string) => void, remove: () => void, clean = (text: string) => text) {
  const typing = useSignal<{ text: string; file: string } | null>(null);
  return {
    value: typing.value?.file === now ? typing.value.text : now,
    typed: (text: string) => {
      const empty = text.trim() === "";
      typing.value = { text, file: empty ? now : clean(text) };
      if (!empty) write(text);
    },
    left: () => {
      if (typing.value?.file === now && typing.value.text.trim() === "") remove();
      typing.value = null;
    },
  };
}

export function Line({ number, wide, ...f }: Field & { number?: boolean; wide?: boolean }) {
  const { d, path } = f;
  const { value, typed, left } = useTyping(
    d.value(path),
    (text) => (number ? d.setNumber(path, text.trim()) : d.set(path, text)),
    () => d.set(path, undefined),
    (text) => (number ? text.trim() : text),
  );
  return (
    <Labelled {...f} wide={wide} able={d.isText(path)}>
      {(id) => (
        <input id={id} type="text" name={path.join(".")} inputMode={number ? "decimal" : undefined} value={value} placeholder={number ? "–" : undefined} autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(e) => typed(e.currentTarget.value)} onBlur={left} />
      )}
    </Labelled>
  );
}

/** A name that other parts of the file use: it is changed when the person leaves the field. */
export function Name({ label, name, value, change }: { label: string; name: string; value: string; change: (to: string) => void }) {
  const id = useRef("");
  id.current ||= "job-" + ++fields;
  return (
    <div class="field">
      <label for={id.current}>{label}</label>
      <input id={id.current} type="text" name={name} value={value} autocomplete="off" autocapitalize="off" spellcheck={false} onChange={(e) => (e.currentTarget.value.trim() && e.currentTarget.value.trim() !== value ? change(e.currentTarget.value.trim()) : (e.currentTarget.value = value))} />
    </div>
  );
}

export function Choice({ options, none, ...f }: Field & { options: (string | [string, string])[]; none?: string }) {
  const { d, path } = f;
  const now = d.value(path);
  const all = options.map((o): [string, string] => (typeof o === "string" ? [o, o] : o));
  if (now && !all.some(([v]) => v === now)) all.push([now, now]);
  return (
    <Labelled {...f} able={d.isText(path)}>
      {(id) => (
        <select id={id} name={path.join(".")} value={now} onChange={(e) => d.set(path, e.currentTarget.value || undefined)}>
          {none !== undefined || !now ? <option value="">{none ?? ""}</option> : null}
          {all.map(([v, text]) => (
            <option key={v} value={v}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

/** A choice between yes and no. The value that holds without the key removes it. */
export function Tick({ d, path, label, hint, without = false }: Field & { without?: boolean }) {
  const now = d.value(path);
  const checked = now === "" ? without : /^(true|yes|on|1)$/i.test(now);
  return (
    <label class="tick">
      <input type="checkbox" name={path.join(".")} checked={checked} disabled={!d.isText(path)} onChange={(e) => d.set(path, e.currentTarget.checked === without ? undefined : e.currentTarget.checked)} />
      <span>
        {label}
        {hint ? <small>{hint}</small> : null}
      </span>
    </label>
  );
}

function withoutEnd(text: string): string {
  return text.replace(/\n+$/, "");
}

/** A list of texts, one on each line. Items of several lines have a field each. */
export function Lines({ mono = true, ...f }: Field & { mono?: boolean }) {
  const { d, path } = f;
  const all = d.texts(path);
  const several = all?.some((x) => x.includes("\n"));
  const { value, typed, left } = useTyping(
    all?.join("\n") ?? "",
    (text) => d.set(path, withoutEnd(text).split("\n")),
    () => d.set(path, undefined),
    withoutEnd,
  );
  return (
    <Labelled {...f} hint={several ? undefined : f.hint} wide able={all !== null}>
      {(id) =>
        several ? (
          <div class="items">
            {all!.map((x, i) => (
              <Item key={i} d={d} path={[...path, i]} id={i ? undefined : id} label={`${f.label} ${i + 1}`} value={x} />
            ))}
            <button type="button" class="link" onClick={() => d.set([...path, all!.length], "echo")}>
              {t("form.addCommand")}
            </button>
          </div>
        ) : (
          <textarea id={id} name={path.join(".")} class={mono ? "mono" : ""} rows={Math.min(16, Math.max(2, value.split("\n").length))} wrap="off" value={value} spellcheck={false} autocomplete="off" autocapitalize="off" onInput={(e) => typed(e.currentTarget.value)} onBlur={left} />
        )
      }
    </Labelled>
  );
}

function Item({ d, path, id, label, value: now }: { d: JobDocument; path: Path; id?: string; label: string; value: string }) {
  const { value, typed, left } = useTyping(now, (text) => d.set(path, text), () => d.set(path, undefined));
  return (
    <div class="item">
      <textarea id={id} aria-label={label} name={path.join(".")} class="mono" rows={Math.min(16, value.replace(/\n$/, "").split("\n").length)} wrap="off" value={value} spellcheck={false} autocomplete="off" autocapitalize="off" onInput={(e) => typed(e.currentTarget.value)} onBlur={left} />
      <Remove label={label} run={() => d.set(path, undefined)} />
    </div>
  );
}

export function Remove({ label, run, disabled }: { label: string; run: () => void; disabled?: boolean }) {
  return (
    <button type="button" class="square" aria-label={t("form.remove", { name: label })} title={t("form.remove", { name: label })} disabled={disabled} onClick={run}>
      <Icon name="close" />
    </button>
  );
}

export function Add({ label, run }: { label: string; run: () => void }) {
  return (
    <button type="button" class="link" onClick={run}>
      <Icon name="plus" /> {label}
    </button>
  );
}

/** A mapping of names to texts. */
export function Pairs({ d, path, label, add, first, number, names }: { d: JobDocument; path: Path; label: string; add: string; first: string | number; number?: boolean; /** only the names */ names?: boolean }) {
  const n = d.node(path);
  const keys = d.keys(path);
  const fresh = () => {
    for (let i = 1; ; i++) if (!keys.includes(`name${i}`)) return `name${i}`;
  };
  return (
    <div class="field whole-row" role="group" aria-label={label}>
      <span class="label">{label}</span>
      {n && n.kind !== "map" ? (
        <button type="button" class="link" onClick={() => d.refuse(n.from)}>
          {t("form.inDocument")}
        </button>
      ) : (
        <>
          {keys.map((k) => (
            <div key={k} class="pair">
              <Name label={t("name")} name={[...path, k, ""].join(".")} value={k} change={(to) => d.rename([...path, k], to)} />
              {names ? <span /> : <Line d={d} path={[...path, k]} label={t("form.value")} number={number} />}
              <Remove label={k} run={() => d.set([...path, k], undefined)} />
            </div>
          ))}
          <Add label={add} run={() => d.set([...path, fresh()], first)} />
        </>
      )}
    </div>
  );
}

/** Ticks for the items of a list that may only have certain names. */
export function Ticks({ d, path, label, all }: { d: JobDocument; path: Path; label: string; all: string[] }) {
  const now = d.texts(path);
  const shown = [...new Set([...all, ...(now ?? [])])];
  if (shown.length === 0) return null;
  return (
    <fieldset class="field whole-row ticks">
      <legend>{label}</legend>
      {shown.map((name) => (
        <label key={name} class="tick">
          <input
            type="checkbox"
            checked={now?.includes(name) ?? false}
            disabled={now === null}
            onChange={(e) => {
              const rest = e.currentTarget.checked ? [...now!, name] : now!.filter((x) => x !== name);
              d.set(path, rest.length ? rest : undefined);
            }}
          />
          <span>{name}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** A part of the form that is opened for rare settings. */
export function More({ label, open, children }: { label: string; open?: boolean; children: ComponentChildren }) {
  return (
    <details class="whole-row" open={open}>
      <summary>{label}</summary>
      <div class="grid">{children}</div>
    </details>
  );
}
