// Files of the portal that a page loads when it needs them.
import type * as chart from "../chart";
import type * as code from "../code";
import type * as editor from "../editor";
import type * as terminal from "../terminal";

interface Files {
  chart: typeof chart;
  code: typeof code;
  editor: typeof editor;
  terminal: typeof terminal;
}

/** Loads a file that is beside this one, so that a page never mixes files of two versions. */
export function load<K extends keyof Files>(name: K): Promise<Files[K]> {
  return import(new URL(`./${name}.js`, import.meta.url).href) as Promise<Files[K]>;
}
