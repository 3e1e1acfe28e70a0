// The lines of one task's log around a position. The page has some thousand of them: it loads the next ones when a person scrolls to an end,
// and drops those at the other end. It is drawn by hand, as a component for each line would be slow.
import { Failure, failure, lasting } from "./api";
import { bytesOf, fill, stampOf, textOf } from "./logline";
import { t } from "./text";
import type { LogsPlacedLine, LogsWindow } from "./types";

const page = 500; // lines that are read at a time
const around = 100; // lines that are read before a position
const most = 3000; // lines that are kept
const mostBytes = 4 << 20; // of the texts of lines that are kept
const near = 800; // pixels from an end at which the next lines are read
const mostBehind = 4;
const wait = "20s"; // a question for new lines waits this long for them
const whole = 256 << 10; // bytes of a line that are shown when a person asks for all of it

export interface WindowQuery {
  at: string;
  before?: boolean;
  lines: number;
  longest?: number;
  wait?: string;
}

/** Returns the number in a position, which orders the positions of one log. */
export function offsetOf(position: string): number {
  return Number(position.slice(position.indexOf(".") + 1));
}

interface Row {
  at: string;
  text: string;
  bytes: number;
  element: HTMLElement;
}

export class Pager {
  rows: Row[] = [];
  /** The last answer, without its lines, and the range that is shown. */
  info: LogsWindow | null = null;
  from = "";
  to = "";
  before = false;
  after = false;
  /** Whether the page shows the end of the log and scrolls with it. */
  follows = false;
  /** The words that match, by the position of their line. */
  marks = new Map<string, string>();
  marked = "";
  private here = "";
  private bytes = 0;
  private loading = false;
  private tailing = false;
  private opened = new AbortController();

  constructor(
    private readonly box: HTMLElement,
    private readonly ask: (q: WindowQuery, stop: AbortSignal) => Promise<LogsWindow>,
    private readonly link: (at: string) => string,
    private readonly events: { changed: () => void; failed: (e: Failure | null) => void; grew: () => void },
  ) {}

  close(): void {
    this.opened.abort();
  }

  /** Shows the log at a place: "" is the end. */
  async open(at: string): Promise<void> {
    this.opened.abort();
    this.opened = new AbortController();
    const stop = this.opened.signal;
    this.loading = true;
    this.tailing = this.follows = false;
    this.events.failed(null);
    try {
      await lasting(stop, async (alive) => {
        const end = at === "" || at === "end";
        const w = await this.ask({ at: end ? "end" : at, before: end, lines: page }, stop);
        const placed = !end && at !== "start";
        const earlier = placed && w.before ? await this.ask({ at: w.from, before: true, lines: around }, stop) : null;
        if (stop.aborted) return;
        alive();
        this.reset();
        this.take(w, false);
        if (earlier) this.take(earlier, true);
        const line = placed ? w.lines?.[0]?.at : undefined;
        this.mark(line ?? "");
        if (line) this.show(line);
        else this.box.scrollTop = end ? this.box.scrollHeight : 0;
        this.follows = end || (placed && !line);
      });
    } catch (e) {
      if (!stop.aborted) this.events.failed(failure(e));
      return;
    } finally {
      if (!stop.aborted) this.loading = false;
    }
    if (stop.aborted) return;
    this.events.changed();
    this.scrolled();
  }

  has(at: string): boolean {
    return this.rows.some((r) => r.at === at);
  }

  /** Marks the line of a position. */
  mark(at: string): void {
    this.row(this.marked)?.element.classList.remove("linked");
    this.marked = at;
    this.row(at)?.element.classList.add("linked");
  }

  /** Scrolls to a line that is shown. */
  show(at: string): void {
    const row = this.row(at);
    if (!row) return;
    const line = row.element.getBoundingClientRect();
    const frame = this.box.getBoundingClientRect();
    this.box.scrollTop += line.top - frame.top - frame.height / 2; // scrollIntoView would also scroll the page
    this.follows = false;
  }

  /** Shows the line of a match. */
  async toMatch(at: string): Promise<void> {
    if (!this.has(at)) await this.open(at);
    this.row(this.here)?.element.classList.remove("here");
    this.here = at;
    this.row(at)?.element.classList.add("here");
    this.show(at);
    this.events.changed();
  }

  /** Draws lines again whose matches have changed. */
  redraw(changed: (at: string) => boolean): void {
    for (const r of this.rows) if (changed(r.at)) this.fill(r);
  }

  /** Returns the position of the first line in view. */
  top(): string {
    const edge = this.box.getBoundingClientRect().top;
    return (this.rows.find((r) => r.element.getBoundingClientRect().bottom > edge + 4) ?? this.rows.at(-1))?.at ?? "";
  }

  /** Follows the end, or leaves it, as the person has scrolled, and reads lines near an end. */
  scrolled(): void {
    const b = this.box;
    if (this.loading || b.clientHeight === 0) return;
    const below = b.scrollHeight - b.scrollTop - b.clientHeight;
    const follows = below < 24 && (!this.after || this.follows);
    if (follows !== this.follows) {
      this.follows = follows;
      this.events.changed();
    }
    if (this.follows) void this.tail();
    if (this.before && b.scrollTop < near) void this.more(true);
    else if (this.after && !this.follows && below < near) void this.more(false);
  }

  private row(at: string): Row | undefined {
    return at ? this.rows.find((r) => r.at === at) : undefined;
  }

  private reset(): void {
    this.rows = [];
    this.bytes = 0;
    this.from = this.to = "";
    this.box.replaceChildren();
  }

  private async more(before: boolean): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    const stop = this.opened.signal;
    try {
      await lasting(stop, async (alive) => {
        const w = await this.ask({ at: before ? this.from : this.to, before, lines: page }, stop);
        if (stop.aborted) return;
        alive();
        this.keeping(() => this.take(w, before));
      });
    } catch (e) {
      if (!stop.aborted) this.events.failed(failure(e));
      return;
    } finally {
      if (!stop.aborted) this.loading = false;
    }
    if (stop.aborted) return;
    this.events.changed();
    this.scrolled();
  }

  /** Reads lines as they are written, while the end is shown. */
  private async tail(): Promise<void> {
    if (this.tailing || !this.info?.live) return;
    this.tailing = true;
    const stop = this.opened.signal;
    let behind = 0; // answers that didn't reach the end
    try {
      await lasting(stop, async (alive) => {
        while (!stop.aborted && this.follows && (this.info?.live || this.after) && behind < mostBehind) {
          const at = this.to;
          const w = await this.ask({ at, wait, lines: page }, stop);
          if (stop.aborted || at !== this.to) return; // these lines were dropped while a person looked at others
          alive();
          this.keeping(() => this.take(w, false));
          if (this.follows) this.box.scrollTop = this.box.scrollHeight;
          this.events.changed();
          behind = this.after ? behind + 1 : 0;
          if (w.lines?.length) this.events.grew();
        }
      });
    } catch (e) {
      if (!stop.aborted) this.events.failed(failure(e));
    } finally {
      if (!stop.aborted) this.tailing = false;
    }
    if (behind >= mostBehind && !stop.aborted && this.follows) void this.open(""); // the program writes faster than the page reads
  }

  /** Changes the lines, and leaves those in view where they are. */
  private keeping(change: () => void): void {
    const anchor = this.row(this.top())?.element;
    const was = anchor?.getBoundingClientRect().top ?? 0;
    change();
    if (anchor?.isConnected) this.box.scrollTop += anchor.getBoundingClientRect().top - was;
  }

  /** Adds the lines of an answer at an end, and drops lines at the other end. */
  private take(w: LogsWindow, before: boolean): void {
    const more = (w.lines ?? []).map((l) => this.draw(l));
    const elements = more.map((r) => r.element);
    for (const r of more) this.bytes += r.bytes;
    if (before) {
      this.rows.unshift(...more);
      this.box.prepend(...elements);
    } else {
      this.rows.push(...more);
      this.box.append(...elements);
    }
    if (before || !this.from) [this.from, this.before] = [w.from, w.before ?? false];
    if (!before || !this.to) [this.to, this.after] = [w.to, w.after ?? false];
    this.info = { ...w, lines: [] };
    while (this.rows.length > 1 && (this.rows.length > most || this.bytes > mostBytes)) {
      const r = before ? this.rows.pop()! : this.rows.shift()!;
      this.bytes -= r.bytes;
      r.element.remove();
      if (before) [this.to, this.after] = [r.at, true];
      else [this.from, this.before] = [this.rows[0]!.at, true];
    }
  }

  private draw(l: LogsPlacedLine): Row {
    const element = document.createElement("div");
    element.className = "l" + (l.at === this.marked ? " linked" : "") + (l.at === this.here ? " here" : "");
    const link = document.createElement("a");
    link.className = "to";
    link.href = this.link(l.at);
    link.tabIndex = -1; // a keyboard has Enter
    link.ariaLabel = t("linkToLine");
    link.textContent = "#";
    element.append(link);
    if (l.stamp) element.append(stampOf(l.stamp));
    else if (l.continued) element.classList.add("continued");
    const text = document.createElement("span");
    text.className = "t";
    element.append(text);
    const row: Row = { at: l.at, ...textOf(bytesOf(l.text)), element };
    this.fill(row);
    if (l.bytes) {
      const all = document.createElement("button");
      all.type = "button";
      all.className = "link";
      all.textContent = t("wholeLine", { n: Math.ceil(l.bytes / 1024) });
      all.addEventListener("click", () => void this.wholeLine(row, all));
      element.append(all);
    }
    return row;
  }

  private fill(r: Row): void {
    fill(r.element.querySelector<HTMLElement>(".t")!, r.text, this.marks.get(r.at) ?? "");
  }

  private async wholeLine(row: Row, button: HTMLButtonElement): Promise<void> {
    button.disabled = true;
    try {
      const w = await this.ask({ at: row.at, lines: 1, longest: whole }, this.opened.signal);
      const all = textOf(bytesOf(w.lines?.[0]?.text), whole);
      this.bytes += all.bytes - row.bytes;
      Object.assign(row, all);
      this.fill(row);
      button.remove();
      this.follows = false; // a person reads it
      this.events.changed();
    } catch (e) {
      button.disabled = false;
      this.events.failed(failure(e));
    }
  }
}
