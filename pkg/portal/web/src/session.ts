// The person who is signed in.
import { signal } from "@preact/signals";
import { call, failure, type Failure } from "./api";
import { base } from "./route";
import type { PagesPageLink, V3ApiWhoAmI } from "./types";

export const me = signal<V3ApiWhoAmI | null>(null);
export const pages = signal<PagesPageLink[]>([]);
export const refused = signal<Failure | null>(null);

export async function begin(): Promise<void> {
  refused.value = null;
  try {
    me.value = await call("GET /api/v3/whoami", {});
  } catch (e) {
    refused.value = failure(e);
    return;
  }
  try {
    pages.value = (await call("GET /api/v3/session", {})).pages ?? [];
  } catch {
    // The links to other pages are left out.
  }
}

export async function signOut(): Promise<void> {
  await call("DELETE /api/v3/session", {});
  me.value = null; // no draft of a job file is stored after this
  sessionStorage.clear();
  location.assign(base + "sign-in");
}

/** The names of virtual clusters that the person may use. */
export function ownVCs(): string[] {
  return (me.value?.grants.virtualClusters ?? []).map((v) => v.name).sort();
}
