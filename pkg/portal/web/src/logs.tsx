// The logs of a job's tasks. The log of one task is shown by position (tasklog.tsx); those of several, and logs without positions, as the
// lines of a stream, with a search in those that the page has.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Failure, failure, frames, lasting, lost } from "./api";
import { bytesOf, fill, stampOf, textOf } from "./logline";
import { screenClass, TaskChoice, Ticks } from "./logparts";
import { place, setQuery } from "./route";
import { TaskLog } from "./tasklog";
import { t } from "./text";
import type { JobDetail, LogsLine } from "./types";
import { Icon, Problem, save } from "./ui";

const tail = 1000; // lines of each task that are read at first
const most = 20_000; // lines that are kept
const mostBytes = 4 << 20; // of the texts of lines that are kept
const burst = 1000; // lines that wait to be drawn; a hidden tab draws no frames
const chunk = 250; // lines of an element, which the browser draws when it is in view

interface Line {
  task: string;
  stamp: string;
  text: string;
  bytes: number;
}

/** Decodes a line. */
function read(l: LogsLine): Line {
  return { task: l.task, stamp: l.stamp ?? "", ...textOf(bytesOf(l.text)) };
}

/** The element with all lines. It is drawn by hand: a component for each of 20,000 lines would be slow. */
class Screen {
  lines: Line[] = [];
  dropped = false;
  word = "";
  private chunks: HTMLElement[] = [];
  private bytes = 0;
  constructor(
    private readonly box: HTMLElement,
    private readonly several: boolean,
  ) {}

  add(more: Line[]): void {
    for (const l of more) {
      let last = this.chunks.at(-1);
      if (!last || last.childElementCount >= chunk) {
        last = document.createElement("div");
        last.className = "chunk";
        this.box.append(last);
        this.chunks.push(last);
      }
      last.append(this.draw(l));
      this.bytes += l.bytes;
    }
    this.lines.push(...more);
    while (this.chunks.length > 1 && (this.lines.length > most + chunk || this.bytes > mostBytes)) {
      const first = this.chunks.shift()!;
      for (const l of this.lines.splice(0, first.childElementCount)) this.bytes -= l.bytes;
      first.remove();
      this.dropped = true;
    }
  }

  clear(): void {
    this.lines = [];
    this.chunks = [];
    this.bytes = 0;
    this.dropped = false;
    this.box.replaceChildren();
  }

  private draw(l: Line): HTMLElement {
    const row = document.createElement("div");
    row.className = "l";
    if (l.stamp) row.append(stampOf(l.stamp));
    if (this.several) {
      const task = document.createElement("span");
      task.className = "of";
      task.textContent = l.task;
      row.append(task);
    }
    const text = document.createElement("span");
    text.className = "t";
    fill(text, l.text, this.word);
    row.append(text);
    return row;
  }

  find(word: string): void {
    const before = this.word;
    this.word = word.toLowerCase();
    const rows = this.box.querySelectorAll<HTMLElement>(".l");
    this.lines.forEach((l, i) => {
      const lower = l.text.toLowerCase();
      if ((this.word && lower.includes(this.word)) || (before && lower.includes(before))) fill(rows[i]!.lastElementChild as HTMLElement, l.text, this.word);
    });
  }

  marks(): HTMLElement[] {
    return [...this.box.querySelectorAll<HTMLElement>("mark")];
  }
}

interface Of {
  d: JobDetail;
  user: string;
  name: string;
}

export function Logs(of: Of) {
  const tasks = of.d.taskList ?? [];
  const asked = place.value.query.get("task") ?? "";
  const m = /^(.*)\[(\d+)\]$/.exec(asked);
  const one = m ? { role: m[1]!, index: Number(m[2]) } : tasks.length === 1 ? tasks[0]! : null;
  const key = one ? `${one.role}[${one.index}]` : "";
  const unplaced = useSignal("");
  if (one && unplaced.value !== key) return <TaskLog key={key} {...of} role={one.role} index={one.index} unplaced={() => (unplaced.value = key)} />;
  return <Stream {...of} unplaced={unplaced.value !== "" && unplaced.value === key} />;
}

function Stream({ d, user, name, unplaced }: Of & { unplaced: boolean }) {
  const query = place.value.query;
  const task = query.get("task") ?? "";
  const previous = query.get("previous") === "true";
  const whole = query.get("all") === "true";
  const box = useRef<HTMLDivElement>(null);
  const screen = useRef<Screen | null>(null);
  const error = useSignal<Failure | null>(null);
  const note = useSignal("");
  const ended = useSignal(false);
  const count = useSignal(0);
  const stick = useSignal(true);
  const word = useSignal("");
  const at = useSignal(0);
  const found = useSignal(0);
  const busy = useSignal(false);
  const field = useRef<HTMLInputElement>(null);

  const m = /^(.*)\[(\d+)\]$/.exec(task);
  const select = m ? { role: m[1], task: Number(m[2]) } : {};
  const path = { user, name };
  const tasks = d.taskList ?? [];
  const several = !m && tasks.length !== 1;

  useEffect(() => {
    const stop = new AbortController();
    const to = new Screen(box.current!, several);
    screen.current = to;
    to.clear();
    error.value = null;
    note.value = "";
    ended.value = false;
    count.value = 0;
    to.word = word.value.toLowerCase();
    let waiting: Line[] = [];
    let drawing = 0;
    const draw = () => {
      drawing = 0;
      to.add(waiting);
      waiting = [];
      count.value = to.lines.length;
      if (to.word) found.value = to.marks().length;
      if (stick.value && box.current) box.current.scrollTop = box.current.scrollHeight; // the person may have left the page
    };
    let first = true;
    lasting(stop.signal, (alive) => {
      // A stream that is lost begins again, so that no line is missing.
      if (!first) {
        waiting = [];
        to.clear();
      }
      first = false;
      return frames("GET /api/v3/jobs/{user}/{name}/logs", { path, query: { ...select, previous, follow: true, tail: whole ? undefined : tail } }, stop.signal, (f) => {
        alive();
        if (f.line) {
          waiting.push(read(f.line));
          drawing ||= requestAnimationFrame(draw);
          if (waiting.length >= burst) {
            cancelAnimationFrame(drawing);
            draw();
          }
        }
        if (f.note) note.value = f.note;
        if (f.problem) lost.value = new Failure(503, "UnavailableError", f.problem);
        if (f.back) lost.value = null;
      });
    })
      .then(() => (ended.value = true))
      .catch((e) => {
        if (!stop.signal.aborted) error.value = failure(e);
      });
    return () => {
      stop.abort();
      cancelAnimationFrame(drawing);
      lost.value = null;
    };
  }, [task, previous, whole, several]);

  const show = (i: number) => {
    const all = screen.current?.marks() ?? [];
    found.value = all.length;
    for (const x of all) x.classList.remove("here");
    if (all.length === 0) return;
    at.value = (i + all.length) % all.length;
    stick.value = false;
    all[at.value]!.classList.add("here");
    const mark = all[at.value]!.getBoundingClientRect();
    const frame = box.current!.getBoundingClientRect();
    box.current!.scrollTop += mark.top - frame.top - frame.height / 2; // scrollIntoView would also scroll the page
  };
  const timer = useRef<number>(0);
  const search = (text: string) => {
    word.value = text;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      screen.current?.find(text);
      if (text) show(0);
      else found.value = 0;
    }, 150) as unknown as number;
  };
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key === "f" && !e.shiftKey) {
        e.preventDefault();
        field.current?.select();
      }
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);

  const download = async () => {
    busy.value = true;
    const stop = new AbortController();
    const parts: BlobPart[] = [];
    try {
      await frames("GET /api/v3/jobs/{user}/{name}/logs", { path, query: { ...select, previous } }, stop.signal, (f) => {
        if (!f.line) return;
        if (several) parts.push(f.line.task + " ");
        parts.push(bytesOf(f.line.text), "\n");
      });
      save(`${name}${task ? "-" + task.replace(/[[\]]/g, "-").replace(/-$/, "") : ""}.log`, parts, "text/plain");
    } catch (e) {
      error.value = failure(e);
    } finally {
      busy.value = false;
    }
  };

  return (
    <div class="logs">
      <div class="filters">
        <TaskChoice d={d} task={task} />
        <label class="search">
          <Icon name="search" />
          <input
            ref={field}
            type="search"
            placeholder={t("find")}
            aria-label={t("find")}
            onInput={(e) => search(e.currentTarget.value)}
            onKeyDown={(e) => {
              if (e.key === "Enter") show(at.value + (e.shiftKey ? -1 : 1));
              if (e.key === "Escape") e.currentTarget.blur();
            }}
          />
          {word.value ? <span class="faint hits">{found.value ? t("matches", { at: at.value + 1, n: found.value }) : t("noMatches")}</span> : null}
        </label>
        {word.value ? (
          <>
            <button type="button" class="square" title={t("before")} aria-label={t("before")} onClick={() => show(at.value - 1)}>
              <Icon name="up" />
            </button>
            <button type="button" class="square" title={t("next")} aria-label={t("next")} onClick={() => show(at.value + 1)}>
              <Icon name="drop" />
            </button>
          </>
        ) : null}
        <span class="grow" />
        <Ticks />
        <button type="button" disabled={busy.value} onClick={() => void download()}>
          <Icon name="down" /> {t("download")}
        </button>
      </div>
      {error.value ? <Problem of={error.value} /> : null}
      {note.value ? <p class="note">{note.value}</p> : null}
      {unplaced ? <p class="note">{t(query.get("at") ? "linkWithoutPositions" : "noPositions")}</p> : null}
      <p class="faint small">
        {screen.current?.dropped ? t("tooLong", { n: most }) : whole ? t("lines", { n: count.value }) : t("showingLast", { n: tail })}{" "}
        <button type="button" class="link" onClick={() => setQuery({ all: whole ? undefined : "true" })}>
          {whole ? t("newest") : t("fromStart")}
        </button>
      </p>
      <div class="screen-frame">
        <div
          ref={box}
          class={screenClass()}
          tabIndex={0}
          role="log"
          aria-label={t("logs")}
          onScroll={(e) => {
            const b = e.currentTarget;
            stick.value = b.scrollHeight - b.scrollTop - b.clientHeight < 24;
          }}
        />
        {stick.value ? null : (
          <button
            type="button"
            class="to-end"
            onClick={() => {
              stick.value = true;
              box.current!.scrollTop = box.current!.scrollHeight;
            }}
          >
            <Icon name="drop" /> {t("follow")}
          </button>
        )}
      </div>
      <p class="faint small">{ended.value ? (count.value ? t("logEnded") : t("emptyLog")) : count.value ? t("logFollows") : t("emptyLog")}</p>
    </div>
  );
}
