// Parts of the page that few open, or that a first verdict does not need, are fetched when they are first shown and that
// is there, from where the page came.
let mayFetch: Promise<void> = Promise.resolve();
/** No part is fetched before. */
export function holdParts(until: Promise<void>): void {
  mayFetch = until;
}

/** `tag` is the part's element; the style sheet says what stands in its place until then, or if it cannot be had. */
export function needPart(tag: string, load: () => Promise<unknown>): void {
  if (customElements.get(tag)) return;
  const root = document.documentElement.classList;
  mayFetch.then(load).then(
    () => root.remove('without-parts'),
    () => root.add('without-parts'),
  );
}

/** The part's own rules: adopted, as the policy allows no style elements. */
export function addStyles(text: string): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets.push(sheet);
}
