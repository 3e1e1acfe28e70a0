// pkg/portal/web/src/load.ts
function load(name) {
  return import(new URL(`./${name}.js`, import.meta.url).href);
}

// pkg/portal/web/src/parameters.ts
function quotedText(text, at) {
  const found = text[at] === '"' ? /"(?:[^"\\\r\n]|\\[^\r\n])*"/y : /'(?:[^'\r\n]|'')*'/y;
  found.lastIndex = at;
  const raw = found.exec(text)?.[0];
  if (raw === void 0) return null;
  if (raw[0] === "'") return { value: raw.slice(1, -1).replaceAll("''", "'"), end: at + raw.length, quote: "'" };
  try {
    return { value: JSON.parse(raw.replaceAll("	", "\\t")), end: at + raw.length, quote: '"' };
  } catch {
    return null;
  }
}
function plainText(text, at, flow) {
  const found = flow ? /[^\r\n,[\]{}#]*/y : /[^\r\n]*/y;
  found.lastIndex = at;
  const value = found.exec(text)[0].replace(/(^|\s)#.*$/, "").trimEnd();
  if (/^[&*!|>{[%@`"'#,\]}]|^[-?:](\s|$)|:(\s|$)/.test(value)) return null;
  return { value, end: at + value.length, quote: "" };
}
function scalar(text, at, flow) {
  return text[at] === '"' || text[at] === "'" ? quotedText(text, at) : plainText(text, at, flow);
}
function key(text, at) {
  const quoted = text[at] === '"' || text[at] === "'" ? quotedText(text, at) : null;
  const found = quoted ? /()[ \t]*:(?=[ \t\r\n]|$)/y : /([\p{L}\p{N}_$][^\r\n:,[\]{}#"']*?)[ \t]*:(?=[ \t\r\n]|$)/uy;
  found.lastIndex = quoted?.end ?? at;
  const m = found.exec(text);
  return m ? { value: quoted?.value ?? m[1], end: found.lastIndex, quote: "" } : null;
}
function entry(text, at, flow) {
  const name = key(text, at);
  if (!name) return null;
  let from = name.end;
  while (text[from] === " " || text[from] === "	") from++;
  const value = scalar(text, from, flow);
  if (value?.value === "" && !value.quote) return { name: name.value, value: "", from: name.end, to: name.end, quote: "", flow };
  if (value) return { name: name.value, value: value.value, from, to: value.end, quote: value.quote, flow };
  return /[|>{[&*!"']/.test(text[from] ?? "") ? { name: name.value, value: "", from, to: -1, quote: "", flow } : null;
}
function ends(text, at) {
  const rest = /[ \t]*(?:[ \t]#[^\r\n]*)?\r?(?=\n|$)/y;
  rest.lastIndex = at;
  return rest.test(text);
}
var heads = { parameters: /^(?:parameters|"parameters"|'parameters')[ \t]*:(?=[ \t\r\n]|$)/gm, secrets: /^(?:secrets|"secrets"|'secrets')[ \t]*:(?=[ \t\r\n]|$)/gm };
function entries(text, part) {
  const [head, more] = [...text.matchAll(heads[part])];
  if (!head) return [];
  if (more || /\n---(?:\s|$)/.test(text.replace(/^(?:[ \t]*(?:#.*)?\r?\n)*---/, ""))) return null;
  const at = head.index + head[0].length;
  const brace = /[ \t]+\{/y;
  brace.lastIndex = at;
  const out = brace.test(text) ? braces(text, brace.lastIndex) : ends(text, at) ? lines(text, at) : null;
  return out && new Set(out.map((p) => p.name)).size === out.length ? out : null;
}
function parameters(text, part = "parameters") {
  return (entries(text, part) ?? []).filter((p) => p.to >= 0);
}
var mask = "******";
function masked(text) {
  const secrets = entries(text, "secrets");
  if (!secrets || secrets.some((p) => p.to < 0)) return null;
  if (secrets.length === 0 && /(?:^|[\s{,?])["']?secrets["']?[ \t]*:(?![ \t]*\{\}[ \t]*$)/m.test(text)) return null;
  for (const [, value] of text.matchAll(/password["']?[ \t]*:[ \t]*([^\r\n]*)/g)) if (value && !/^["']?(<%[ \t]*\$secrets\.|\*{6})/.test(value)) return null;
  return secrets.reduce((out, p) => p.value ? changed(out, p.name, mask, void 0, "secrets") : out, text);
}
function revealed(text, secrets) {
  return Object.entries(secrets).reduce((out, [name, value]) => value ? changed(out, name, value, void 0, "secrets") : out, text);
}
function braces(text, at) {
  const out = [];
  const skip = () => {
    while (text[at] === " " || text[at] === "	") at++;
  };
  for (; ; ) {
    skip();
    if (text[at] === "}") return ends(text, at + 1) ? out : null;
    const p = entry(text, at, true);
    if (!p || p.to < 0) return null;
    out.push(p);
    at = p.to;
    skip();
    if (text[at] === ",") at++;
    else if (text[at] !== "}") return null;
  }
}
function lines(text, at) {
  const out = [];
  let indent = -1;
  for (at = text.indexOf("\n", at) + 1; at > 0 && at < text.length; at = text.indexOf("\n", at) + 1) {
    const [, spaces, rest] = /^( *)([^\r\n]*)/.exec(text.slice(at, (text.indexOf("\n", at) + 1 || text.length + 1) - 1));
    if (/^\s*(#|$)/.test(rest)) continue;
    if (spaces === "") return /^[-\t]/.test(rest) ? null : out;
    if (indent < 0) indent = spaces.length;
    const last = out.at(-1);
    if (spaces.length > indent && last) {
      last.to = -1;
      continue;
    }
    const p = spaces.length === indent ? entry(text, at + indent, false) : null;
    if (!p || p.to >= 0 && !ends(text, p.to)) return null;
    out.push(p);
  }
  return out;
}
function kind(text) {
  if (/^[-+.]?\.?\d|^[-+]?\.(inf|nan)$/i.test(text)) return "number";
  return /^(true|false|yes|no|on|off|y|n|null|~|)$/i.test(text) ? "word" : "text";
}
function written(p, value) {
  const odd = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]/.test(value);
  const single = () => "'" + value.replaceAll("'", "''") + "'";
  if (odd || p.quote === '"') return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  if (p.quote === "'" || value !== value.trim() || kind(value) !== "text" && kind(value) !== kind(p.value) && (p.value !== "" || value === "")) return single();
  const back = plainText(value, 0, p.flow);
  return back && back.value === value ? value : single();
}
function changed(text, name, value, like, part = "parameters") {
  const p = parameters(text, part).find((x) => x.name === name);
  if (!p || p.value === value) return text;
  const space = text[p.from - 1] === ":" ? " " : "";
  return text.slice(0, p.from) + space + written({ ...like ?? p, flow: p.flow }, value) + text.slice(p.to);
}
function filled(text, query) {
  for (const [key2, value] of query) if (key2.startsWith("set.")) text = changed(text, key2.slice(4), value);
  return text;
}

export {
  load,
  parameters,
  mask,
  masked,
  revealed,
  written,
  changed,
  filled
};
