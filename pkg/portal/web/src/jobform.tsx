// The form of a whole job. It is a view of the text: a field that nobody changes changes nothing.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Add, Choice, Line, Lines, More, Name, Pairs, Remove, Tick, Ticks } from "./formparts";
import { JobDocument, plugins } from "./jobdoc";
import { load } from "./load";
import { me, ownVCs } from "./session";
import { t } from "./text";
import "./text-form";
import { Loading } from "./ui";
import { Unreadable, type Parser, type Path } from "./yaml";

interface Props {
  text: string;
  /** Returns the latest text: someone who types fast is ahead of what is drawn. */
  now(): string;
  change(text: string): void;
  /** Shows a line in the document. */
  show(line: number): void;
}

/** Keys of extras that have fields. */
const known = ["gangAllocation", "hivedScheduler", plugins[1] as string, "storages", "hostNetwork", "gracePeriodSec", "after", "jobStatusChangeNotification", "maxDurationSec", "checkpointDir"];

export function JobForm({ text, now, change, show }: Props) {
  const parser = useSignal<Parser | null>(null);
  const refused = useSignal<number | null>(null);
  useEffect(() => {
    load("editor").then(
      (m) => (parser.value = m.parser),
      () => show(1), // the page has a plain field then
    );
  }, []);
  useEffect(() => {
    refused.value = null;
  }, [text]);
  const p = parser.value;
  if (!p) return <Loading />;
  const lineOf = (at: number) => now().slice(0, at).split("\n").length;
  const problem = (at: number, says: "form.unreadable" | "form.onlyDocument") => (
    <p class="note" role="alert">
      {t(says)}{" "}
      <button type="button" class="link" onClick={() => show(lineOf(at))}>
        {t("form.showLine", { n: lineOf(at) })}
      </button>
    </p>
  );
  const open = (of: string) => new JobDocument(of, p, now, change, (at) => (refused.value = at));
  let d: JobDocument;
  try {
    d = open(text);
  } catch (e) {
    if (!(e instanceof Unreadable)) throw e;
    return <div class="job-form">{problem(e.at, "form.unreadable")}</div>;
  }
  return (
    <form class="job-form" aria-label={t("form.title")} onSubmit={(e) => e.preventDefault()}>
      {refused.value !== null ? problem(refused.value, "form.onlyDocument") : null}
      <Job d={d} />
      <Prerequisites d={d} />
      <section aria-label={t("form.roles")}>
        <h2>{t("form.roles")}</h2>
        {d.keys(["taskRoles"]).map((role, i) => (
          <Role key={i} d={d} role={role} />
        ))}
        <Add label={t("form.addRole")} run={() => d.set(["taskRoles", fresh(d.keys(["taskRoles"]), "worker")], { instances: 1, dockerImage: d.named("dockerimage")[0] ?? "image", resourcePerInstance: { cpu: 1, memoryMB: 1024, gpu: 0 }, commands: ["echo hello"] })} />
      </section>
      <section aria-label={t("form.values")}>
        <h2>{t("form.values")}</h2>
        <div class="grid">
          <Pairs d={d} path={["parameters"]} label={t("parameters")} add={t("form.addParameter")} first="value" />
          <Pairs d={d} path={["secrets"]} label={t("secretsOfJob")} add={t("form.addSecret")} first="" names />
        </div>
      </section>
      <Storages d={d} />
      <Plugins d={d} />
      <Deployments d={d} />
      <Others d={d} />
    </form>
  );
}

function fresh(used: string[], stem: string): string {
  for (let i = 1; ; i++) if (!used.includes(i === 1 ? stem : stem + i)) return i === 1 ? stem : stem + i;
}

function Job({ d }: { d: JobDocument }) {
  const scheduler: Path = ["extras", "hivedScheduler"];
  return (
    <section aria-label={t("form.job")}>
      <h2>{t("form.job")}</h2>
      <div class="grid">
        <Line d={d} path={["name"]} label={t("name")} />
        <Choice d={d} path={["defaults", "virtualCluster"]} label={t("vc")} options={ownVCs()} none={me.value?.defaultVirtualCluster || "default"} />
        <Choice d={d} path={[...scheduler, "jobPriorityClass"]} label={t("priority")} options={(["crit", "prod", "test", "oppo"] as const).map((x) => [x, t(`form.priority.${x}`)])} none={t("form.priority.none")} />
        <Line d={d} path={["description"]} label={t("form.description")} wide />
        <More label={t("form.moreOfJob")}>
          <Line d={d} path={["jobRetryCount"]} label={t("form.jobRetryCount")} hint={t("form.jobRetryCountHint")} number />
          <Line d={d} path={["extras", "maxDurationSec"]} label={t("form.maxDurationSec")} number />
          <Line d={d} path={["extras", "gracePeriodSec"]} label={t("form.gracePeriodSec")} number />
          <Line d={d} path={["extras", "checkpointDir"]} label={t("form.checkpointDir")} />
          <Lines d={d} path={["extras", "after"]} label={t("form.after")} hint={t("form.afterHint")} />
          <Choice d={d} path={["defaults", "deployment"]} label={t("form.deployment")} options={Array.from({ length: d.count(["deployments"]) }, (_, i) => d.value(["deployments", i, "name"]))} none={t("form.none")} />
          <Line d={d} path={["version"]} label={t("form.version")} />
          <Line d={d} path={["contributor"]} label={t("form.contributor")} />
          <div class="whole-row ticks">
            <Tick d={d} path={["extras", "gangAllocation"]} label={t("form.gang")} without />
            <Tick d={d} path={["extras", "hostNetwork"]} label={t("form.hostNetwork")} />
            <Tick d={d} path={[...scheduler, "lazyPreemptionEnable"]} label={t("form.lazyPreemption")} />
            <Tick d={d} path={[...scheduler, "gangReleaseEnable"]} label="gangReleaseEnable" />
            <Tick d={d} path={[...scheduler, "ignoreK8sSuggestedNodes"]} label="ignoreK8sSuggestedNodes" />
          </div>
          <fieldset class="field whole-row ticks">
            <legend>{t("form.notify")}</legend>
            {(["running", "succeeded", "failed", "stopped", "retried"] as const).map((x) => (
              <Tick key={x} d={d} path={["extras", "jobStatusChangeNotification", x]} label={t(`form.notify.${x}`)} />
            ))}
          </fieldset>
        </More>
      </div>
    </section>
  );
}

const types = ["dockerimage", "script", "data", "output"] as const;

function Prerequisites({ d }: { d: JobDocument }) {
  const at: Path = ["prerequisites"];
  const add = (type: (typeof types)[number]) => {
    const used = Array.from({ length: d.count(at) }, (_, i) => d.value([...at, i, "name"]));
    const made = { name: fresh(used, type === "dockerimage" ? "image" : type), type, uri: type === "dockerimage" ? "python:3.12" : type === "data" ? ["http://"] : "http://" };
    if (d.count(at)) d.set([...at, d.count(at)], made);
    else d.set(at, [made]);
  };
  return (
    <section aria-label={t("form.prerequisites")}>
      <h2>{t("form.prerequisites")}</h2>
      {Array.from({ length: d.count(at) }, (_, i) => {
        const type = d.value([...at, i, "type"]);
        const name = d.value([...at, i, "name"]);
        return (
          <div key={i} class="card">
            <div class="grid">
              <Name label={t("name")} name={`prerequisites.${i}.name`} value={name} change={(to) => d.renamePrerequisite(i, to)} />
              <Choice d={d} path={[...at, i, "type"]} label={t("form.type")} options={types.map((x) => [x, t(`form.type.${x}`)])} />
              {type === "data" ? <Lines d={d} path={[...at, i, "uri"]} label={t("form.uri")} /> : <Line d={d} path={[...at, i, "uri"]} label={type === "dockerimage" ? t("image") : t("form.uri")} wide />}
              <More label={t("form.moreOfPrerequisite")} open={d.keys([...at, i, "auth"]).length > 0 || d.value([...at, i, "plugin"]) !== ""}>
                {type === "dockerimage" ? (
                  <>
                    <Line d={d} path={[...at, i, "auth", "username"]} label={t("form.registryUser")} />
                    <Line d={d} path={[...at, i, "auth", "password"]} label={t("form.registryPassword")} hint="<% $secrets.NAME %>" />
                    <Line d={d} path={[...at, i, "auth", "registryuri"]} label={t("form.registry")} />
                  </>
                ) : null}
                <Line d={d} path={[...at, i, "plugin"]} label={t("form.plugin")} hint="com.microsoft.pai.runtimeplugin.NAME" />
                <Line d={d} path={[...at, i, "version"]} label={t("form.version")} />
              </More>
            </div>
            <Remove label={name} run={() => d.set([...at, i], undefined)} />
          </div>
        );
      })}
      <p class="adds">
        {types.map((x) => (
          <Add key={x} label={t(`form.type.${x}`)} run={() => add(x)} />
        ))}
      </p>
    </section>
  );
}

function Role({ d, role }: { d: JobDocument; role: string }) {
  const at: Path = ["taskRoles", role];
  const resources: Path = [...at, "resourcePerInstance"];
  const cells: Path = ["extras", "hivedScheduler", "taskRoles", role];
  return (
    <div class="card" role="group" aria-label={role}>
      <div class="grid">
        <Name label={t("name")} name={at.join(".")} value={role} change={(to) => d.renameRole(role, to)} />
        <Line d={d} path={[...at, "instances"]} label={t("tasks")} number />
        <Choice d={d} path={[...at, "dockerImage"]} label={t("image")} options={d.named("dockerimage")} />
        <Line d={d} path={[...resources, "gpu"]} label={t("form.gpu")} number />
        <Line d={d} path={[...resources, "cpu"]} label={t("form.cpu")} number />
        <Line d={d} path={[...resources, "memoryMB"]} label={t("form.memoryMB")} number />
        {d.node([...at, "exec"]) ? null : <Lines d={d} path={[...at, "commands"]} label={t("form.commands")} hint={t("form.commandsHint")} />}
        <More label={t("form.moreOfRole")}>
          <Line d={d} path={[...at, "completion", "minFailedInstances"]} label={t("form.minFailed")} hint={t("form.minFailedHint")} number />
          <Line d={d} path={[...at, "completion", "minSucceededInstances"]} label={t("form.minSucceeded")} hint={t("form.minSucceededHint")} number />
          <Line d={d} path={[...at, "taskRetryCount"]} label={t("form.taskRetryCount")} hint={t("form.taskRetryCountHint")} number />
          <Line d={d} path={[...at, "extraContainerOptions", "shmMB"]} label={t("form.shmMB")} number />
          <Line d={d} path={[...at, "extraContainerOptions", "diskMB"]} label={t("form.diskMB")} number />
          <Line d={d} path={[...cells, "skuType"]} label={t("form.skuType")} />
          <Line d={d} path={[...cells, "pinnedCellId"]} label={t("form.pinnedCell")} />
          <Line d={d} path={[...cells, "affinityGroupName"]} label={t("form.affinity")} />
          {(["script", "data", "output"] as const).map((x) => (d.named(x).length || d.value([...at, x]) ? <Choice key={x} d={d} path={[...at, x]} label={t(`form.type.${x}`)} options={d.named(x)} none={t("form.none")} /> : null))}
          <Tick d={d} path={[...at, "extraContainerOptions", "infiniband"]} label={t("form.infiniband")} />
          <Pairs d={d} path={[...resources, "ports"]} label={t("form.ports")} add={t("form.addPort")} first={1} number />
          <Ticks d={d} path={[...at, "prerequisites"]} label={t("form.rolePlugins")} all={d.plugins()} />
          <Lines d={d} path={[...at, "exec"]} label={t("form.exec")} hint={t("form.execHint")} />
          <Lines d={d} path={[...at, "shell"]} label={t("form.shell")} />
        </More>
      </div>
      <Remove label={role} disabled={d.keys(["taskRoles"]).length < 2} run={() => d.removeRole(role)} />
    </div>
  );
}

function Storages({ d }: { d: JobDocument }) {
  const at: Path = ["extras", "storages"];
  const mine = me.value?.grants.storages ?? [];
  const used = Array.from({ length: d.count(at) }, (_, i) => d.value([...at, i, "name"]));
  const rest = mine.filter((x) => !used.includes(x));
  return (
    <section aria-label={t("storages")}>
      <h2>{t("storages")}</h2>
      {used.map((name, i) => (
        <div key={i} class="card">
          <div class="grid">
            <Choice d={d} path={[...at, i, "name"]} label={t("name")} options={[name, ...rest]} />
            <Line d={d} path={[...at, i, "mountPath"]} label={t("form.mountPath")} hint={"/mnt/" + name} />
          </div>
          <Remove label={name} run={() => d.set([...at, i], undefined)} />
        </div>
      ))}
      {d.node(at) && d.node(at)!.kind === "list" && used.length === 0 ? <p class="faint small">{t("form.defaultStorages")}</p> : null}
      <Add label={t("form.addStorage")} run={() => (d.count(at) ? d.set([...at, used.length], { name: rest[0] ?? "storage" }) : d.set(at, [{ name: rest[0] ?? "storage" }]))} />
    </section>
  );
}

function Plugins({ d }: { d: JobDocument }) {
  const roles = d.keys(["taskRoles"]);
  const n = d.count([...plugins]);
  return (
    <section aria-label={t("form.plugins")}>
      <h2>{t("form.plugins")}</h2>
      {Array.from({ length: n }, (_, i) => {
        const at: Path = [...plugins, i];
        const name = d.value([...at, "plugin"]);
        return (
          <div key={i} class="card">
            <div class="grid">
              <Choice d={d} path={[...at, "plugin"]} label={t("form.plugin")} options={["ssh", "tensorboard", "cmd", "git", "teamwise_storage"]} />
              <Choice d={d} path={[...at, "failurePolicy"]} label={t("form.failurePolicy")} options={(["fail", "ignore"] as const).map((x) => [x, t(`form.failurePolicy.${x}`)])} none={t("form.failurePolicy.fail")} />
              <Ticks d={d} path={[...at, "taskroles"]} label={t("form.onlyRoles")} all={roles} />
              <Leaves d={d} at={[...at, "parameters"]} />
            </div>
            <Remove label={name} run={() => d.set(at, undefined)} />
          </div>
        );
      })}
      <Add label={t("form.addPlugin")} run={() => (n ? d.set([...plugins, n], { plugin: "ssh", parameters: { jobssh: true } }) : d.set([...plugins], [{ plugin: "ssh", parameters: { jobssh: true } }]))} />
    </section>
  );
}

/** Fields for whatever is at a path. */
function Leaves({ d, at, but = [] }: { d: JobDocument; at: Path; but?: string[] }) {
  const n = d.node(at);
  if (!n) return null;
  return (
    <>
      {d
        .leaves(at)
        .filter((path) => !but.includes(String(path[at.length])))
        .map((path) => {
          const label = path.slice(at.length).join(".") || String(path.at(-1));
          return d.node(path)?.kind === "list" ? <Lines key={path.join("/")} d={d} path={path} label={label} /> : <Line key={path.join("/")} d={d} path={path} label={label} />;
        })}
    </>
  );
}

function Deployments({ d }: { d: JobDocument }) {
  const at: Path = ["deployments"];
  const n = d.count(at);
  const roles = d.keys(["taskRoles"]);
  return (
    <section aria-label={t("form.deployments")}>
      <h2>{t("form.deployments")}</h2>
      {Array.from({ length: n }, (_, i) => {
        const name = d.value([...at, i, "name"]);
        return (
          <div key={i} class="card">
            <div class="grid">
              <Line d={d} path={[...at, i, "name"]} label={t("name")} />
              {[...new Set([...d.keys([...at, i, "taskRoles"]), ...roles])].flatMap((role) => [
                <Lines key={role + "-"} d={d} path={[...at, i, "taskRoles", role, "preCommands"]} label={t("form.preCommands", { role })} />,
                <Lines key={role + "+"} d={d} path={[...at, i, "taskRoles", role, "postCommands"]} label={t("form.postCommands", { role })} />,
              ])}
            </div>
            <Remove label={name} run={() => d.set([...at, i], undefined)} />
          </div>
        );
      })}
      {roles.length ? (
        <Add
          label={t("form.addDeployment")}
          run={() => {
            const made = { name: fresh(Array.from({ length: n }, (_, i) => d.value([...at, i, "name"])), "site"), taskRoles: { [roles[0]!]: { preCommands: ["echo before"] } } };
            if (n) d.set([...at, n], made);
            else d.set(at, [made]);
          }}
        />
      ) : null}
    </section>
  );
}

/** What the file has besides: keys that the protocol keeps, and that have no effect. */
function Others({ d }: { d: JobDocument }) {
  const rest = d.keys(["extras"]).filter((k) => !known.includes(k));
  if (rest.length === 0) return null;
  return (
    <section aria-label={t("form.others")}>
      <h2>{t("form.others")}</h2>
      <div class="grid">
        <Leaves d={d} at={["extras"]} but={known} />
      </div>
    </section>
  );
}
