// The job that a job was cloned from, and the lines of the job file that were changed.
import { call, Failure } from "./api";
import { diff, folded } from "./diff";
import { useRead } from "./read";
import { address } from "./route";
import { t } from "./text";
import type { JobDetail } from "./types";
import { Ago, Loading, Problem } from "./ui";

/** How many unchanged lines are shown around a change. */
const context = 3;

export function Parent({ d }: { d: JobDetail }) {
  const from = d.clonedFrom;
  const read = useRead(from?.uid ? d.uid : null, async (signal) => {
    const latest = call("GET /api/v3/jobs/{user}/{name}/brief", { path: { user: from!.user!, name: from!.name! }, signal }).catch((e) => {
      if (e instanceof Failure && e.status === 404) return null;
      throw e;
    });
    const [parent, now] = await Promise.all([call("GET /api/v3/jobs/{user}/{name}/parent", { path: { user: d.user, name: d.name }, signal }), latest]);
    return { parent, replaced: now?.uid !== parent.uid };
  });
  if (!from) return null;
  if (!from.uid) return <p class="note">{t("clonedFromHidden")}</p>;
  const title = `${from.user}/${from.name}`;
  const value = read.value.value;
  return (
    <section class="parent" aria-label={t("changes")}>
      <p>
        {t("clonedFrom")} {value && !value.replaced ? <a href={address(["jobs", from.user!, from.name!])}>{title}</a> : <b>{title}</b>} <span class="faint">{t("submitted")} <Ago time={from.submitted} /></span>
        {value?.replaced ? <span class="faint"> {t("clonedFromReplaced")}</span> : null}
      </p>
      {read.error.value ? <Problem of={read.error.value} again={read.again} /> : value ? <Changes before={value.parent.config ?? ""} after={d.config ?? ""} /> : <Loading />}
    </section>
  );
}

function Changes({ before, after }: { before: string; after: string }) {
  if (!before || !after) return null; // the reader may not see both files
  const lines = folded(diff(before, after), context);
  if (!lines.length) return <p class="faint">{t("noChanges")}</p>;
  return (
    <pre tabIndex={0} class="code diff">
      {lines.map((x, i) => {
        if (x.kind === "folded") return <span key={i} class="faint">{`  … ${t("unchangedLines", { n: x.lines })}\n`}</span>;
        const text = { same: "  ", added: "+ ", removed: "- " }[x.kind] + x.text + "\n";
        return x.kind === "added" ? <ins key={i}>{text}</ins> : x.kind === "removed" ? <del key={i}>{text}</del> : <span key={i}>{text}</span>;
      })}
    </pre>
  );
}
