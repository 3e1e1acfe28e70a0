// Changes of a job that exists: its tags and the number of its tasks.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, failure } from "./api";
import { useAct } from "./read";
import { t } from "./text";
import type { JobDetail } from "./types";
import { Icon, Problem, toast } from "./ui";

/** The tags of a job; whoever may change them adds and removes them here. */
export function Tags({ d, change, changed }: { d: JobDetail; change: boolean; changed: () => void }) {
  const adding = useSignal(false);
  const busy = useSignal(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), [adding.value]);
  const path = { user: d.user, name: d.name };
  const act = async (route: "PUT /api/v3/jobs/{user}/{name}/tags" | "DELETE /api/v3/jobs/{user}/{name}/tags", tag: string) => {
    busy.value = true;
    try {
      await call(route, { path, body: { tags: [tag] } });
      adding.value = false;
      changed();
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  return (
    <span class="tags">
      {(d.tags ?? []).map((tag) => (
        <span class="tag" key={tag}>
          {tag}
          {change ? (
            <button type="button" class="bare" disabled={busy.value} aria-label={t("removeTag", { tag })} title={t("removeTag", { tag })} onClick={() => void act("DELETE /api/v3/jobs/{user}/{name}/tags", tag)}>
              <Icon name="close" />
            </button>
          ) : null}
        </span>
      ))}
      {!change ? null : adding.value ? (
        <form
          onSubmit={(e) => {
            e.preventDefault();
            const tag = String(new FormData(e.currentTarget).get("tag") ?? "").trim();
            if (tag) void act("PUT /api/v3/jobs/{user}/{name}/tags", tag);
          }}
        >
          <input ref={field} name="tag" disabled={busy.value} aria-label={t("addTag")} placeholder={t("addTag")} onKeyDown={(e) => e.key === "Escape" && (adding.value = false)} />
        </form>
      ) : (
        <button type="button" class="bare" aria-label={t("addTag")} title={t("addTag")} onClick={() => (adding.value = true)}>
          <Icon name="plus" />
        </button>
      )}
    </span>
  );
}

/** Asks how many tasks a role should have. The server checks whether it can have them. */
export function Scale({ d, end }: { d: JobDetail; end: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const roles = d.roles ?? [];
  const role = useSignal(roles[0]?.name ?? "");
  const { busy, error, act } = useAct();
  useEffect(() => dialog.current!.showModal(), []);
  const now = roles.find((r) => r.name === role.value)?.tasks ?? 1;
  const send = (tasks: number) =>
    act(async () => {
      const out = await call("POST /api/v3/jobs/{user}/{name}/scale", { path: { user: d.user, name: d.name }, body: { role: role.value, tasks } });
      toast(t("scaled", { role: role.value, before: out.before, tasks }));
      end();
    });
  return (
    <dialog ref={dialog} onClose={end} onClick={(e) => e.target === dialog.current && end()} aria-labelledby="scale">
      <form
        class="dialog fields"
        onSubmit={(e) => {
          e.preventDefault();
          void send(Number(new FormData(e.currentTarget).get("tasks")));
        }}
      >
        <h2 id="scale">{t("scale")}</h2>
        <p>{t("scaleMore")}</p>
        {roles.length > 1 ? (
          <label>
            {t("role")}
            <select value={role.value} onChange={(e) => (role.value = e.currentTarget.value)}>
              {roles.map((r) => (
                <option key={r.name} value={r.name}>
                  {r.name}
                </option>
              ))}
            </select>
          </label>
        ) : null}
        <label>
          {t("tasks")}
          <input key={role.value} name="tasks" type="number" min="1" max="10000" required defaultValue={String(now)} />
        </label>
        {error.value ? <Problem of={error.value} /> : null}
        <div class="buttons">
          <button type="button" onClick={end}>
            {t("cancel")}
          </button>
          <button type="submit" class="primary" disabled={busy.value}>
            {t("scale")}
          </button>
        </div>
      </form>
    </dialog>
  );
}
