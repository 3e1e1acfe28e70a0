import {
  base,
  call,
  failure
} from "./shared.js";

// pkg/portal/web/src/session.ts
import { signal } from "./library.js";
var me = signal(null);
var pages = signal([]);
var refused = signal(null);
async function begin() {
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
  }
}
async function signOut() {
  await call("DELETE /api/v3/session", {});
  me.value = null;
  sessionStorage.clear();
  location.assign(base + "sign-in");
}
function ownVCs() {
  return (me.value?.grants.virtualClusters ?? []).map((v) => v.name).sort();
}

export {
  me,
  pages,
  refused,
  begin,
  signOut,
  ownVCs
};
