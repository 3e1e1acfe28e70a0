// Forms for parts of a job file: parameters, secrets, storages and code.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { call, failure, Failure, send } from "./api";
import { load } from "./load";
import { mask, parameters, type Parameter } from "./parameters";
import { useRead } from "./read";
import { me } from "./session";
import { storagesIn, withStorage } from "./storages";
import { t } from "./text";
import type { JobCode } from "./types";
import { Icon, Problem } from "./ui";

/** Shows a field for each parameter of a job file; nothing if it has none. change receives the new value, and the parameter as it was before the person began to type. */
export function Parameters({ text, change, done }: { text: string; change: (name: string, value: string, like: Parameter) => void; done?: () => void }) {
  const all = parameters(text);
  const like = useRef<Parameter | null>(null);
  if (all.length === 0) return null;
  return (
    <form class="parameters" aria-label={t("parameters")} onSubmit={(e) => e.preventDefault()} onChange={done}>
      <h2>{t("parameters")}</h2>
      {all.map((p) => (
        <label key={p.name}>
          <span>{p.name}</span>
          <input
            type="text"
            name={p.name}
            value={p.value}
            spellcheck={false}
            autocomplete="off"
            autocapitalize="off"
            onFocus={() => (like.current = p)}
            onInput={(e) => change(p.name, e.currentTarget.value, like.current?.name === p.name ? like.current : p)}
          />
        </label>
      ))}
    </form>
  );
}

/** Shows a field for each secret of a job file; nothing if it has none. The values stay outside of the file. */
export function Secrets({ text, values, change }: { text: string; values: Record<string, string>; change: (values: Record<string, string>) => void }) {
  const all = parameters(text, "secrets");
  if (all.length === 0) return null;
  return (
    <form class="parameters secrets" aria-label={t("secretsOfJob")} onSubmit={(e) => e.preventDefault()}>
      <h2>{t("secretsOfJob")}</h2>
      {/* Browsers expect one beside fields of passwords. */}
      <input type="text" name="username" autocomplete="off" hidden readOnly />
      {all.map((p) => (
        <label key={p.name}>
          <span>{p.name}</span>
          <input
            type="password"
            name={"secret-" + p.name}
            value={values[p.name] ?? ""}
            placeholder={t(p.value && p.value !== mask ? "secretInFile" : "secretMissing")}
            autocomplete="new-password"
            onInput={(e) => change({ ...values, [p.name]: e.currentTarget.value })}
          />
        </label>
      ))}
      <p class="faint small">{t("secretsHint")}</p>
    </form>
  );
}

/** Offers the storages that the person may use; nothing if there are none. */
export function Storages({ text, change }: { text: string; change: (text: string) => void }) {
  const all = me.value?.grants.storages ?? [];
  if (all.length === 0) return null;
  const mounted = storagesIn(text);
  return (
    <form class="storages" aria-label={t("storages")} onSubmit={(e) => e.preventDefault()}>
      <h2>{t("storages")}</h2>
      {mounted ? null : <p class="faint small">{t("storagesInFile")}</p>}
      {all.map((name) => (
        <label key={name} class="tick">
          <input type="checkbox" name={"storage-" + name} checked={mounted?.includes(name) ?? false} disabled={!mounted} onChange={(e) => change(withStorage(text, name, e.currentTarget.checked))} />
          <span>
            {name} <small>/mnt/{name}</small>
          </span>
        </label>
      ))}
    </form>
  );
}

/** A folder that is sent with the job. */
export interface Folder {
  name: string;
  files: number;
  code: JobCode;
  archive: Blob;
}

const mostFiles = 50_000; // of a folder
const mostBytes = 256 << 20;

/** Lets the person choose a folder with code, if the cluster takes one. */
export function Code({ folder, change }: { folder: Folder | null; change: (folder: Folder | null) => void }) {
  const offer = useRead("offer", (signal) => call("GET /api/v3/offer", { signal }));
  const field = useRef<HTMLInputElement>(null);
  const packing = useSignal(false);
  const error = useSignal<Failure | null>(null);
  if (!offer.value.value?.takesCode) return null;
  const choose = async (list: File[]) => {
    const name = list[0]?.webkitRelativePath.split("/")[0] ?? "";
    const entries = list.map((file) => ({ path: file.webkitRelativePath.slice(name.length + 1) || file.name, file })).filter((e) => !/^\.git\//.test(e.path));
    if (entries.length === 0) return;
    error.value = null;
    if (entries.length > mostFiles || entries.reduce((n, e) => n + e.file.size, 0) > mostBytes) {
      error.value = new Failure(0, "CodeTooLarge", t("codeTooLarge"));
      return;
    }
    packing.value = true;
    try {
      const { sha256, archive } = await (await load("code")).pack(entries);
      change({ name, files: entries.length, code: { sha256, size: archive.size }, archive });
    } catch (e) {
      error.value = failure(e);
    } finally {
      packing.value = false;
    }
  };
  return (
    <div class="code-folder">
      <h2>{t("codeFolder")}</h2>
      <input
        ref={(e) => {
          field.current = e;
          if (e) e.webkitdirectory = true;
        }}
        type="file"
        name="code"
        hidden
        onChange={(e) => {
          void choose([...(e.currentTarget.files ?? [])]);
          e.currentTarget.value = "";
        }}
      />
      {folder ? (
        <p>
          <b>{folder.name}</b> <span class="faint">{t("codeFiles", { n: folder.files, kib: Math.ceil(folder.code.size / 1024) })}</span>{" "}
          <button type="button" class="bare" aria-label={t("codeRemove")} title={t("codeRemove")} onClick={() => change(null)}>
            <Icon name="close" />
          </button>
        </p>
      ) : null}
      <button type="button" disabled={packing.value} onClick={() => field.current!.click()}>
        <Icon name="file" /> {t(packing.value ? "codePacking" : "codeChoose")}
      </button>
      <p class="faint small">{t("codeHint")}</p>
      {error.value ? <Problem of={error.value} /> : null}
    </div>
  );
}

/** Sends a folder, unless the person has sent it before. */
export async function upload(folder: Folder): Promise<JobCode> {
  const path = { sha256: folder.code.sha256 };
  try {
    await send("HEAD /api/v3/code/{sha256}", { path });
  } catch (e) {
    if (failure(e).status !== 404) throw e;
    await send("PUT /api/v3/code/{sha256}", { path }, folder.archive);
  }
  return folder.code;
}
