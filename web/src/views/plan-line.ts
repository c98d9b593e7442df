// A question of capacity on the board: asked and answered in one line, which opens to what the answer rests on.
import { html, nothing, type TemplateResult } from 'lit';
import type { PlanQuestion } from 'servecast';

export type LineName = PlanQuestion | 'search';

/** Open lines stay open until the page is left. */
const open = new Set<LineName>(['max-rate']);

export const isOpen = (name: LineName): boolean => open.has(name);

export function setOpen(name: LineName, on: boolean): void {
  if (on) open.add(name);
  else open.delete(name);
}

export interface Line {
  readonly name: LineName;
  readonly label: string;
  /** The question, with its blanks. */
  readonly asked: TemplateResult;
  /** How far it is, and the figure. */
  readonly said: TemplateResult;
  /** null: there is nothing to open. */
  readonly body: TemplateResult | null;
  readonly changed: () => void;
}

const ownClicks = 'a, button, input, label, select';

export function renderLine({ name, label, asked, said, body, changed }: Line): TemplateResult {
  const shows = body !== null && isOpen(name);
  const turn = () => {
    if (body === null) return;
    setOpen(name, !isOpen(name));
    changed();
  };
  const clicked = ({ target }: Event) => {
    if (!(target as Element).closest(ownClicks) && getSelection()?.isCollapsed !== false) turn();
  };
  return html`<section class="plan" id="plan-${name}" aria-label=${label}>
    <div class="plan-line ${body === null ? '' : 'opens'}" @click=${clicked}>
      <button class="fold" type="button" ?disabled=${body === null} aria-expanded=${shows} aria-controls=${shows ? `plan-${name}-body` : nothing} aria-label=${`${label}: what it rests on`} @click=${turn}>
        <svg viewBox="0 0 8 8" aria-hidden="true"><path d="M2 0.5 6 4 2 7.5z" /></svg>
      </button>
      <h3 class="question">${asked}</h3>
      <div class="plan-said">${said}</div>
    </div>
    ${shows ? html`<div class="plan-body" id="plan-${name}-body">${body}</div>` : nothing}
  </section>`;
}
