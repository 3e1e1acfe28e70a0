// The log of one task, by position: from any place of it in both directions, live at its end, with a search through all of it.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { addressOf, call, Failure, failure, lasting, lost } from "./api";
import { screenClass, TaskChoice, Ticks } from "./logparts";
import { offsetOf, Pager, type WindowQuery } from "./pager";
import { address, place, setQuery } from "./route";
import { t } from "./text";
import type { JobDetail, LogsMatch } from "./types";
import { Icon, Problem } from "./ui";

const mostMatches = 10_000; // that are kept
const later = 4000; // milliseconds until a log is requested again that hasn't begun

const log = "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log";

/** Returns the word of a match: the part of its line that matched, in lower case. */
function wordOf(m: LogsMatch): string {
  const all = Uint8Array.from(atob(m.text ?? ""), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(all.subarray(m.from, m.to)).toLowerCase();
}

/** Searches a log step by step, so that the count grows while a person waits. */
class Search {
  found: LogsMatch[] = [];
  next = "start";
  running = false;
  /** How much of the log has been searched, from 0 to 1. */
  part = 0;
  private readonly stop = new AbortController();
  constructor(
    private readonly step: (from: string, stop: AbortSignal) => Promise<{ items: LogsMatch[] | null; to: string; after?: boolean; searched: number; bytes: number }>,
    private readonly news: (more: LogsMatch[]) => void,
  ) {}

  /** Continues to the present end of the log. */
  async run(): Promise<void> {
    if (this.running || this.full()) return;
    this.running = true;
    let more: LogsMatch[] = [];
    try {
      await lasting(this.stop.signal, async (alive) => {
        for (let after = true; after && !this.full(); ) {
          this.news(more);
          more = [];
          const m = await this.step(this.next, this.stop.signal);
          if (this.stop.signal.aborted) return;
          alive();
          more = m.items ?? [];
          this.found.push(...more);
          this.next = m.to;
          this.part = m.bytes > 0 ? m.searched / m.bytes : 1;
          after = m.after ?? false;
        }
      });
    } finally {
      this.running = false;
    }
    if (!this.stop.signal.aborted) this.news(more);
  }

  full(): boolean {
    return this.found.length >= mostMatches;
  }

  end(): void {
    this.stop.abort();
  }
}

export function TaskLog({ d, user, name, role, index, unplaced }: { d: JobDetail; user: string; name: string; role: string; index: number; unplaced: () => void }) {
  const query = place.value.query;
  const at = query.get("at") ?? "";
  const previous = query.get("previous") === "true";
  const box = useRef<HTMLDivElement>(null);
  const pager = useRef<Pager | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const search = useRef<Search | null>(null);
  const error = useSignal<Failure | null>(null);
  const waiting = useSignal(false);
  const round = useSignal(0); // of changes of the pager or the search
  const word = useSignal("");
  const exact = useSignal(false); // the word is a regular expression
  const here = useSignal(-1);
  const path = { user, name, role, index: String(index) };
  const task = `${role}[${index}]`;

  const change = () => void round.value++;
  const failed = (e: Failure | null) => {
    error.value = null;
    waiting.value = false;
    if (e?.code === "NoPositionsError") unplaced();
    else if (e?.code === "NoTaskLogError" && !d.completed) {
      waiting.value = true; // its program hasn't started
      retry.current = setTimeout(() => void pager.current?.open(place.value.query.get("at") ?? ""), later) as unknown as number;
    } else error.value = e;
  };
  const retry = useRef(0);

  useEffect(() => {
    const link = (to: string) => address(place.value.path, { ...Object.fromEntries(place.value.query), task, at: to });
    const ask = (q: WindowQuery, signal: AbortSignal) => call(log, { path, query: { ...q, previous }, signal });
    pager.current = new Pager(box.current!, ask, link, { changed: change, failed, grew: () => void search.current?.run().catch(() => {}) });
    return () => {
      clearTimeout(retry.current);
      pager.current?.close();
      search.current?.end();
      lost.value = null;
    };
  }, [previous]);

  // A line that is shown is only marked.
  useEffect(() => {
    const p = pager.current!;
    if (p.has(at)) {
      if (p.marked !== at) p.mark(at);
    } else void p.open(at);
  }, [at, previous]);

  const jump = (to: string) => {
    if (place.value.query.get("at") === to || (!to && !place.value.query.get("at"))) void pager.current?.open(to);
    else setQuery({ at: to || undefined });
  };

  const toMatch = (i: number) => {
    const found = search.current?.found ?? [];
    if (found.length === 0) return;
    here.value = (i + found.length) % found.length;
    void pager.current?.toMatch(found[here.value]!.at);
  };
  /** Goes to the first match from the line at the top of the screen on. */
  const nearest = (s: Search) => {
    const from = offsetOf(pager.current?.top() || ".0");
    const i = s.found.findIndex((m) => offsetOf(m.at) >= from);
    if (i >= 0) toMatch(i);
    else if (!s.running) toMatch(0);
  };
  const seek = () => {
    search.current?.end();
    search.current = null;
    const p = pager.current!;
    const old = p.marks;
    p.marks = new Map();
    p.redraw((x) => old.has(x));
    here.value = -1;
    error.value = null;
    change();
    if (!word.value) return;
    const match = exact.value ? word.value : "(?i)" + word.value.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
    const s = new Search(
      (from, signal) => call("GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log/matches", { path, query: { from: from === "start" && p.info ? p.info.start : from, match, previous }, signal }),
      (more) => {
        const fresh = new Set(more.map((m) => m.at));
        for (const m of more) p.marks.set(m.at, wordOf(m));
        p.redraw((x) => fresh.has(x));
        if (here.value < 0) nearest(s);
        change();
      },
    );
    search.current = s;
    void s.run().catch((e) => {
      if (search.current === s) error.value = failure(e);
    });
  };
  const timer = useRef(0);
  useEffect(() => {
    clearTimeout(timer.current);
    timer.current = setTimeout(seek, 300) as unknown as number;
    return () => clearTimeout(timer.current);
  }, [word.value, exact.value, previous]);

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
  const keys = (e: KeyboardEvent) => {
    const act: Record<string, () => void> = { Home: () => jump("start"), End: () => jump(""), Enter: () => setQuery({ at: pager.current?.top() }) };
    if (word.value) Object.assign(act, { n: () => toMatch(here.value + 1), N: () => toMatch(here.value - 1) });
    if (e.target !== e.currentTarget || e.ctrlKey || e.metaKey || e.altKey || !act[e.key]) return;
    e.preventDefault();
    e.stopPropagation();
    act[e.key]!();
  };

  /** Marks the line whose link was selected, without leaving the place. */
  const toLink = (e: MouseEvent) => {
    const a = (e.target as Element).closest<HTMLAnchorElement>("a.to");
    if (!a || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    setQuery({ task, at: new URL(a.href).searchParams.get("at") ?? undefined });
  };
  void round.value;
  const p = pager.current;
  const info = p?.info;
  const found = search.current?.found.length ?? 0;
  const searching = search.current?.running ?? false;
  const said = here.value >= 0 ? t("matches", { at: here.value + 1, n: found }) : found ? t("matchesSoFar", { n: found }) : searching ? "" : t("noMatches");
  const count = [said + (search.current?.full() ? "+" : ""), searching ? `${Math.floor(100 * search.current!.part)}%` : ""].filter(Boolean).join(" · ");
  const begun = (d.taskList ?? []).find((x) => x.role === role && x.index === index && x.run);
  const newer = info && begun && !previous && (d.retries > info.attempt || (d.retries === info.attempt && begun.id > info.taskAttempt));
  const size = (n: number) => (n < 1 << 20 ? `${Math.ceil(n / 1024)} KiB` : `${(n / (1 << 20)).toFixed(n < 10 << 20 ? 1 : 0)} MiB`);

  return (
    <div class="logs">
      <div class="filters">
        <TaskChoice d={d} task={task} />
        <label class="search">
          <Icon name="search" />
          <input
            ref={field}
            type="search"
            placeholder={t("findInLog")}
            aria-label={t("findInLog")}
            onInput={(e) => (word.value = e.currentTarget.value)}
            onKeyDown={(e) => {
              if (e.key === "Enter" && search.current) {
                if (here.value < 0) nearest(search.current);
                else toMatch(here.value + (e.shiftKey ? -1 : 1));
              }
              if (e.key === "Escape") e.currentTarget.blur();
            }}
          />
          {word.value ? (
            <span class="faint hits" role="status">
              {count}
            </span>
          ) : null}
        </label>
        <button type="button" class="square" aria-pressed={exact.value} title={t("regexp")} aria-label={t("regexp")} onClick={() => (exact.value = !exact.value)}>
          <code>.*</code>
        </button>
        {word.value ? (
          <>
            <button type="button" class="square" title={t("before")} aria-label={t("before")} onClick={() => toMatch(here.value - 1)}>
              <Icon name="up" />
            </button>
            <button type="button" class="square" title={t("next")} aria-label={t("next")} onClick={() => toMatch(here.value + 1)}>
              <Icon name="drop" />
            </button>
          </>
        ) : null}
        <span class="grow" />
        <Ticks />
        <a class="button" download href={addressOf("GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log/text", { path, query: { previous, of: info?.start } })}>
          <Icon name="down" /> {t("download")}
        </a>
      </div>
      {error.value ? <Problem of={error.value} again={() => void p?.open(error.value?.code === "LogGoneError" ? "" : at)} /> : null}
      {info?.dropped ? <p class="note">{t("logDropped", { size: size(info.dropped), limit: size(info.limit) })}</p> : null}
      {info?.gaps ? <p class="note">{t("logGaps")}</p> : null}
      {newer ? (
        <p class="note">
          {t("newerAttempt")}{" "}
          <button type="button" class="link" onClick={() => jump("")}>
            {t("openIt")}
          </button>
        </p>
      ) : null}
      <p class="places faint small">
        <button type="button" class="link" onClick={() => jump("start")}>
          {t("toStart")}
        </button>
        <button type="button" class="link" onClick={() => jump("")}>
          {t("toEnd")}
        </button>
        <label>
          {t("toTime")}{" "}
          <input
            type="datetime-local"
            step={1}
            onChange={(e) => {
              const v = e.currentTarget.value;
              if (v) jump((v.length === 16 ? v + ":00" : v) + "Z");
            }}
          />
        </label>
        {info ? <span>{t("logOf", { n: info.attempt, size: size(info.bytes) })}</span> : null}
      </p>
      <div class="screen-frame">
        <div ref={box} class={screenClass() + " paged"} tabIndex={0} role="log" aria-label={t("logs")} onScroll={() => pager.current?.scrolled()} onKeyDown={keys} onClick={toLink} />
        {!p?.info || p.follows ? null : (
          <button type="button" class="to-end" onClick={() => jump("")}>
            <Icon name="drop" /> {t(info?.live ? "follow" : "toEnd")}
          </button>
        )}
      </div>
      <p class="faint small">{waiting.value ? t("emptyLog") : !info ? t("loading") : p!.rows.length === 0 ? t("emptyLog") : p!.after ? "" : info.live ? (p!.follows ? t("logFollows") : "") : t("logEnded")}</p>
    </div>
  );
}
