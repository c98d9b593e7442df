// The life of the shown run: which document is wanted, what runs, and what is still owed. A pure function of events, so
// that any order of them can be tried (run-life.test.ts); runs.ts has the timers, the engine and the store.
//
//              edited                      rested, or the hand rests already
//   (owed) ------------> coarse in flight ------------------------------------> full in flight ---> answered
//      ^                      | coarse answer of an older document: the newest one runs     |
//      +----------------------+-------------- edited, opened, another document arrives -----+
//
// Promise: once nothing is in flight, nothing is being opened and the hand rests, the wanted document is answered: by a
// certain outcome, a refusal, or a person's cancel ("given_up"); or something that is no run holds it up ("held").

export interface Flight<Doc> {
  readonly run: number;
  readonly document: Doc;
  readonly kind: 'coarse' | 'full';
  /** A person cancelled it: its last message is still heard. */
  readonly given_up: boolean;
}

export interface Life<Doc> {
  /** The newest document: that of the form and of the address. null: none was opened yet. */
  readonly wanted: Doc | null;
  /** A shortened run can be made of it. */
  readonly live: boolean;
  readonly answer: 'owed' | 'certain' | 'refused' | 'given_up' | 'held';
  readonly flight: Flight<Doc> | null;
  /** A link or file that is being read, and will be wanted. null: none. */
  readonly opening: number | null;
  /** While it moves, a timer runs that ends in "rested". */
  readonly hand: 'rests' | 'moves';
  /** Names of flights and openings. */
  readonly count: number;
}

export type RunEvent<Doc> =
  | { readonly kind: 'edited'; readonly document: Doc; readonly live: boolean }
  | { readonly kind: 'now'; readonly document: Doc }
  /** The document cannot run as it is: a text that is no value, a trace that is missing or being read. */
  | { readonly kind: 'held' }
  | { readonly kind: 'rested' }
  | { readonly kind: 'opening' }
  | { readonly kind: 'cancel' }
  | { readonly kind: Arrival; readonly run: number };

/** What the engine says of a flight. */
export type Arrival = 'accepted' | 'partial' | 'coarse' | 'refused' | 'finished' | 'cancelled';

export type Effect =
  /** Begin life.flight; whatever ran is superseded. */
  | 'start'
  /** Cancel what runs. */
  | 'cancel'
  | 'start timer'
  | 'stop timer'
  /** The wanted document is answered. */
  | 'ended'
  /** Nothing is opened after all: the address is of the wanted document again. */
  | 'kept';

export type Next<Doc> = readonly [Life<Doc>, readonly Effect[]];

export function newLife<Doc>(): Life<Doc> {
  return { wanted: null, live: false, answer: 'held', flight: null, opening: null, hand: 'rests', count: 0 };
}

/** Nothing will happen by itself. */
export function isAtRest({ flight, opening, hand }: Life<unknown>): boolean {
  return flight === null && opening === null && hand === 'rests';
}

export function step<Doc>(life: Life<Doc>, event: RunEvent<Doc>): Next<Doc> {
  const { flight } = life;
  switch (event.kind) {
    case 'edited': {
      const { document: wanted, live } = event;
      const next: Life<Doc> = { ...life, wanted, live, answer: 'owed', opening: null, hand: 'moves' };
      // A short run is waited for. A long one makes room if something quicker can be said.
      const waits = flight && !flight.given_up && (flight.kind === 'coarse' || !live);
      return waits ? [next, ['start timer']] : begin(next, live ? 'coarse' : 'full', ['start timer']);
    }
    case 'now':
      return begin({ ...life, wanted: event.document, opening: null, hand: 'rests' }, 'full', ['stop timer']);
    case 'held':
      return [{ ...dropped(life), answer: 'held', opening: null }, dropping(life)];
    case 'opening':
      return [{ ...dropped(life), opening: life.count + 1, count: life.count + 1 }, dropping(life)];
    case 'rested': {
      const next: Life<Doc> = { ...life, hand: 'rests' };
      const runs = flight && (flight.kind === 'coarse' || flight.document === life.wanted);
      return next.answer !== 'owed' || next.opening !== null || runs ? [next, []] : begin(next, 'full');
    }
    case 'cancel':
      if (life.opening !== null) return goOn({ ...life, opening: null }, life.wanted, ['kept']);
      if (!flight || flight.given_up) return [life, []];
      return [
        { ...life, flight: { ...flight, given_up: true }, answer: 'given_up', hand: 'rests' },
        ['stop timer', 'cancel'],
      ];
    default:
      return flight?.run === event.run ? arrived(life, flight, event.kind) : [life, []];
  }
}

function arrived<Doc>(life: Life<Doc>, flight: Flight<Doc>, arrival: Arrival): Next<Doc> {
  const ofWanted = flight.document === life.wanted;
  const landed: Life<Doc> = { ...life, flight: null };
  switch (arrival) {
    case 'accepted':
      return [{ ...life, flight: { ...flight, kind: 'full' } }, []];
    case 'partial':
      return ofWanted || life.answer !== 'owed' ? [life, []] : begin(life, 'full');
    case 'coarse':
      return life.answer === 'owed' ? goOn(landed, flight.document) : [landed, ['ended']];
    case 'refused':
    case 'finished':
    case 'cancelled': {
      if (!ofWanted && life.answer === 'owed') return goOn(landed, flight.document);
      const answers = { refused: 'refused', finished: 'certain', cancelled: 'given_up' } as const;
      const answer = ofWanted ? answers[arrival] : life.answer;
      return [{ ...landed, answer, hand: 'rests' }, ['stop timer', 'ended']];
    }
  }
}

/** After a flight with `last` has landed without the answer that is owed. */
function goOn<Doc>(life: Life<Doc>, last: Doc | null, effects: readonly Effect[] = []): Next<Doc> {
  if (life.answer !== 'owed') return [life, effects];
  if (last !== life.wanted) return begin(life, life.live ? 'coarse' : 'full', effects);
  return life.hand === 'rests' ? begin(life, 'full', effects) : [life, effects];
}

function begin<Doc>(life: Life<Doc>, kind: Flight<Doc>['kind'], effects: readonly Effect[] = []): Next<Doc> {
  if (life.wanted === null) return [life, effects];
  const run = life.count + 1;
  const flight = { run, document: life.wanted, kind, given_up: false };
  return [{ ...life, answer: 'owed', flight, count: run }, [...effects, 'start']];
}

function dropped<Doc>(life: Life<Doc>): Life<Doc> {
  return { ...life, flight: null, hand: 'rests' };
}

function dropping({ flight }: Life<unknown>): readonly Effect[] {
  return flight ? ['stop timer', 'cancel'] : ['stop timer'];
}
