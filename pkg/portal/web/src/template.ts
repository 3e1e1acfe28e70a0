// What several pages do with job templates.
import { Failure, call } from "./api";
import { filled } from "./parameters";
import { me } from "./session";
import type { PeopleV1TemplateSpec, V3ApiTemplate } from "./types";

/** The category that administrators alone give, and whose templates they alone change. */
export const official = "official example";

export function isOfficial(x: V3ApiTemplate): boolean {
  return x.categories?.includes(official) ?? false;
}

/** Whether the person may change a template. The server decides. */
export function mayChange(x: V3ApiTemplate): boolean {
  return !x.builtIn && (me.value?.grants.administrator === true || (x.author === me.value?.name && !isOfficial(x)));
}

/** Returns the fields of a template that its author writes. */
export function specOf(x: V3ApiTemplate): PeopleV1TemplateSpec {
  const { author, categories, dataType, dataUrl, description, groups, job, name, public: open, summary, tags, type } = x;
  return { author, categories, dataType, dataUrl, description, groups, job, name, public: open, summary, tags, type };
}

/** The name of the job in a job file, or "". */
export function nameIn(file: string): string {
  return /^name:[ \t]*(["']?)([^"'\s#]+)\1[ \t]*(?:#.*)?\r?$/m.exec(file)?.[2] ?? "";
}

/** Replaces the name of a job file, and leaves everything else as it is. */
export function renamed(file: string, name: string): string {
  return /^name:.*$/m.test(file) ? file.replace(/^name:.*$/m, (line) => "name: " + name + (line.endsWith("\r") ? "\r" : "")) : file;
}

/** Returns the job file of a template, with the values of an address and a name that the person hasn't used. */
export async function fileOf(id: string, query: URLSearchParams, signal: AbortSignal): Promise<string> {
  const { job } = await call("GET /api/v3/templates/{template}", { path: { template: id }, signal });
  const file = filled(job, query);
  const name = nameIn(file);
  if (!name) return file;
  try {
    const free = await call("GET /api/v3/jobs/{user}/{name}/freename", { path: { user: me.value!.name, name }, signal });
    return renamed(file, free.name);
  } catch (e) {
    if (e instanceof Failure && e.status < 500) return file; // no job has the name
    throw e;
  }
}
