// Random orders of events on a model of the page: who edits, goes through the history, cancels, and an engine that
// answers whenever it likes, late ones of superseded runs too. At rest the page shows the certain answer of its address.
import { describe, expect, it } from 'vitest';
import { isAtRest, newLife, step, type Arrival, type Life, type RunEvent } from './run-life';

interface Doc {
  readonly name: number;
  readonly live: boolean;
  /** The engine has no answer to it. */
  readonly bad: boolean;
}

/** A linear congruential generator: the same sequences on every machine. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

class ModelPage {
  life: Life<Doc> = newLife();
  shown: { doc: Doc; certain: boolean } | null = null;
  address: Doc | null = null;
  timer = false;
  /** What the person did last: that alone may leave a document without its answer. */
  last: 'asked' | 'cancelled' | 'held' = 'held';
  /** And before the link that is being read. */
  lastBefore = this.last;
  ended = 0;
  readonly started: { run: number; doc: Doc; cancelled: boolean; said: Arrival[] }[] = [];
  readonly openings: { id: number; doc: Doc }[] = [];
  readonly docs: Doc[] = [];
  readonly random: (below: number) => number;

  constructor(seed: number) {
    this.random = randomOf(seed);
  }

  send(event: RunEvent<Doc>): void {
    const [life, effects] = step(this.life, event);
    this.life = life;
    for (const effect of effects) {
      const { flight, wanted } = life;
      if (effect === 'start' && flight)
        this.started.push({ run: flight.run, doc: flight.document, cancelled: false, said: [] });
      if (effect === 'cancel') this.started.at(-1)!.cancelled = true;
      if (effect === 'start timer') this.timer = true;
      if (effect === 'stop timer') this.timer = false;
      if (effect === 'kept') this.address = wanted;
      if (effect === 'ended') this.ended += 1;
    }
  }

  doc(): Doc {
    const doc = { name: this.docs.length, live: this.random(4) > 0, bad: this.random(8) === 0 };
    this.docs.push(doc);
    return doc;
  }

  edit(document: Doc): void {
    this.last = 'asked';
    this.address = document;
    this.send({ kind: 'edited', document, live: document.live });
  }

  open(document: Doc): void {
    if (this.life.opening === null) this.lastBefore = this.last;
    this.last = 'asked';
    this.address = document;
    this.send({ kind: 'opening' });
    this.openings.push({ id: this.life.opening!, doc: document });
  }

  /** A link is read: only what is still awaited is opened. */
  read(index: number): void {
    const [opening] = this.openings.splice(index, 1);
    if (opening && this.life.opening === opening.id) this.send({ kind: 'now', document: opening.doc });
  }

  /** A message of a run, which a newer one may have superseded. */
  hear(run: (typeof this.started)[number], kind: Arrival): void {
    run.said.push(kind);
    if (this.life.flight?.run === run.run) {
      if (kind === 'coarse') this.shown = { doc: run.doc, certain: false };
      if (kind === 'finished') this.shown = { doc: run.doc, certain: true };
      if (kind === 'refused' && run.doc === this.life.wanted) this.shown = null;
    }
    this.send({ kind, run: run.run });
  }

  /** What an engine might say next of a run; a second module is "accepted", then anything. */
  answer(run: (typeof this.started)[number]): void {
    const { doc, cancelled, said } = run;
    const over = said.some((kind) => kind !== 'accepted' && kind !== 'partial');
    if (over) return;
    const fromFull = this.life.flight?.kind === 'full' && !said.includes('accepted');
    // Only a run that was asked to be is coarse.
    const kinds: readonly Arrival[] =
      doc.live && !fromFull ? ['accepted', 'partial', 'coarse', 'finished'] : ['accepted', 'partial', 'finished'];
    const kind = kinds[this.random(kinds.length)] ?? 'finished';
    this.hear(run, cancelled && this.random(2) === 0 ? 'cancelled' : doc.bad ? 'refused' : kind);
  }

  act(): void {
    const pick = this.random(16);
    const some = this.docs[this.random(this.docs.length)];
    if (pick < 4) this.edit(this.doc());
    else if (pick === 4 && some)
      this.edit(some); // undo, redo, Back
    else if (pick < 7) this.open(some && this.random(2) === 0 ? some : this.doc());
    else if (pick === 7) this.read(this.random(Math.max(1, this.openings.length)));
    else if (pick === 8 && this.timer) this.rest();
    else if (pick === 9) {
      const { flight, opening } = this.life;
      if (opening !== null) this.last = this.lastBefore;
      else if (flight) this.last = 'cancelled';
      this.send({ kind: 'cancel' });
    } else if (pick === 10) {
      if (this.random(3) > 0) return;
      this.last = 'held';
      this.address = this.life.wanted;
      this.send({ kind: 'held' });
    } else {
      const late = this.started[Math.max(0, this.started.length - 1 - this.random(3))];
      if (late) this.answer(late);
    }
  }

  rest(): void {
    this.timer = false;
    this.send({ kind: 'rested' });
  }

  /** Nobody does anything: the engine, the timer and the links come to their ends. */
  idle(): void {
    for (let round = 0; round < 500 && !isAtRest(this.life); round += 1) {
      const turn = this.random(3);
      const run = this.started.at(-1);
      if (turn === 0 && this.timer) this.rest();
      else if (turn === 1 && this.openings.length > 0) this.read(this.random(this.openings.length));
      else if (run) this.answer(run);
    }
  }

  /** What is not as it should be, at rest; "": nothing. */
  wrong(): string {
    const { life, shown, last } = this;
    const { wanted, answer } = life;
    if (!isAtRest(life)) return 'it does not come to rest';
    if (this.timer) return 'a timer is left';
    if (wanted === null) return '';
    if (this.address !== wanted) return 'the address is of another document';
    // A cancel that came when the answer was there already changes nothing.
    if (last !== 'asked' && answer === (last === 'held' ? 'held' : 'given_up')) return '';
    if (answer !== (wanted.bad ? 'refused' : 'certain')) return `${answer} after ${last}`;
    if (last === 'held') return '';
    return wanted.bad || (shown?.doc === wanted && shown.certain) ? '' : 'what is shown is no certain answer of it';
  }
}

describe('the life of a run', () => {
  it('AtRest_ThePageShowsTheCertainAnswerOfItsAddress', { timeout: 120_000 }, () => {
    const seen = { certain: 0, refused: 0, given_up: 0, held: 0, owed: 0 };
    for (let seed = 1; seed <= 10_000; seed += 1) {
      const page = new ModelPage(seed);
      for (let left = 1 + page.random(40); left > 0; left -= 1) page.act();
      page.idle();
      seen[page.life.answer] += 1;
      const wrong = page.wrong();
      if (wrong !== '') expect.fail(`sequence ${seed}: ${wrong}`);
    }
    for (const kind of ['certain', 'refused', 'given_up', 'held'] as const)
      expect(seen[kind], `some sequences end ${kind}`).toBeGreaterThan(50);
  });

  const first = { name: 1, live: true, bad: false };
  const second = { name: 2, live: true, bad: false };
  const run = (page: ModelPage) => page.started.at(-1)!;

  it('Coarse_AfterAccepted_AsOfASecondModule_IsFollowedByTheCertainRun', () => {
    const page = new ModelPage(1);
    page.edit(first);
    page.hear(run(page), 'accepted');
    page.rest();
    page.hear(run(page), 'coarse');
    expect(page.life.flight).toMatchObject({ kind: 'full', document: first });
    page.hear(run(page), 'finished');
    expect(page.life.answer).toBe('certain');
  });

  it('Refusal_OfAnOlderDocument_LeavesTheTimerToTheNewest', () => {
    const page = new ModelPage(1);
    page.edit(first);
    page.edit(second);
    page.hear(run(page), 'refused');
    page.hear(run(page), 'coarse');
    expect(page.timer).toBe(true);
    page.rest();
    expect(page.life.flight).toMatchObject({ kind: 'full', document: second });
  });

  it('Link_ReadLate_AfterANewerOne_IsNotOpened', () => {
    const page = new ModelPage(1);
    page.open(first);
    page.open(second);
    page.read(0);
    expect(page.life).toMatchObject({ wanted: null, flight: null });
    page.read(0);
    expect(page.life.flight).toMatchObject({ document: second });
  });
});
