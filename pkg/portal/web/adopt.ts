// Style sheets of libraries. The content security policy forbids style elements, but not sheets that a script adopts.

/** Adds rules to the document. */
export function adopt(rules: CSSStyleSheet): void {
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, rules];
}

/** Adds the style sheet of a library. */
export function adoptText(text: string): void {
  const rules = new CSSStyleSheet();
  rules.replaceSync(text);
  adopt(rules);
}
