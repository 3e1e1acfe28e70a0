// A form for the parameters of a job file.
import { useRef } from "preact/hooks";
import { parameters, type Parameter } from "./parameters";
import { t } from "./text";

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
