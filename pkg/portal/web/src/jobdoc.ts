// A job file as its form reads and changes it.
import { at, read, Unreadable, type Mapping, type Node, type Parser, type Path } from "./yaml";
import { rename, set, type Value } from "./yamledit";

/** The orders of keys in a job file. */
const orders: [RegExp, string[]][] = [
  [/^$/, ["protocolVersion", "name", "type", "version", "contributor", "description", "prerequisites", "parameters", "secrets", "jobRetryCount", "taskRoles", "deployments", "defaults", "extras"]],
  [/^taskRoles\/[^/]*$/, ["instances", "completion", "taskRetryCount", "prerequisites", "dockerImage", "data", "output", "script", "extraContainerOptions", "resourcePerInstance", "shell", "exec", "commands"]],
  [/^prerequisites\/\d+$/, ["name", "type", "uri", "auth", "plugin"]],
  [/resourcePerInstance$/, ["cpu", "memoryMB", "gpu", "ports"]],
];

function order(path: Path): string[] {
  const text = path.join("/");
  return orders.find(([of]) => of.test(text))?.[1] ?? [];
}

export class JobDocument {
  readonly root: Mapping | null;

  /**
   * It throws Unreadable if the text isn't one mapping. now returns the latest text, which may be newer than the one that is drawn. change receives the
   * text after a change, and refuse the place of a part that only a person can change.
   */
  constructor(
    text: string,
    readonly parser: Parser,
    private readonly now: () => string,
    private readonly change: (text: string) => void,
    readonly refuse: (at: number) => void,
  ) {
    this.root = read(text, parser);
  }

  node(path: Path): Node | null | undefined {
    return at(this.root, path);
  }

  /** The text at a path; "" without one. */
  value(path: Path): string {
    const n = this.node(path);
    return n?.kind === "scalar" ? n.value : "";
  }

  /** Whether the form can change the part at a path: it isn't there, or is a text. */
  isText(path: Path): boolean {
    const n = this.node(path);
    return !n || n.kind === "scalar";
  }

  /** The texts of a list, or of one text in its place; null if it is something else. */
  texts(path: Path): string[] | null {
    const n = this.node(path);
    if (!n) return [];
    if (n.kind === "scalar") return n.value === "" ? [] : [n.value];
    if (n.kind !== "list" || n.items.some((i) => i.value && i.value.kind !== "scalar")) return null;
    return n.items.map((i) => (i.value?.kind === "scalar" ? i.value.value : ""));
  }

  keys(path: Path): string[] {
    const n = this.node(path);
    return n?.kind === "map" ? n.entries.map((e) => e.key.value) : [];
  }

  /** The number of items of a list. */
  count(path: Path): number {
    const n = this.node(path);
    return n?.kind === "list" ? n.items.length : 0;
  }

  /** The paths of all texts, and of all lists of texts, at and below a path. */
  leaves(path: Path): Path[] {
    const n = this.node(path);
    if (n?.kind === "map") return n.entries.flatMap((e) => this.leaves([...path, e.key.value]));
    if (n?.kind === "list" && this.texts(path) === null) return n.items.flatMap((_, i) => this.leaves([...path, i]));
    return [path];
  }

  private try(edit: (text: string) => string): void {
    try {
      const text = this.now();
      const out = edit(text);
      if (out !== text) this.change(out);
    } catch (e) {
      if (!(e instanceof Unreadable)) throw e;
      this.refuse(e.at);
    }
  }

  set(path: Path, value: Value | undefined): void {
    this.try((text) => set(text, this.parser, path, value, order));
  }

  /** Writes a text as a number if it is one. */
  setNumber(path: Path, text: string): void {
    this.set(path, /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) ? Number(text) : text);
  }

  /** The names of prerequisites of a type. */
  named(type: string): string[] {
    const out: string[] = [];
    for (let i = 0; i < this.count(["prerequisites"]); i++) if (this.value(["prerequisites", i, "type"]) === type) out.push(this.value(["prerequisites", i, "name"]));
    return out.filter(Boolean);
  }

  /** The names of prerequisites that are runtime plugins. */
  plugins(): string[] {
    const out: string[] = [];
    for (let i = 0; i < this.count(["prerequisites"]); i++) if (this.value(["prerequisites", i, "plugin"])) out.push(this.value(["prerequisites", i, "name"]));
    return out.filter(Boolean);
  }

  /** Renames a role, also where other parts of the file name it. */
  renameRole(from: string, to: string): void {
    this.try((text) => {
      let out = rename(text, this.parser, ["taskRoles", from], to);
      if (this.keys(["extras", "hivedScheduler", "taskRoles"]).includes(from)) out = rename(out, this.parser, ["extras", "hivedScheduler", "taskRoles", from], to);
      for (let i = 0; i < this.count(["deployments"]); i++) if (this.keys(["deployments", i, "taskRoles"]).includes(from)) out = rename(out, this.parser, ["deployments", i, "taskRoles", from], to);
      for (let i = 0; i < this.count([...plugins]); i++) this.texts([...plugins, i, "taskroles"])?.forEach((role, k) => role === from && (out = set(out, this.parser, [...plugins, i, "taskroles", k], to)));
      return out;
    });
  }

  /** Removes a role, and what other parts of the file say about it alone. */
  removeRole(name: string): void {
    this.try((text) => {
      let out = set(text, this.parser, ["taskRoles", name], undefined);
      if (this.keys(["extras", "hivedScheduler", "taskRoles"]).includes(name)) out = set(out, this.parser, ["extras", "hivedScheduler", "taskRoles", name], undefined);
      for (let i = 0; i < this.count(["deployments"]); i++) if (this.keys(["deployments", i, "taskRoles"]).length > 1 && this.keys(["deployments", i, "taskRoles"]).includes(name)) out = set(out, this.parser, ["deployments", i, "taskRoles", name], undefined);
      return out;
    });
  }

  /** Renames a prerequisite, also where roles name it. */
  renamePrerequisite(i: number, to: string): void {
    const [from, type] = [this.value(["prerequisites", i, "name"]), this.value(["prerequisites", i, "type"])];
    const key = type === "dockerimage" ? "dockerImage" : type;
    this.try((text) => {
      let out = set(text, this.parser, ["prerequisites", i, "name"], to, order);
      for (const role of this.keys(["taskRoles"])) {
        if (this.value(["taskRoles", role, key]) === from) out = set(out, this.parser, ["taskRoles", role, key], to);
        this.texts(["taskRoles", role, "prerequisites"])?.forEach((name, k) => name === from && (out = set(out, this.parser, ["taskRoles", role, "prerequisites", k], to)));
      }
      return out;
    });
  }

  rename(path: Path, to: string): void {
    this.try((text) => rename(text, this.parser, path, to));
  }
}

/** The path of the runtime plugins. */
export const plugins: Path = ["extras", "com.microsoft.pai.runtimeplugin"];
