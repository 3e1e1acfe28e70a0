// What the pages do beyond showing text: search, the theme, the menu of phones, copying code. They work without it.
"use strict";
(() => {
  const root = document.documentElement;
  const script = document.currentScript;
  const store = { // browsers may refuse storage to files
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* the choice lasts for this page */ } },
  };
  const create = (name, text, attributes = {}) => {
    const e = document.createElement(name);
    e.textContent = text;
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    return e;
  };

  const themeButton = document.querySelector("header .theme");
  const chosen = store.get("paictl-docs-theme");
  if (chosen) root.dataset.theme = chosen;
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    store.set("paictl-docs-theme", root.dataset.theme);
  });

  // The list of pages shows the open one, if it scrolls: on phones it does only over the text.
  const pages = document.querySelector("#pages");
  const current = pages.querySelector("[aria-current]");
  const showCurrent = () => { if (current) pages.scrollTop = current.offsetTop - pages.clientHeight / 2; };
  showCurrent();

  const menu = document.querySelector("header .menu");
  const open = (yes) => {
    document.body.classList.toggle("over", yes);
    menu.setAttribute("aria-expanded", yes);
    showCurrent();
  };
  menu.addEventListener("click", (e) => { e.preventDefault(); open(!document.body.classList.contains("over")); });

  for (const pre of document.querySelectorAll("article pre")) {
    const code = pre.textContent;
    // In a block of a terminal the commands are copied, with the lines of their input, and not their output.
    const copied = pre.querySelector(".language-console") ? commands(code) : code;
    const button = create("button", root.lang === "en" ? "Copy" : "复制", { type: "button" });
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(copied);
      button.textContent = "✓";
    });
    if (navigator.clipboard && copied) pre.append(button);
  }

  function commands(text) {
    const out = [];
    let end = ""; // of a document that a command reads
    let more = false;
    for (const line of text.split("\n")) {
      if (end || more) out.push(line);
      else if (line.startsWith("$ ")) out.push(line.slice(2));
      else continue;
      if (end) { if (line.trim() === end) end = ""; continue; }
      more = line.endsWith("\\");
      end = line.match(/<<-?\s*['"]?([A-Za-z_]+)/)?.[1] ?? "";
    }
    return out.length ? out.join("\n") + "\n" : "";
  }

  // The section that is read is marked in the contents.
  const entries = new Map([...document.querySelectorAll(".contents a")].map((a) => [decodeURIComponent(a.hash.slice(1)), a]));
  const headings = [...document.querySelectorAll("article :is(h2, h3)[id]")].filter((h) => entries.has(h.id));
  const mark = () => {
    const here = headings.findLast((h) => h.getBoundingClientRect().top < 120);
    for (const [id, a] of entries) a.classList.toggle("here", id === here?.id);
  };
  if (headings.length) { addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true }); mark(); }
  if (entries.size && matchMedia("(max-width: 76rem)").matches) document.querySelector(".contents details").open = false;

  const box = document.querySelector("header search");
  const input = box.querySelector("input");
  const list = box.querySelector("#found");
  const indexFile = new URL("search-index.js", script.src);
  box.hidden = false;

  // The index is a script, since pages that were opened as files can't fetch. It is loaded when someone begins to search.
  let loading;
  const load = () => loading ??= new Promise((done, failed) => {
    const s = create("script", "", { src: indexFile });
    s.onload = done;
    s.onerror = failed;
    document.head.append(s);
  });

  function find(words) {
    const { pages, sections } = window.paictlIndex;
    const found = [];
    sections.forEach((s, i) => {
      const page = pages[s.page];
      s.low ??= [page.title, s.heading ?? "", s.text].map((t) => t.toLowerCase());
      let score = 0;
      for (const w of words) {
        const at = s.low.map((t) => t.indexOf(w));
        if (at.every((n) => n < 0)) return;
        // A page's title counts for its first section: the others would repeat it.
        score += (at[0] >= 0 ? (s.heading ? 2 : 12) : 0) + (at[1] >= 0 ? 8 : 0) + (at[2] >= 0 ? 1 : 0);
        if (s.low[1] === w || (!s.heading && s.low[0] === w)) score += 10;
      }
      const phrase = words.join(" ");
      if (words.length > 1 && (s.low[1] === phrase || (!s.heading && s.low[0] === phrase))) score += 10;
      if (page.lang !== root.lang) score -= 6;
      if (page.href.startsWith("docs/adr/") || page.href.startsWith("changelog/")) score -= 4;
      found.push({ s, page, score, i });
    });
    return found.sort((a, b) => b.score - a.score || a.i - b.i).slice(0, 20);
  }

  const escaped = (w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  function show(words, found) {
    const parts = new RegExp(`(${words.map(escaped).join("|")})`, "gi");
    const marked = (e, text) => { // the odd parts are the words
      text.split(parts).forEach((part, i) => e.append(i % 2 ? create("mark", part) : part));
      return e;
    };
    list.replaceChildren(...found.map(({ s, page }, i) => {
      const href = new URL(page.href + (s.anchor ? "#" + s.anchor : ""), indexFile);
      const a = create("a", "", { href, role: "option", id: `found-${i}`, "aria-selected": i === 0 });
      a.append(marked(create("b", ""), s.heading ? `${page.title} › ${s.heading}` : page.title));
      const at = Math.max(0, s.text.search(parts) - 50);
      return marked(a, (at ? "…" : "") + s.text.slice(at, at + 160));
    }));
    if (!found.length) list.append(create("p", list.dataset.none));
  }

  const expand = (yes) => {
    list.hidden = !yes;
    input.setAttribute("aria-expanded", yes);
    input.toggleAttribute("aria-activedescendant", false);
  };
  async function search() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return expand(false);
    await load();
    show(words, find(words));
    expand(true);
    select(0);
  }
  function select(by) {
    const all = [...list.querySelectorAll("a")];
    if (!all.length) return;
    const at = all.findIndex((a) => a.getAttribute("aria-selected") === "true");
    const next = (at + by + all.length) % all.length;
    all.forEach((a, i) => a.setAttribute("aria-selected", i === next));
    input.setAttribute("aria-activedescendant", all[next].id);
    all[next].scrollIntoView({ block: "nearest" });
  }
  input.addEventListener("focus", load);
  input.addEventListener("input", search);
  input.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); select(e.key === "ArrowDown" ? 1 : -1); }
    if (e.key === "Enter") list.querySelector('[aria-selected="true"]')?.click();
    if (e.key === "Escape") { expand(false); input.blur(); }
  });
  list.addEventListener("click", () => expand(false));
  addEventListener("click", (e) => { if (!box.contains(e.target)) expand(false); });
  addEventListener("keydown", (e) => {
    if (e.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) { e.preventDefault(); input.focus(); }
    if (e.key === "Escape") open(false);
  });
})();
