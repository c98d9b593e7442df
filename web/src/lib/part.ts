// Parts of the page that few open are fetched when they are first shown, from where the page came.
/** `tag` is the part's element; the style sheet says what stands in its place until then, or if it cannot be had. */
export function needPart(tag: string, load: () => Promise<unknown>): void {
  if (customElements.get(tag)) return;
  const root = document.documentElement.classList;
  load().then(
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
