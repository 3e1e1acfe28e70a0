// A job file, which the server checks while it is written.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, failure, type Failure } from "./api";
import { draftOf, forget, isMasked, pageKey, remember, store } from "./draft";
import { Code, Parameters, Secrets, Storages, upload, type Folder } from "./form";
import { JobFile, type Show } from "./editor";
import { VCs } from "./home";
import { later } from "./later";
import { Outlook } from "./outlook";
import { changed, revealed } from "./parameters";
import { address, go, place } from "./route";
import { me, ownVCs } from "./session";
import { fileOf, renamed } from "./template";
import { t } from "./text";
import type { StrictyamlFinding, V3SubmitOut } from "./types";
import { Icon, Loading, Menu, Problem, copy } from "./ui";

/** The text of the page that was opened last. */
export const text = signal("");

const JobForm = later(() => import("./jobform").then((file) => file.JobForm));

/** The views of a job file. The browser keeps the chosen one. */
const views = ["document", "form"] as const;
const view = signal<(typeof views)[number]>(localStorage.getItem("job-view") === "form" ? "form" : "document");

function look(at: (typeof views)[number]): void {
  view.value = at;
  localStorage.setItem("job-view", at);
}

const none: StrictyamlFinding[] = [];
const pause = 500; // milliseconds without a key until the server checks

function example(): string {
  const vc = me.value?.defaultVirtualCluster ? "" : ownVCs()[0];
  return `protocolVersion: 2
name: hello-${Math.random().toString(36).slice(2, 8)}
type: job
prerequisites:
  - name: image
    type: dockerimage
    uri: python:3.12
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance:
      cpu: 1
      memoryMB: 1024
      gpu: 1
    commands:
      - nvidia-smi
      - echo "Hello from $PAI_TASK_INDEX"
${vc ? `defaults:\n  virtualCluster: ${vc}\n` : ""}`;
}

function Finding({ f, show }: { f: StrictyamlFinding; show: Show }) {
  return (
    <li class={f.severity === "warning" ? "warn" : "bad"}>
      {f.line ? (
        <button type="button" class="link" onClick={() => show(f.line!, f.column)}>
          {t("line", { n: f.line })}
        </button>
      ) : null}{" "}
      {f.message}
      {f.remedy ? <span class="faint"> {f.remedy}</span> : null}
    </li>
  );
}

export function Submit() {
  const of = place.value.query.get("clone") ?? "";
  const template = place.value.query.get("template") ?? "";
  const clonedFrom = useRef(of ? { job: of, uid: place.peek().query.get("uid") ?? undefined } : undefined);
  const show = useRef<Show>(() => {});
  const file = useRef<HTMLInputElement>(null);
  const checked = useSignal<V3SubmitOut | null>(null);
  const refused = useSignal<Failure | null>(null);
  const error = useSignal<Failure | null>(null);
  const checking = useSignal(false);
  const sending = useSignal(false);
  const loading = useSignal(false);
  const key = useRef({ text: "", key: "" });
  // The component is made again for each address.
  const page = useRef(pageKey()).current;
  const draft = useRef(draftOf(page)).current;
  const began = useRef(draft?.began ?? "");
  const secrets = useSignal(draft?.secrets ?? {});
  const restored = useSignal(draft !== null && (template !== "" || of !== ""));
  const folder = useSignal<Folder | null>(null);
  const first = useRef(true);
  if (first.current) {
    first.current = false;
    text.value = draft?.text ?? "";
  }

  useEffect(() => {
    document.title = t("submit") + " – paictl";
    const keeps = () => store(page);
    const leaves = (e: BeforeUnloadEvent) => {
      if (text.peek() && text.peek() !== began.current) e.preventDefault();
    };
    addEventListener("beforeunload", leaves);
    addEventListener("pagehide", keeps);
    return () => {
      removeEventListener("beforeunload", leaves);
      removeEventListener("pagehide", keeps);
      keeps();
    };
  }, []);

  useEffect(() => {
    remember(page, { text: text.value, began: began.current, secrets: secrets.value });
    const timer = setTimeout(() => store(page), pause);
    return () => clearTimeout(timer);
  }, [text.value, secrets.value]);

  // Reads the file of a template or of another job, unless there is a draft of it.
  useEffect(() => {
    if (restored.value || (!template && !of)) return;
    const stop = new AbortController();
    const read = async () => {
      if (template) return fileOf(template, place.peek().query, stop.signal);
      const [user, name] = of.split("/");
      const path = { user: user ?? "", name: name ?? "" };
      const [job, free] = await Promise.all([call("GET /api/v3/jobs/{user}/{name}/brief", { path, signal: stop.signal }), call("GET /api/v3/jobs/{user}/{name}/freename", { path, signal: stop.signal })]);
      clonedFrom.current!.uid = job.uid; // a later job may have the name by now
      return renamed(job.config ?? "", free.name);
    };
    loading.value = true;
    read()
      .then((file) => {
        if (!stop.signal.aborted) began.current = text.value = file;
      })
      .catch((e) => {
        if (!stop.signal.aborted) error.value = failure(e);
      })
      .finally(() => (loading.value = false));
    return () => stop.abort();
  }, [restored.value]);

  const anew = () => {
    forget(page);
    secrets.value = {};
    text.value = "";
    restored.value = false;
  };
  const sent = revealed(text.value, secrets.value);

  useEffect(() => {
    checked.value = null;
    refused.value = null;
    if (!sent.trim()) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      checking.value = true;
      try {
        checked.value = await call("POST /api/v3/jobs", { query: { check: true, outlook: true }, body: { text: sent, file: "job.yaml", clonedFrom: clonedFrom.current }, signal: stop.signal });
      } catch (e) {
        if (!stop.signal.aborted) refused.value = failure(e);
      } finally {
        if (!stop.signal.aborted) checking.value = false;
      }
    }, pause);
    return () => {
      clearTimeout(timer);
      stop.abort();
      checking.value = false;
    };
  }, [sent]);

  const send = async () => {
    // Someone who types fast is ahead of what is drawn.
    const sent = revealed(text.peek(), secrets.peek());
    if (sending.value || !sent.trim()) return;
    sending.value = true;
    error.value = null;
    // A repetition after a lost answer submits nothing twice.
    const request = sent + (folder.value?.code.sha256 ?? "");
    if (key.current.text !== request) key.current = { text: request, key: crypto.randomUUID() };
    try {
      const code = folder.value ? await upload(folder.value) : undefined;
      const out = await call("POST /api/v3/jobs", { body: { text: sent, file: "job.yaml", code, clonedFrom: clonedFrom.current }, key: key.current.key });
      // The job exists, even if its template can't count it.
      if (template) call("POST /api/v3/templates/{template}/use", { path: { template } }).catch(() => {});
      text.value = began.current = "";
      secrets.value = {};
      forget(page);
      go(address(["jobs", out.user, out.name]));
    } catch (e) {
      error.value = failure(e);
    } finally {
      sending.value = false;
    }
  };
  const open = async (f: File | undefined) => {
    if (f) text.value = await f.text();
  };
  const shows: Show = (line, column) => {
    look("document");
    requestAnimationFrame(() => show.current(line, column)); // the editor is visible with the next frame
  };
  const result = refused.value ?? checked.value;
  const findings = result?.findings ?? none;

  return (
    <section class="page submit">
      <header class="top">
        <h1>{of ? t("cloneOf", { job: of }) : t("newJob")}</h1>
        <span class="grow" />
        <div class="segments" role="group" aria-label={t("view")}>
          {views.map((v) => (
            <button key={v} type="button" aria-pressed={view.value === v} onClick={() => look(v)}>
              {t(`view.${v}`)}
            </button>
          ))}
        </div>
        <input
          ref={file}
          type="file"
          accept=".yaml,.yml,.json,text/yaml"
          hidden
          onChange={(e) => {
            void open(e.currentTarget.files?.[0]);
            e.currentTarget.value = "";
          }}
        />
        <Menu
          label={t("more")}
          icon="more"
          items={[
            { label: t("saveTemplate"), icon: "file", run: () => go(address(["templates", "new"], { from: "submit" })) },
            { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl job submit job.yaml") },
          ]}
        />
        <button type="button" onClick={() => file.current!.click()}>
          <Icon name="file" /> {t("openFile")}
        </button>
        <button type="button" class="primary" disabled={sending.value || checking.value || !text.value.trim() || refused.value !== null} title="Ctrl Enter" onClick={() => void send()}>
          {t(sending.value ? "submitting" : "submitJob")}
        </button>
      </header>
      {error.value ? <Problem of={error.value} /> : null}
      {restored.value ? (
        <p class="note">
          {t("draftRestored")}{" "}
          <button type="button" class="link" onClick={anew}>
            {t("draftDiscard")}
          </button>
        </p>
      ) : null}
      {isMasked(sent) ? <p class="note">{t("enterSecrets")}</p> : null}
      <div class="editor-and-check">
        {view.value === "form" && text.value.trim() ? (
          <JobForm
            text={text.value}
            now={() => text.peek()}
            change={(now) => (text.value = now)}
            show={shows}
          />
        ) : null}
        <div
          class="editor"
          hidden={view.value === "form" && text.value.trim() !== ""}
          onDragOver={(e) => e.preventDefault()}
          onDropCapture={(e) => {
            if (!e.dataTransfer?.files.length) return; // a text, which the editor takes
            e.preventDefault();
            e.stopPropagation();
            void open(e.dataTransfer.files[0]);
          }}
        >
          <JobFile text={text.value} now={() => text.peek()} findings={result || !text.value.trim() ? findings : null} changed={(now) => (text.value = now)} send={() => void send()} show={show} />
          {text.value === "" && !loading.value ? (
            <div class="nothing">
              <p>{t("emptyFile")}</p>
              <button type="button" onClick={() => (text.value = example())}>
                {t("example")}
              </button>
            </div>
          ) : null}
        </div>
        <aside>
          {view.value === "document" ? <Parameters text={text.value} change={(name, value, like) => (text.value = changed(text.value, name, value, like))} /> : null}
          <Secrets text={text.value} values={secrets.value} change={(values) => (secrets.value = values)} />
          <h2>{t("check")}</h2>
          <div class="verdict" role="status" aria-live="polite">
            {loading.value ? <Loading /> : null}
            {checking.value ? <p class="faint">{t("checking")}</p> : null}
            {refused.value && !checking.value ? (
              findings.length ? (
                <>
                  <p class="bad">
                    <Icon name="warn" /> {t("refused")}
                  </p>
                  <ul class="findings">
                    {findings.map((f, i) => (
                      <Finding key={i} f={f} show={shows} />
                    ))}
                  </ul>
                </>
              ) : (
                <Problem of={refused.value} />
              )
            ) : null}
            {checked.value && !checking.value ? (
              <>
                <p class="good">
                  <Icon name="check" /> {t(findings.length ? "warnings" : "fine")}
                </p>
                {findings.length ? (
                  <ul class="findings">
                    {findings.map((f, i) => (
                      <Finding key={i} f={f} show={shows} />
                    ))}
                  </ul>
                ) : null}
                <p>
                  <b>{checked.value.name}</b>
                  <br />
                  {t("willRequest", { tasks: checked.value.tasks, gpus: checked.value.gpus, vc: checked.value.virtualCluster })}
                </p>
                <Outlook of={checked.value} />
              </>
            ) : null}
            {!text.value.trim() && !loading.value ? <p class="faint">{t("emptyFile")}</p> : null}
          </div>
          {view.value === "document" ? <Storages text={text.value} change={(now) => (text.value = now)} /> : null}
          <Code folder={folder.value} change={(now) => (folder.value = now)} />
          <h2>{t("yourVCs")}</h2>
          <VCs />
        </aside>
      </div>
    </section>
  );
}
