// The editor of job files, as one file that a page loads when it opens a job file.
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
import { yaml, yamlLanguage } from "@codemirror/lang-yaml";
import { HighlightStyle, bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, dropCursor, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { completions } from "./complete";

/** The parser of the editor, which the form of a job uses as well. */
export const parser = yamlLanguage.parser;

/** A finding of the server, at a line and a column that begin at 1. */
export interface Mark {
  line?: number;
  column?: number;
  message: string;
  remedy?: string;
  severity: string;
}

export interface Options {
  label: string;
  /** Says how the keyboard leaves the editor. */
  help: string;
  /** Texts of the editor in the person's language, by their English. */
  phrases: Record<string, string>;
  virtualClusters(): string[];
  changed(text: string): void;
  send(): void;
}

export interface Editor {
  /** Replaces the text. Without a change, the editor returns exactly this text. */
  set(text: string): void;
  mark(all: Mark[]): void;
  show(line: number, column?: number): void;
  focus(): void;
  end(): void;
}

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--ink-2)", fontStyle: "italic" },
  { tag: [tags.keyword, tags.typeName, tags.labelName, tags.meta], color: "var(--code-other)" },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.squareBracket, tags.brace], color: "var(--ink-2)" },
]);

const theme = EditorView.theme({
  "&": { flex: "1", minWidth: "0", height: "100%", fontSize: "13px", color: "var(--ink)", backgroundColor: "transparent" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px" },
  ".cm-content": { padding: "12px 0", caretColor: "var(--ink)" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--ink-3)", border: "0" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--ink) 4%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--ink)" },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in srgb, var(--accent) 14%, transparent)" },
  ".cm-searchMatch": { backgroundColor: "var(--mark)" },
  ".cm-searchMatch.cm-searchMatch-selected": { backgroundColor: "var(--mark-here)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)" },
  ".cm-specialChar": { color: "var(--bad)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--sunk)", borderColor: "var(--line-strong)", color: "var(--ink-2)" },
  ".cm-foldGutter span": { color: "var(--ink-3)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--ink)", fontFamily: "var(--text)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel.cm-search": { padding: "8px 34px 8px 10px", fontSize: "13px" },
  ".cm-panel.cm-search label": { fontSize: "12.5px", color: "var(--ink-2)" },
  ".cm-textfield": { height: "26px", padding: "0 8px", border: "1px solid var(--line-strong)", borderRadius: "6px", backgroundColor: "var(--paper)", color: "var(--ink)" },
  ".cm-button": { height: "26px", padding: "0 9px", border: "1px solid var(--line-strong)", borderRadius: "6px", background: "var(--paper)", color: "var(--ink)", fontSize: "12.5px" },
  ".cm-panel.cm-search [name=close]": { top: "6px", right: "8px", width: "24px", height: "24px", color: "var(--ink-2)", fontSize: "16px" },
  ".cm-tooltip": { border: "1px solid var(--line-strong)", borderRadius: "8px", backgroundColor: "var(--raised)", color: "var(--ink)", boxShadow: "var(--shadow)", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12.5px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent-soft)", color: "var(--ink)" },
  ".cm-tooltip.cm-completionInfo": { maxWidth: "320px", padding: "7px 10px", fontFamily: "var(--text)", fontSize: "12.5px" },
  ".cm-completionDetail": { color: "var(--ink-3)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-diagnostic": { maxWidth: "460px", padding: "6px 10px", fontFamily: "var(--text)", fontSize: "12.5px" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--wait)" },
  ".cm-diagnostic p + p": { color: "var(--ink-2)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad) 1px", textUnderlineOffset: "4px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--wait) 1px", textUnderlineOffset: "4px" },
  ".cm-gutter-lint": { width: "12px" },
  ".cm-gutter-lint .cm-gutterElement": { padding: "6px 2px" },
  ".cm-lint-marker": { width: "8px", height: "8px" },
  ".cm-lint-marker-error": { content: "none", borderRadius: "50%", backgroundColor: "var(--bad)" },
  ".cm-lint-marker-warning": { content: "none", borderRadius: "50%", backgroundColor: "var(--wait)" },
});

/** The text as it was read: a file whose lines all end with CR LF keeps them, and in other files CR is a character like others. */
function separator(text: string): string {
  return text.includes("\r\n") && !/(^|[^\r])\n|\r(?!\n)/.test(text) ? "\r\n" : "\n";
}

export function edit(parent: HTMLElement, text: string, options: Options): Editor {
  const extensions = (content: string): Extension => [
    EditorState.lineSeparator.of(separator(content)),
    EditorState.phrases.of(options.phrases),
    EditorView.clipboardInputFilter.of((pasted, state) => pasted.replace(/\r\n?|\n/g, state.lineBreak)),
    EditorView.contentAttributes.of({ "aria-label": options.label, "aria-description": options.help, tabindex: "0", autocapitalize: "off", autocorrect: "off", spellcheck: "false" }),
    EditorView.updateListener.of((u) => {
      if (u.docChanged) options.changed(u.state.sliceDoc());
    }),
    lineNumbers(),
    lintGutter(),
    foldGutter(),
    highlightActiveLineGutter(),
    highlightActiveLine(),
    highlightSpecialChars(),
    highlightSelectionMatches(),
    history(),
    drawSelection(),
    dropCursor(),
    EditorState.allowMultipleSelections.of(true),
    EditorState.tabSize.of(2),
    indentUnit.of("  "),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    yaml(),
    syntaxHighlighting(colours),
    search(),
    autocompletion({ override: [completions(options.virtualClusters)], icons: false }),
    keymap.of([
      {
        key: "Mod-Enter",
        run: () => {
          options.send();
          return true;
        },
      },
      { key: "Tab", run: (v) => acceptCompletion(v) || indentMore(v), shift: indentLess },
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...foldKeymap,
      ...completionKeymap,
      ...lintKeymap,
    ]),
    theme,
  ];
  const state = (content: string) => EditorState.create({ doc: content, extensions: extensions(content) });
  const view = new EditorView({ state: state(text), parent });
  /** Returns the position of a finding. The server's columns count characters, and a tab or an emoji is one. */
  const at = (line: number, column: number) => {
    const l = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
    return Math.min(l.from + [...l.text].slice(0, Math.max(column, 1) - 1).join("").length, l.to);
  };
  return {
    set(content) {
      const now = view.state.sliceDoc();
      if (content === now) return;
      // Positions in a document count an end of line as one character.
      if (separator(content) !== "\n" || view.state.lineBreak !== "\n" || !now) return view.setState(state(content));
      let [from, end] = [0, 0];
      while (from < now.length && now[from] === content[from]) from++;
      while (end < now.length - from && end < content.length - from && now[now.length - 1 - end] === content[content.length - 1 - end]) end++;
      view.dispatch({ changes: { from, to: now.length - end, insert: content.slice(from, content.length - end) } });
    },
    mark(all) {
      const found = all.map((f): Diagnostic => {
        const line = view.state.doc.line(Math.min(Math.max(f.line ?? 1, 1), view.state.doc.lines));
        const from = f.column ? at(line.number, f.column) : line.from + /^\s*/.exec(line.text)![0].length;
        const rest = line.text.slice(from - line.from);
        const length = (f.column ? /^[\w.-]+/.exec(rest)?.[0].length : rest.trimEnd().length) || rest.length;
        return {
          from,
          to: from + length,
          severity: f.severity === "warning" ? "warning" : "error",
          message: f.message,
          renderMessage() {
            const out = document.createElement("div");
            for (const part of [f.message, f.remedy]) {
              if (!part) continue;
              out.appendChild(document.createElement("p")).textContent = part;
            }
            return out;
          },
        };
      });
      view.dispatch(setDiagnostics(view.state, found));
    },
    show(line, column) {
      const from = at(line, column ?? 1);
      view.focus();
      view.dispatch({ selection: column ? { anchor: from } : { anchor: from, head: view.state.doc.lineAt(from).to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    },
    focus: () => view.focus(),
    end: () => view.destroy(),
  };
}
