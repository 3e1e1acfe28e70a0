// Keyboard shortcuts. A page adds its own while it is shown.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { open as palette } from "./palette";
import { address, go } from "./route";
import type { Text } from "./text";

type Keys = Record<string, (e: KeyboardEvent) => void>;

/** On a Mac, programs have Control for themselves, and pages have Command. */
const mac = /^Mac/.test(navigator.platform);

const pages: Keys[] = [];
export const help = signal(false);
let before = "";

/** All shortcuts, for the list of them. */
export const all: [string, Text][] = [
  ["/", "key.search"],
  ["j  ↓", "key.next"],
  ["k  ↑", "key.prev"],
  ["Enter", "key.open"],
  ["1 – 6", "key.tabs"],
  ["Ctrl Enter", "key.send"],
  ["Ctrl Space", "key.complete"],
  ["Ctrl F6", "key.leave"],
  ["g h", "key.home"],
  ["g j", "key.jobs"],
  ["g m", "key.machines"],
  ["g t", "key.templates"],
  ["g u", "key.usage"],
  ["n", "key.submit"],
  ["c  d", "key.machine"],
  ["Ctrl K", "key.palette"],
  ["?", "key.help"],
];

const everywhere: Keys = {
  "g h": () => go(address([])),
  "g j": () => go(address(["jobs"])),
  "g m": () => go(address(["machines"])),
  "g t": () => go(address(["templates"])),
  "g u": () => go(address(["usage"])),
  n: () => go(address(["submit"])),
  "?": () => (help.value = !help.value),
};

export function listen(): void {
  addEventListener("keydown", (e) => {
    if (e.key === "k" && (mac ? e.metaKey : e.ctrlKey) && !e.altKey && !e.shiftKey && !document.querySelector("dialog[open]") && !(e.target as Element).closest?.(".shell")) {
      e.preventDefault();
      palette.value = true;
      return;
    }
    const at = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]") || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || at.isContentEditable) return;
    const two = before + " " + e.key;
    before = e.key;
    for (const keys of [...pages].reverse().concat(everywhere)) {
      const act = keys[two] ?? keys[e.key];
      if (act) {
        if (e.key === "Enter" && at !== document.body) return; // a link or a button has it
        e.preventDefault();
        before = "";
        act(e);
        return;
      }
    }
  });
}

export function useKeys(keys: Keys): void {
  useEffect(() => {
    pages.push(keys);
    return () => void pages.splice(pages.indexOf(keys), 1);
  });
}
