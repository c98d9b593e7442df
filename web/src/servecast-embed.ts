// <servecast-embed scenario="p=...">: a live forecast in any page. What the author wrote inside, a sentence with a link, stands
// there until the frame can be seen and answers, and stays when it does not. A file of its own, of at most 2 KB gzip.
const options = ['ui', 'metric', 'autorun', 'theme', 'lock', 'knobs'];
// A classic script, which another site may use without CORS; its own place is where embed.html is. In a bundle, embed.html
// is where the link's page is.
const { currentScript } = document;
const ours = currentScript instanceof HTMLScriptElement && currentScript.src;
const mostHeight = 4000;
const patienceMs = 20_000;
const turnMs = 10_000;

// Elements whose engines wait, and the one whose turn it is: engines of one page start one after the other.
const waiting = new Set<ServecastEmbed>();
let running: ServecastEmbed | undefined;
let turn: ReturnType<typeof setTimeout> | undefined;

function next(): void {
  clearTimeout(turn);
  [running] = waiting;
  if (!running) return;
  waiting.delete(running);
  running.start();
  turn = setTimeout(next, turnMs);
}

class ServecastEmbed extends HTMLElement {
  static observedAttributes = ['scenario', ...options];
  #frame: HTMLIFrameElement | null = null;
  #seen: IntersectionObserver | null = null;
  #patience: ReturnType<typeof setTimeout> | undefined;
  #isReady = false;
  /** Set before the frame could hear it. */
  #early: Record<string, number | string | boolean> = {};

  connectedCallback(): void {
    if (!this.shadowRoot) {
      const root = this.attachShadow({ mode: 'open' });
      // Not by an attribute: a page's policy may forbid it, and the page's own styles come first.
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(':host{display:block}:host([hidden]){display:none}');
      root.adoptedStyleSheets = [sheet];
      root.append(document.createElement('slot'));
    }
    addEventListener('message', this);
    this.#seen = new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && this.#show(), {
      rootMargin: '200px',
    });
    this.#seen.observe(this);
  }

  disconnectedCallback(): void {
    removeEventListener('message', this);
    this.#seen?.disconnect();
    this.#drop();
  }

  attributeChangedCallback(): void {
    // Not by its src: each change would be a step of the page's Back.
    this.#isReady = false;
    this.#frame?.contentWindow?.location.replace(this.#address());
  }

  /** Changes settings, by path: {'workload.arrivals.rate_per_s': 12}. The frame has them once it is there. */
  set(values: Record<string, number | string | boolean>): void {
    if (this.#isReady) this.#tell({ values });
    else Object.assign(this.#early, values);
  }

  get #home(): URL {
    return new URL('.', new URL(ours || this.#link.replace(/#.*/, ''), location.href));
  }

  get #link(): string {
    return this.getAttribute('scenario') ?? '';
  }

  #address(): string {
    const link = this.#link.replace(/^.*?#/, '');
    const said = options.flatMap((name) =>
      this.hasAttribute(name) ? `${name}=${encodeURIComponent(this.getAttribute(name) ?? '')}` : [],
    );
    return `${this.#home.href}embed.html#${[link, ...said].filter(Boolean).join('&')}`;
  }

  /** Its frame may start its engine. */
  start(): void {
    this.#tell({ kind: 'turn' });
  }

  #tell(what: object): void {
    this.#frame?.contentWindow?.postMessage({ type: 'servecast', v: 1, kind: 'set', ...what }, this.#home.origin);
  }

  #show(): void {
    this.#seen?.disconnect();
    if (this.#frame) return;
    const frame = document.createElement('iframe');
    frame.title = this.title || 'Servecast forecast';
    // So it asks for its turn.
    frame.name = 'servecast-turn';
    frame.style.cssText = 'border:0;width:100%;height:0;display:block';
    frame.src = this.#address();
    this.#frame = frame;
    this.shadowRoot?.append(frame);
    this.#patience = setTimeout(() => this.#drop(), patienceMs);
  }

  #drop(): void {
    clearTimeout(this.#patience);
    this.#frame?.remove();
    this.#frame = null;
    this.#isReady = false;
    waiting.delete(this);
    if (running === this) next();
    const slot = this.shadowRoot?.querySelector('slot');
    if (slot) slot.hidden = false;
  }

  handleEvent({ source, origin, data }: MessageEvent): void {
    const frame = this.#frame;
    if (!frame || source !== frame.contentWindow || origin !== this.#home.origin) return;
    if (data?.type !== 'servecast' || data.v !== 1) return;
    if (data.kind === 'ready') {
      clearTimeout(this.#patience);
      this.#isReady = true;
      this.#tell({ values: this.#early });
      this.#early = {};
    }
    if (data.kind === 'resize' && data.height > 0) {
      frame.style.height = `${Math.min(Number(data.height) || 0, mostHeight)}px`;
      const slot = this.shadowRoot?.querySelector('slot');
      if (slot) slot.hidden = true;
    }
    if (data.kind === 'turn') waiting.add(this);
    // It has its answer; or, where its frame asks anew, another scenario.
    if (running ? running === this && /turn|result|error/.test(data.kind) : data.kind === 'turn') next();
    this.dispatchEvent(new CustomEvent('servecast', { detail: data }));
  }
}

if (!customElements.get('servecast-embed')) customElements.define('servecast-embed', ServecastEmbed);

export {};
