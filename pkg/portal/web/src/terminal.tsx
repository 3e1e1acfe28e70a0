// A shell in a running task.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Screen } from "../terminal";
import { addressOf, call, failure, type Failure } from "./api";
import { load } from "./load";
import { address, place, setQuery } from "./route";
import { t } from "./text";
import type { JobDetail } from "./types";
import { Icon, Problem, copy, toast } from "./ui";

/** Channels of the protocol v5.channel.k8s.io. The first byte of each message is one. */
const stdin = 0;
const stdout = 1;
const stderr = 2;
const status = 3;
const resize = 4;

/** Starts bash, or sh if the image has no bash, as paictl job shell does. Images don't know the terminal's type. */
const command = ["sh", "-c", 'test -z "$1" || export TERM="$1"; command -v bash >/dev/null && exec bash; exec sh', "sh", "xterm-256color"];

/** The most output that waits to be drawn, in bytes. */
const most = 8 << 20;

/** How often a message keeps the connection from being idle, in milliseconds: proxies cut those that are, often after a minute. */
const alive = 25_000;

interface Ended {
  code?: number;
  why?: string;
}

/** Reads the status of a command that ended. */
function ending(text: string): Ended {
  try {
    const s = JSON.parse(text) as { status?: string; message?: string; details?: { causes?: { reason?: string; message?: string }[] } };
    if (s.status === "Success") return { code: 0 };
    const code = s.details?.causes?.find((c) => c.reason === "ExitCode")?.message;
    return code !== undefined && /^\d+$/.test(code) ? { code: Number(code) } : { why: s.message };
  } catch {
    return { why: text };
  }
}

type Task = { role: string; index: string };

/** Opens a shell, and returns the function that ends it. */
async function connect(user: string, name: string, task: Task, screen: Screen, opened: (send: (channel: number, data: Uint8Array) => void) => void, ended: (e: Ended) => void, stop: AbortSignal): Promise<void> {
  const path = { user, name, ...task };
  const ticket = await call("POST /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec/ticket", { path, signal: stop });
  const to = new URL(addressOf("GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec", { path }), location.href);
  to.protocol = to.protocol === "http:" ? "ws:" : "wss:";
  for (const word of command) to.searchParams.append("command", word);
  for (const what of ["tty", "stdin", "stdout"]) to.searchParams.set(what, "true");
  const socket = new WebSocket(to, ["v5.channel.k8s.io", ticket.protocol]);
  socket.binaryType = "arraybuffer";
  let end: Ended = {};
  let waits = 0;
  let skipped = 0;
  let timer = 0;
  const drawn = (n: number) => {
    waits -= n;
    if (skipped > 0 && waits < most / 2) {
      screen.write(`\r\n\x1b[7m${t("shell.skipped", { n: skipped })}\x1b[0m\r\n`);
      skipped = 0;
    }
  };
  const send = (channel: number, data: Uint8Array) => {
    if (socket.readyState !== WebSocket.OPEN) return;
    const message = new Uint8Array(data.length + 1);
    message[0] = channel;
    message.set(data, 1);
    socket.send(message);
  };
  const size = () => send(resize, new TextEncoder().encode(JSON.stringify({ Width: screen.size().columns, Height: screen.size().rows })));
  socket.onopen = () => {
    size();
    timer = setInterval(size, alive);
    opened(send);
  };
  socket.onmessage = (e: MessageEvent<ArrayBuffer>) => {
    const all = new Uint8Array(e.data);
    const data = all.subarray(1);
    if ((all[0] === stdout || all[0] === stderr) && data.length) {
      if (waits + data.length > most) {
        skipped += data.length;
        return;
      }
      waits += data.length;
      screen.write(data, () => drawn(data.length));
    } else if (all[0] === status && data.length) end = ending(new TextDecoder().decode(data));
  };
  socket.onclose = () => {
    clearInterval(timer);
    ended(end);
  };
  stop.addEventListener("abort", () => socket.close());
}

/** How the keys of a phone's missing keyboard are called, and what they send. */
const keys: [string, string][] = [
  ["Esc", "\x1b"],
  ["Tab", "\t"],
  ["Ctrl C", "\x03"],
  ["Ctrl D", "\x04"],
  ["↑", "\x1b[A"],
  ["↓", "\x1b[B"],
];

export function Shell({ d, user, name, shown }: { d: JobDetail; user: string; name: string; shown: boolean }) {
  const running = (d.taskList ?? []).filter((x) => x.phase === "running").map((x) => `${x.role}[${x.index}]`);
  const asked = place.value.query.get("task") ?? "";
  // Other tabs have a task in their address, too.
  const chosen = useSignal("");
  if (shown && asked && asked !== chosen.peek()) chosen.value = asked;
  const task = chosen.value || running[0] || "";
  const round = useSignal(0);
  const state = useSignal<"opening" | "open" | "ended">("opening");
  const end = useSignal<Ended>({});
  const error = useSignal<Failure | null>(null);
  const unloaded = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLElement>(null);
  const screen = useRef<Screen | null>(null);
  const opened = running.length > 0 || state.value !== "opening";

  useEffect(() => {
    const m = /^(.+)\[(\d+)\]$/.exec(task);
    if (!m || !box.current) return;
    const stop = new AbortController();
    chosen.value = task; // also if another task becomes the first one
    state.value = "opening";
    end.value = {};
    error.value = null;
    let send = (_channel: number, _data: Uint8Array) => {};
    const begin = async () => {
      const file = await load("terminal").catch(() => null);
      if (stop.signal.aborted) return;
      if (!file) {
        unloaded.value = true;
        return;
      }
      const s = file.open(box.current!, {
        label: t("openShell", { task }),
        typed: (data) => send(stdin, data),
        resized: (columns, rows) => send(resize, new TextEncoder().encode(JSON.stringify({ Width: columns, Height: rows }))),
        copied: (text) => void copy(text),
        left: () => frame.current?.querySelector<HTMLElement>("select")?.focus(),
      });
      screen.current = s;
      stop.signal.addEventListener("abort", () => s.end());
      await connect(
        user,
        name,
        { role: m[1]!, index: m[2]! },
        s,
        (to) => {
          send = to;
          state.value = "open";
          s.focus();
        },
        (e) => {
          if (stop.signal.aborted) return;
          end.value = e;
          state.value = "ended";
        },
        stop.signal,
      );
    };
    begin().catch((e) => {
      if (stop.signal.aborted) return;
      error.value = failure(e);
      state.value = "ended";
    });
    return () => {
      stop.abort();
      screen.current = null;
    };
  }, [task, round.value, opened]);

  useEffect(() => {
    const leaves = (e: BeforeUnloadEvent) => {
      if (state.value === "open") e.preventDefault();
    };
    // A phone's keyboard covers a part of the page.
    const view = window.visualViewport;
    const fit = () => {
      if (frame.current) frame.current.style.maxHeight = view && innerWidth <= 720 ? `${view.height}px` : "";
    };
    fit();
    view?.addEventListener("resize", fit);
    addEventListener("beforeunload", leaves);
    return () => {
      view?.removeEventListener("resize", fit);
      removeEventListener("beforeunload", leaves);
    };
  }, []);

  if (!opened) return shown ? <p class="empty">{t("shell.none")}</p> : null;
  const paste = async () => {
    try {
      screen.current?.paste(await navigator.clipboard.readText());
    } catch {
      toast(t("pasteKeys"));
    }
    screen.current?.focus();
  };
  const says = () => {
    if (state.value === "opening") return t("shell.opening");
    if (state.value === "open") return t("shell.open");
    if (end.value.code !== undefined) return t("shell.ended", { code: end.value.code });
    return end.value.why || t("shell.cut");
  };
  return (
    <section class="shell" ref={frame} hidden={!shown} aria-label={t("shell")}>
      <div class="filters">
        <a class="button square back" href={address(place.value.path)} title={t("backToJob")} aria-label={t("backToJob")}>
          <Icon name="back" />
        </a>
        <select aria-label={t("task")} value={task} onChange={(e) => setQuery({ task: e.currentTarget.value })}>
          {[...new Set([...running, task])].map((x) => (
            <option key={x} value={x}>
              {x}
            </option>
          ))}
        </select>
        <button type="button" onClick={() => void copy(screen.current?.selection() ?? "")}>
          <Icon name="copy" /> {t("copy")}
        </button>
        <button type="button" onClick={() => void paste()}>
          <Icon name="file" /> {t("paste")}
        </button>
        <span class={state.value === "ended" ? (end.value.code === 0 ? "good" : "bad") : "faint"} role="status">
          {says()}
        </span>
        {state.value === "ended" ? (
          <button type="button" class="primary" onClick={() => round.value++}>
            <Icon name="retry" /> {t("shell.again")}
          </button>
        ) : null}
      </div>
      {error.value ? <Problem of={error.value} /> : null}
      {unloaded.value ? <p class="note">{t("shell.failed")}</p> : null}
      <div class="terminal-frame">
        <div ref={box} />
      </div>
      <div class="softkeys" role="group" aria-label={t("shell.keys")}>
        {keys.map(([label, sends]) => (
          <button
            key={label}
            type="button"
            onClick={() => {
              screen.current?.type(sends);
              screen.current?.focus();
            }}
          >
            {label}
          </button>
        ))}
      </div>
    </section>
  );
}
