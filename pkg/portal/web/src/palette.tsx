// The palette: finds pages, jobs and templates by a few letters, and runs what a menu has.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, failure, type Failure } from "./api";
import { address, go } from "./route";
import { me } from "./session";
import { language, languages, speak, t } from "./text";
import { Icon, Problem, State, type IconName } from "./ui";

export const open = signal(false);

interface Entry {
  key: string;
  icon: IconName;
  title: string;
  more?: string;
  state?: string;
  run: () => void;
}

/** Pages and operations that are always there. */
function fixed(): Entry[] {
  const page = (path: string[], icon: IconName, title: string): Entry => ({ key: "/" + path.join("/"), icon, title, run: () => go(address(path)) });
  const mine = me.value?.name;
  return [
    page([], "home", t("home")),
    page(["jobs"], "jobs", t("jobs")),
    { key: "mine", icon: "jobs", title: t("allMine"), run: () => go(address(["jobs"], { user: mine })) },
    page(["submit"], "plus", t("newJob")),
    page(["templates"], "file", t("templates")),
    page(["queue"], "queue", t("queue")),
    page(["machines"], "machines", t("machines")),
    page(["usage"], "usage", t("usagePage")),
    page(["profile"], "person", t("profile")),
    ...(me.value?.grants.administrator ? [page(["admin"], "shield", t("admin"))] : []),
    ...languages.filter(([code]) => code !== language.value).map(([code, name]): Entry => ({ key: "language " + code, icon: "globe", title: name, run: () => speak(code) })),
  ];
}

/** Reports whether all words are in a title. */
function fits(title: string, words: string[]): boolean {
  const low = title.toLowerCase();
  return words.every((w) => low.includes(w));
}

/** How many jobs and how many templates are offered. */
const most = 8;

/** Waits for the last of several letters. */
const pause = 150; // milliseconds

/** Finds jobs and templates that the person may see. */
async function found(text: string, signal: AbortSignal): Promise<Entry[]> {
  const [jobs, templates] = await Promise.all([call("GET /api/v3/jobs", { query: { keyword: text, limit: most }, signal }), call("GET /api/v3/templates", { query: { keyword: text }, signal })]);
  return [
    ...(jobs.items ?? []).map((j): Entry => ({ key: j.uid, icon: "jobs", title: j.name, more: j.user, state: j.state, run: () => go(address(["jobs", j.user, j.name])) })),
    ...(templates.items ?? []).slice(0, most).map((x): Entry => ({ key: x.id, icon: "file", title: x.name, more: x.builtIn ? t("builtIn") : x.author, run: () => go(address(["templates", x.id])) })),
  ];
}

export function Palette() {
  return open.value ? <Box /> : null;
}

function Box() {
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const text = useSignal("");
  const at = useSignal(0);
  const more = useSignal<Entry[]>([]);
  const error = useSignal<Failure | null>(null);
  const close = () => (open.value = false);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current!.showModal();
    return () => before?.focus?.();
  }, []);
  useEffect(() => {
    const word = text.value.trim();
    at.value = 0;
    if (!word) {
      more.value = [];
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(() => {
      found(word, stop.signal).then(
        (all) => {
          more.value = all;
          error.value = null;
        },
        (e) => {
          if (!stop.signal.aborted) error.value = failure(e);
        },
      );
    }, pause);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text.value]);

  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const entries = [...fixed().filter((e) => fits(e.title, words)), ...more.value];
  const chosen = Math.min(at.value, entries.length - 1);
  const run = (e: Entry | undefined) => {
    if (!e) return;
    close();
    e.run();
  };
  const keys = (e: KeyboardEvent) => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step && entries.length) {
      at.value = (chosen + step + entries.length) % entries.length;
      list.current?.children[at.value]?.scrollIntoView({ block: "nearest" });
    } else if (e.key === "Enter" && !e.isComposing) run(entries[chosen]);
    else return;
    e.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" onClose={close} onClick={(e) => e.target === dialog.current && close()} aria-label={t("palette")}>
      <label class="search">
        <Icon name="search" />
        <input
          type="text"
          autofocus
          role="combobox"
          aria-expanded="true"
          aria-controls="found"
          aria-activedescendant={entries[chosen] ? "found-" + chosen : undefined}
          placeholder={t("paletteHint")}
          aria-label={t("paletteHint")}
          onInput={(e) => (text.value = e.currentTarget.value)}
          onKeyDown={keys}
        />
      </label>
      {error.value ? <Problem of={error.value} /> : null}
      <ul id="found" role="listbox" ref={list}>
        {entries.map((e, i) => (
          <li key={e.key} id={"found-" + i} role="option" aria-selected={i === chosen} onPointerMove={() => (at.value = i)} onClick={() => run(e)}>
            <Icon name={e.icon} />
            <span class="name">{e.title}</span>
            {e.more ? <span class="faint">{e.more}</span> : null}
            <span class="grow" />
            {e.state ? <State state={e.state} /> : null}
          </li>
        ))}
      </ul>
      {entries.length === 0 ? <p class="empty">{t("nothingFound")}</p> : null}
    </dialog>
  );
}
