// The field of a job file: an editor, or a plain field if the editor can't be loaded.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Editor } from "../editor";
import { load } from "./load";
import { ownVCs } from "./session";
import { language, t } from "./text";
import type { StrictyamlFinding } from "./types";
import { Loading } from "./ui";

/** Shows a place of the file. */
export type Show = (line: number, column?: number) => void;

interface Field {
  text: string;
  /** Returns the latest text: someone who types fast is ahead of what is drawn. */
  now(): string;
  /** The server's findings; null while the server checks. */
  findings: StrictyamlFinding[] | null;
  changed(text: string): void;
  send(): void;
  show: { current: Show };
}

export function JobFile(field: Field) {
  const way = useSignal<"loading" | "editor" | "plain">("loading");
  const box = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const latest = useRef(field);
  latest.current = field;
  const speaks = language.value;

  useEffect(() => {
    let gone = false;
    load("editor").then(
      (m) => {
        if (gone) return;
        editor.current = m.edit(box.current!, latest.current.now(), {
          label: t("jobFile"),
          help: t("editorHelp"),
          phrases: speaks === "en" ? {} : phrases(),
          virtualClusters: ownVCs,
          changed: (text) => latest.current.changed(text),
          send: () => latest.current.send(),
        });
        field.show.current = editor.current.show;
        editor.current.mark(placed(latest.current.findings ?? []));
        way.value = "editor";
      },
      () => (way.value = "plain"),
    );
    return () => {
      gone = true;
      editor.current?.end();
      editor.current = null;
    };
  }, [speaks]);
  useEffect(() => editor.current?.set(field.now()), [field.text]);
  useEffect(() => {
    if (field.findings) editor.current?.mark(placed(field.findings));
  }, [field.findings]);

  return (
    <>
      <div ref={box} class="rich" hidden={way.value !== "editor"} />
      {way.value === "loading" ? <Loading /> : null}
      {way.value === "plain" ? <Plain {...field} /> : null}
      {way.value === "editor" ? <p class="keys-hint faint">{t("editorHelp")}</p> : null}
    </>
  );
}

function placed(findings: StrictyamlFinding[]): StrictyamlFinding[] {
  return findings.filter((f) => f.line);
}

function Plain({ text, findings, changed, send, show }: Field) {
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLPreElement>(null);
  show.current = (line) => {
    const a = area.current!;
    const lines = a.value.split("\n");
    const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    a.focus();
    a.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
    a.scrollTop = Math.max(0, (line - 6) * (a.scrollHeight / lines.length));
  };
  const keys = (e: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      send();
    } else if (e.key === "Enter" && !e.shiftKey) {
      const a = e.currentTarget;
      const line = a.value.slice(a.value.lastIndexOf("\n", a.selectionStart - 1) + 1, a.selectionStart);
      const indent = /^ */.exec(line)![0] + (line.trimEnd().endsWith(":") ? "  " : "");
      if (!indent) return;
      e.preventDefault();
      // It keeps the field's own undo.
      document.execCommand("insertText", false, "\n" + indent);
    }
  };
  const worst = new Map<number, string>();
  for (const f of findings ?? []) if (f.line) worst.set(f.line, f.severity === "warning" && worst.get(f.line) !== "bad" ? "warn" : "bad");
  return (
    <>
      <pre ref={gutter} class="gutter" aria-hidden="true">
        {Array.from({ length: text.split("\n").length }, (_, i) => (
          <i key={i} class={worst.get(i + 1) ?? ""}>
            {i + 1}
            {"\n"}
          </i>
        ))}
      </pre>
      <textarea
        ref={area}
        aria-label={t("jobFile")}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        wrap="off"
        value={text}
        onInput={(e) => changed(e.currentTarget.value)}
        onKeyDown={keys}
        onScroll={(e) => (gutter.current!.scrollTop = e.currentTarget.scrollTop)}
      />
      <p class="keys-hint faint">{t("plainEditor")}</p>
    </>
  );
}

/** The texts of the editor itself, by their English. */
function phrases(): Record<string, string> {
  return {
    Find: t("find"),
    Replace: t("edit.replace"),
    next: t("next"),
    previous: t("before"),
    all: t("edit.all"),
    "match case": t("edit.case"),
    regexp: t("edit.regexp"),
    "by word": t("edit.word"),
    replace: t("edit.replace"),
    "replace all": t("edit.replaceAll"),
    close: t("close"),
    "Go to line": t("edit.line"),
    go: t("edit.go"),
    Completions: t("edit.completions"),
    Diagnostics: t("check"),
    "No diagnostics": t("edit.noFindings"),
    "Control character": t("edit.control"),
    "folded code": t("edit.folded"),
    "Fold line": t("edit.fold"),
    "Unfold line": t("edit.unfold"),
    unfold: t("edit.unfold"),
  };
}
