// What was on the page before each change. One line of moments: opening a scenario, Back and an edit are all steps of it.
import type { Moment } from './moment';

const mostMoments = 200;
/** Changes of one field within so long are one step: a drag, a number being typed. */
const oneStepMs = 1000;

export class Undo {
  #past: Moment[] = [];
  #future: Moment[] = [];
  #key = '';
  #last = -Infinity;

  get canUndo(): boolean {
    return this.#past.length > 0;
  }
  get canRedo(): boolean {
    return this.#future.length > 0;
  }

  /** Before a change. `key`: changes of the same one that come soon after each other are one; "": it stands alone. */
  note(before: Moment, key: string, now = performance.now()): void {
    const goesOn = key !== '' && key === this.#key && now - this.#last < oneStepMs;
    this.#key = key;
    this.#last = now;
    this.#future = [];
    if (goesOn) return;
    this.#past = [...this.#past.slice(1 - mostMoments), before];
  }

  /** null: there is nothing before it. */
  undo(now: Moment): Moment | null {
    return this.#move(this.#past, this.#future, now);
  }
  redo(now: Moment): Moment | null {
    return this.#move(this.#future, this.#past, now);
  }

  #move(from: Moment[], to: Moment[], now: Moment): Moment | null {
    const found = from.pop() ?? null;
    if (found) to.push(now);
    this.#key = '';
    return found;
  }
}
