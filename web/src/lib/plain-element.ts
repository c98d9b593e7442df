// Elements without a shadow tree: the page's rules are theirs.
import { LitElement } from 'lit';

export class PlainElement extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    return this;
  }
}

/** Drawn anew whenever the app's state changes. */
export class FollowingElement extends PlainElement {
  declare app: { readonly store: { subscribe(listener: () => void): () => void } };
  #unsubscribe: () => void = () => undefined;

  override connectedCallback(): void {
    super.connectedCallback();
    this.#unsubscribe = this.app.store.subscribe(() => this.requestUpdate());
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#unsubscribe();
  }
}
