// Files of a running task: lists folders, downloads and uploads.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Failure, addressOf, call, toSignIn } from "./api";
import { useAct, useRead } from "./read";
import { place, setQuery } from "./route";
import { quoted } from "./shell";
import { t } from "./text";
import type { JobDetail, V3ApiFileEntry } from "./types";
import { Ago, Icon, Loading, Menu, Problem, ask, copy, toast } from "./ui";

const listRoute = "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/files";
const readRoute = "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/files/content";
const writeRoute = "PUT /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/files/content";

/** A size in bytes, as people read it. */
export function sized(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

function join(folder: string, name: string): string {
  return folder.endsWith("/") ? folder + name : `${folder}/${name}`;
}

/** The folders on the way to a path, each with its name. */
function way(path: string): [name: string, path: string][] {
  const out: [string, string][] = [["/", "/"]];
  let at = "";
  for (const name of path.split("/")) if (name) out.push([name, (at += "/" + name)]);
  return out;
}

/** Sends a file, and reports how much of it was sent. */
function send(to: string, file: File, stop: AbortSignal, sent: (part: number) => void): Promise<void> {
  return new Promise((done, fail) => {
    const r = new XMLHttpRequest(); // fetch doesn't report progress
    r.open("PUT", to);
    r.setRequestHeader("Content-Type", "application/octet-stream");
    r.upload.onprogress = (e) => e.total && sent(e.loaded / e.total);
    r.onerror = () => fail(new Failure(0, "NoAnswer", t("noAnswer")));
    r.onabort = () => fail(new Failure(0, "Stopped", t("files.stopped")));
    r.onload = () => {
      if (r.status === 401) toSignIn();
      if (r.status < 300) return done();
      let e: { code?: string; message?: string; remedy?: string; request?: string } = {};
      try {
        e = JSON.parse(r.responseText);
      } catch {
        // A proxy answered.
      }
      fail(new Failure(r.status, e.code ?? "UnknownError", e.message ?? t("status", { status: r.status }), e.remedy, e.request));
    };
    stop.addEventListener("abort", () => r.abort());
    r.send(file);
  });
}

/** Folders come first, each kind by name. */
function ordered(all: V3ApiFileEntry[]): V3ApiFileEntry[] {
  const last = (e: V3ApiFileEntry) => (e.kind === "folder" ? 0 : 1);
  return [...all].sort((a, b) => last(a) - last(b) || a.name.localeCompare(b.name, undefined, { numeric: true }));
}

export function Files({ d, user, name, full }: { d: JobDetail; user: string; name: string; full: string }) {
  const running = (d.taskList ?? []).filter((x) => x.phase === "running").map((x) => `${x.role}[${x.index}]`);
  const q = place.value.query;
  const task = q.get("task") || running[0] || "";
  const m = /^(.+)\[(\d+)\]$/.exec(task);
  const asked = q.get("path") ?? "";
  const at = { user, name, role: m?.[1] ?? "", index: m?.[2] ?? "" };
  const { value, error, busy, again } = useRead(m ? `${d.uid} ${task} ${asked}` : null, (signal) => call(listRoute, { path: at, query: { path: asked }, signal }));
  const sending = useSignal<{ name: string; part: number } | null>(null);
  const stop = useRef<AbortController | null>(null);
  const { act, error: failed } = useAct();
  const over = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  if (!m) return <p class="empty">{t("shell.none")}</p>;

  const list = value.value;
  const folder = list ? (list.kind === "folder" ? list.path : list.path.slice(0, list.path.lastIndexOf("/")) || "/") : asked;
  const entries = list?.kind === "folder" ? ordered(list.entries ?? []) : list ? [{ name: list.path.slice(list.path.lastIndexOf("/") + 1), kind: list.kind, size: list.size, modified: list.modified }] : [];
  const content = (path: string) => addressOf(readRoute, { path: at, query: { path } });
  const open = (path: string) => setQuery({ path: path || undefined });

  const upload = (files: File[]) => {
    const put = () =>
      void act(async () => {
        for (const f of files) {
          stop.current = new AbortController();
          sending.value = { name: f.name, part: 0 };
          try {
            await send(addressOf(writeRoute, { path: at, query: { path: join(folder, f.name) } }), f, stop.current.signal, (part) => (sending.value = { name: f.name, part }));
          } finally {
            sending.value = null;
          }
          toast(t("files.sent", { name: f.name }));
        }
      }).then(again);
    const replaced = files.filter((f) => entries.some((e) => e.name === f.name)).map((f) => f.name);
    if (replaced.length === 0) return put();
    ask({ title: t("files.replace"), text: replaced.join(", "), yes: t("replace"), danger: true, act: async () => put() });
  };

  return (
    <section
      class={over.value ? "files over" : "files"}
      aria-label={t("files")}
      onDragOver={(e) => {
        e.preventDefault();
        over.value = true;
      }}
      onDragLeave={() => (over.value = false)}
      onDrop={(e) => {
        e.preventDefault();
        over.value = false;
        const all = [...(e.dataTransfer?.files ?? [])];
        if (all.length && list) upload(all);
      }}
    >
      <div class="filters">
        <select aria-label={t("task")} value={task} onChange={(e) => setQuery({ task: e.currentTarget.value, path: undefined })}>
          {[...new Set([...running, task])].map((x) => (
            <option key={x} value={x}>
              {x}
            </option>
          ))}
        </select>
        <form
          class="path"
          onSubmit={(e) => {
            e.preventDefault();
            open(new FormData(e.currentTarget).get("path") as string);
          }}
        >
          <input name="path" key={list?.path ?? asked} defaultValue={list?.path ?? asked} placeholder={t("files.path")} aria-label={t("files.path")} spellcheck={false} autocomplete="off" />
        </form>
        <button type="button" disabled={!list || sending.value !== null} onClick={() => input.current?.click()}>
          <Icon name="up" /> {t("files.upload")}
        </button>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label={t("files.upload")}
          onChange={(e) => {
            const all = [...(e.currentTarget.files ?? [])];
            e.currentTarget.value = "";
            if (all.length) upload(all);
          }}
        />
        {list?.kind === "folder" ? (
          <a class="button" href={content(list.path)} download title={t("files.wholeMore")}>
            <Icon name="down" /> {t("files.whole")}
          </a>
        ) : null}
        <Menu
          label={t("more")}
          icon="more"
          items={[
            { label: t("files.copyOut"), icon: "copy", run: () => void copy(`paictl job cp ${quoted(`${full}:${list?.path ?? asked}`)} . --task ${quoted(task)}`) },
            { label: t("files.copyIn"), icon: "copy", run: () => void copy(`paictl job cp ./FILE ${quoted(`${full}:${folder}`)} --task ${quoted(task)}`) },
            { label: t("refresh"), icon: "retry", run: again },
          ]}
        />
      </div>
      {sending.value ? (
        <p class="note" role="status">
          {t("files.sending", { name: sending.value.name, percent: Math.round(sending.value.part * 100) })}{" "}
          <button type="button" onClick={() => stop.current?.abort()}>
            {t("stop")}
          </button>
        </p>
      ) : null}
      {failed.value ? <Problem of={failed.value} /> : null}
      {list ? (
        <nav class="crumbs path" aria-label={t("files.path")}>
          {way(folder).map(([label, path]) => (
            <button key={path} type="button" class="bare" onClick={() => open(path)}>
              {label}
            </button>
          ))}
        </nav>
      ) : null}
      {error.value ? <Problem of={error.value} again={again} /> : busy.value && !list ? <Loading /> : null}
      {list && !error.value ? (
        entries.length === 0 ? (
          <p class="empty">{t("files.empty")}</p>
        ) : (
          <table class="rows">
            <thead>
              <tr>
                <th>{t("name")}</th>
                <th class="num">{t("files.size")}</th>
                <th class="c-time">{t("files.modified")}</th>
              </tr>
            </thead>
            <tbody>
              {entries.map((e) => (
                <tr key={e.name} data-file={e.name}>
                  <td class="c-name">
                    {e.kind === "folder" ? (
                      <button type="button" class="bare" onClick={() => open(join(folder, e.name))}>
                        <Icon name="folder" /> {e.name}
                      </button>
                    ) : e.kind === "file" ? (
                      <a href={content(join(folder, e.name))} download={e.name}>
                        <Icon name="file" /> {e.name}
                      </a>
                    ) : (
                      <span class="faint">{e.name}</span>
                    )}
                    {e.link ? <span class="faint"> → {e.link}</span> : null}
                  </td>
                  <td class="num">{e.kind === "file" ? sized(e.size ?? 0) : ""}</td>
                  <td class="c-time">{e.modified ? <Ago time={e.modified} /> : null}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )
      ) : null}
      {list?.more ? <p class="note">{t("files.more")}</p> : null}
    </section>
  );
}
