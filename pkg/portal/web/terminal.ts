// The terminal, as one file that a page loads when it opens a shell.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import layout from "@xterm/xterm/css/xterm.css";
import { adopt, adoptText } from "./adopt";

/**
 * Takes the place of the style elements that the library makes, which the content security policy forbids: its text becomes a sheet of
 * rules. hack/portal replaces the name of the element in the library.
 */
class Style extends HTMLElement {
  readonly #rules = new CSSStyleSheet();
  override set textContent(text: string) {
    this.#rules.replaceSync(text);
  }
  connectedCallback() {
    adopt(this.#rules);
  }
  disconnectedCallback() {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== this.#rules);
  }
}
customElements.define("portal-style", Style);

adoptText(layout);

export interface Options {
  label: string;
  /** Receives what the person types and pastes. */
  typed(data: Uint8Array): void;
  resized(columns: number, rows: number): void;
  copied(text: string): void;
  /** The keyboard leaves the terminal. */
  left(): void;
}

export interface Screen {
  /** Draws data, and calls drawn afterwards. */
  write(data: Uint8Array | string, drawn?: () => void): void;
  /** Has the size of the terminal. */
  size(): { columns: number; rows: number };
  /** Sends a text as if the person had typed it. */
  type(text: string): void;
  paste(text: string): void;
  selection(): string;
  /** Begins an empty screen. */
  reset(): void;
  focus(): void;
  end(): void;
}

const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/** The colours of the page's theme. The library reads no variables. */
function colours() {
  const of = getComputedStyle(document.documentElement);
  const get = (name: string) => of.getPropertyValue(name).trim();
  const out: Record<string, string> = { background: get("--paper"), foreground: get("--ink"), cursor: get("--ink"), cursorAccent: get("--paper"), selectionBackground: get("--shell-selection") };
  for (const name of names) {
    out[name] = get(`--shell-${name}`);
    out["bright" + name[0]!.toUpperCase() + name.slice(1)] = get(`--shell-bright-${name}`) || out[name]!;
  }
  return out;
}

/** Returns a text to paste without control characters: one could end the paste, so that the rest counts as typed, or act as a key. */
function plain(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "");
}

export function open(parent: HTMLElement, options: Options): Screen {
  const family = getComputedStyle(document.documentElement).getPropertyValue("--mono");
  const terminal = new Terminal({
    fontFamily: family,
    fontSize: 13,
    lineHeight: 1.2,
    cursorBlink: false,
    scrollback: 5000,
    theme: colours(),
    minimumContrastRatio: 4.5,
    // A link in the output may be of someone else, and say one address and lead to another.
    linkHandler: { activate: () => {} },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(parent);
  terminal.textarea?.setAttribute("aria-label", options.label);
  const refit = () => {
    if (parent.clientWidth > 0 && parent.clientHeight > 0) fit.fit();
  };
  refit();
  const utf8 = new TextEncoder();
  terminal.onData((text) => options.typed(utf8.encode(text)));
  terminal.onBinary((text) => options.typed(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  terminal.onResize((s) => options.resized(s.cols, s.rows));
  terminal.attachCustomKeyEventHandler((e) => {
    if (e.type !== "keydown") return true;
    if (e.ctrlKey && e.key === "F6") {
      options.left();
      return false;
    }
    if (e.ctrlKey && !e.altKey && !e.metaKey && e.code === "KeyC" && terminal.hasSelection()) {
      options.copied(terminal.getSelection());
      terminal.clearSelection();
      e.preventDefault();
      return false;
    }
    // The browser pastes.
    return !(e.ctrlKey && e.shiftKey && e.code === "KeyV");
  });
  const pasted = (e: ClipboardEvent) => {
    e.preventDefault();
    e.stopPropagation();
    terminal.paste(plain(e.clipboardData?.getData("text/plain") ?? ""));
  };
  parent.addEventListener("paste", pasted, true);
  const sizes = new ResizeObserver(refit);
  sizes.observe(parent);
  const recolour = () => (terminal.options.theme = colours());
  const themes = new MutationObserver(recolour);
  themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", recolour);
  return {
    write: (data, drawn) => terminal.write(data, drawn),
    size: () => ({ columns: terminal.cols, rows: terminal.rows }),
    type: (text) => terminal.input(text),
    paste: (text) => terminal.paste(plain(text)),
    selection: () => terminal.getSelection(),
    reset: () => terminal.reset(),
    focus: () => terminal.focus(),
    end() {
      parent.removeEventListener("paste", pasted, true);
      sizes.disconnect();
      themes.disconnect();
      dark.removeEventListener("change", recolour);
      terminal.dispose();
    },
  };
}
