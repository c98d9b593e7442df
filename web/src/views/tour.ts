// Three sentences for a first visit, in a corner, until they are dismissed. Fetched for those who have not seen them.
import { html, render } from 'lit';
import { addStyles } from '../lib/part';
import styles from '../styles/tour.css?inline';

const steps = [
  'Drag the rate, or choose another model or GPU: the answer at the top follows while you drag.',
  'Where a target is missed, changes that bring it are tried below the answer. “Why” says where the time goes.',
  'The address bar holds all of it: copy the link, and who opens it sees the same numbers. Drop a trace or a scenario anywhere; it stays on this machine.',
];

export function showTour(seen: () => void): void {
  addStyles(styles);
  const host = document.createElement('aside');
  host.className = 'tour';
  host.setAttribute('aria-label', 'A short tour');
  document.body.append(host);
  const show = (step: number) => {
    const last = step === steps.length - 1;
    render(
      html`<p><b>${step + 1} of ${steps.length}</b> ${steps[step]}</p>
        <div class="button-row">
          ${last ? null : html`<button class="primary" type="button" @click=${() => show(step + 1)}>Next</button>`}
          <button class=${last ? 'primary' : ''} type="button" @click=${dismiss}>${last ? 'Done' : 'Dismiss'}</button>
        </div>`,
      host,
    );
  };
  const dismiss = () => {
    seen();
    host.remove();
  };
  show(0);
}
