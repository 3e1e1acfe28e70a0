// Pages whose files are loaded when one is opened.
import { signal, useSignal } from "@preact/signals";
import type { ComponentType, VNode } from "preact";
import { useEffect } from "preact/hooks";
import { Loading, Problem } from "./ui";

/** Returns a component that loads another one when it is shown first. */
export function later<P extends object>(file: () => Promise<ComponentType<P>>): (props: P) => VNode {
  const loaded = signal<{ Page: ComponentType<P> } | null>(null);
  return (props) => {
    const error = useSignal<unknown>(null);
    const load = () => {
      error.value = null;
      file().then(
        (Page) => (loaded.value = { Page }),
        (e) => (error.value = e),
      );
    };
    useEffect(() => {
      if (!loaded.value) load();
    }, []);
    if (error.value) return <Problem of={error.value} again={load} />;
    return loaded.value ? <loaded.value.Page {...props} /> : <Loading />;
  };
}
