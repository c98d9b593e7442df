// The scenario under other values of one of its settings, each run with the same requests; and a whole other
// scenario on the requests of this one. Loaded when a comparison is first opened.
import type { Issue, Report } from 'servecast';
import type { Engine } from '../engine/client';
import type { Outcome } from '../engine/protocol';
import {
  equalJson,
  getAt,
  isObject,
  lastOf,
  needsTrace,
  removeAt,
  segmentsOf,
  setAt,
  type Document,
  type Json,
} from './document';
import {
  assign,
  explainedChoices,
  isPoolOwn,
  placedFields,
  valueInForce,
  type FormSource,
  type PlacedField,
} from './fields';
import { enginePlace, engineVariants, scenarioUnder } from './engines';
import { fewestInWords, findFewest, hasFewest, withFewest, type Fewest } from './fewest';
import { splitsOf } from './pool-edits';
import { poolList, poolsInWords, poolsOf, replicasOf } from './pools';
import type { Plans } from './plans';
import { reportOf, type Beside, type Store, type Variant } from './store';

/** What changes how requests are served, not which ones there are. */
const sections = ['hardware', 'model', 'engine', 'scheduler', 'cluster', 'latency'];

/** What belongs to the question, not to the server that answers it. */
const asked = ['workload', 'seed', 'slo', 'measure'] as const;

/** What was measured, or assumed, of a GPU or an engine: nobody chooses among these. */
const findings = /\/(auto_backend|operators|compared_as|nodes_assumed)$/;

/** Numbers that planners vary, and by which factors. */
const ladders: readonly (readonly [RegExp, readonly number[]])[] = [
  [/^\/cluster\/pools\/\d+\/tensor_parallel$/, [0.25, 0.5, 1, 2, 4]],
  [/^\/cluster\/pools\/\d+\/replicas$/, [0.5, 1, 2, 3, 4]],
  [/^\/workload\/arrivals\/rate_per_s$/, [0.5, 0.75, 1, 1.25, 1.5, 2]],
  [/^\/engine\/max_num_(seqs|batched_tokens)$/, [0.25, 0.5, 1, 2, 4]],
  [/^\/workload\/(prompt|output)_tokens\/(value|mean|median)$/, [0.25, 0.5, 1, 2, 4]],
];

/** Of speculative decoding, one by one; 0: without. */
const drafts = '/engine/speculative/num_speculative_tokens';
const counts = [0, 1, 2, 3, 4, 5, 6, 7, 8];

function factorsOf(pointer: string): readonly number[] | undefined {
  return ladders.find(([pattern]) => pattern.test(pointer))?.[1];
}

export const isLadder = (pointer: string): boolean => pointer === drafts || factorsOf(pointer) !== undefined;

function ladderFields(source: FormSource): readonly PlacedField[] {
  const rank = (placed: PlacedField) => ladders.findIndex(([pattern]) => pattern.test(placed.pointer));
  return placedFields(source, (path) => /^\/(cluster|workload|engine)\//.test(path))
    .filter((placed) => isLadder(placed.pointer) && ladderOf(source, placed).length > 1)
    .sort((a, b) => rank(a) - rank(b));
}

/** Ascending, the value in force among them. */
function ladderOf(source: FormSource, { field, pointer }: PlacedField): readonly number[] {
  const current = valueInForce(source, { field, pointer });
  if (typeof current !== 'number' || current <= 0) return [];
  if (pointer === drafts) return drafted(source) ? [...new Set([...counts, current])].sort((a, b) => a - b) : [];
  const whole = field.type === 'integer';
  const values = (factorsOf(pointer) ?? []).map((factor) => {
    const value = current * factor;
    return factor === 1 ? current : whole ? Math.round(value) : Number(value.toPrecision(3));
  });
  const allowed = (value: number) => value > 0 && value >= (field.minimum ?? 0) && value <= (field.maximum ?? Infinity);
  // A group of GPUs has a power of two of them: others do not divide the heads of attention.
  const possible = (value: number) =>
    !pointer.endsWith('tensor_parallel') || value === current || Number.isInteger(Math.log2(value));
  return [...new Set(values)].filter((value) => allowed(value) && possible(value)).sort((a, b) => a - b);
}

/** Choices and switches with more than one value, in the order of the catalogue, hardware first. */
function comparableFields(source: FormSource): readonly PlacedField[] {
  const rank = (placed: PlacedField) => sections.indexOf(segmentsOf(placed.pointer)[0] ?? '');
  const several = poolsOf(source).length > 1;
  return (
    placedFields(source, (path) => sections.includes(segmentsOf(path)[0] ?? ''))
      .filter(
        (placed) =>
          valuesOf(placed).length > 1 && placed.field.path !== `${poolList}/-/role` && !findings.test(placed.pointer),
      )
      // Of what a pool may have of its own, its GPU.
      .filter(({ pointer }) => !isPoolOwn(pointer) || (several && pointer.endsWith('/hardware/preset')))
      .sort((a, b) => rank(a) - rank(b))
  );
}

/** Where the settings stand, by which variants are made; the list of pools stands for how replicas are split, the
    section of the engine for which engine it is. */
export function comparablePointers(source: FormSource): readonly string[] {
  const [gpu, ...rest] = comparableFields(source).map(({ pointer }) => pointer);
  const engines = engineVariants(source).length > 0 ? [enginePlace] : [];
  const pools = splitVariants(source).length > 0 ? [poolList] : [];
  const numbers = ladderFields(source).map(({ pointer }) => pointer);
  return gpu === undefined ? [...engines, ...numbers, ...pools] : [gpu, ...engines, ...numbers, ...pools, ...rest];
}

function valuesOf({ field }: PlacedField): readonly Json[] {
  return field.type === 'boolean' ? [false, true] : field.type === 'choice' ? field.choices : [];
}

/** Numbers ascend, else the value in force is first; none when the scenario has no such setting. */
export function variantsOf(source: FormSource, pointer: string): readonly Variant[] {
  if (pointer === poolList) return splitVariants(source);
  if (pointer === enginePlace) return engineVariants(source);
  if (isLadder(pointer)) return ladderVariants(source, pointer);
  const placed = comparableFields(source).find((each) => each.pointer === pointer);
  if (!placed) return [];
  const current = valueInForce(source, placed);
  const names = explainedChoices(source.catalog, placed);
  return valuesOf(placed)
    .map((value) => {
      const isCurrent = value === current;
      const name =
        names.find(({ id }) => id === value)?.name ??
        (typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value));
      const document = isCurrent ? source.document : assign(source, placed.pointer, value);
      return { name, isCurrent, document, report: null, issues: [] };
    })
    .sort((a, b) => Number(b.isCurrent) - Number(a.isCurrent));
}

function ladderVariants(source: FormSource, pointer: string): readonly Variant[] {
  const placed = ladderFields(source).find((each) => each.pointer === pointer);
  if (!placed) return [];
  const current = valueInForce(source, placed);
  return ladderOf(source, placed).map((value) => ({
    name: value.toLocaleString('en-US', { maximumFractionDigits: 6 }),
    isCurrent: value === current,
    document: value === current ? source.document : withNumber(source, pointer, value, current),
    report: null,
    issues: [],
  }));
}

function drafted(source: FormSource): boolean {
  const pointer = '/engine/speculative/method';
  const [placed] = placedFields(source, (path) => path === pointer);
  return placed !== undefined && valueInForce(source, placed) !== 'none';
}

/** Where a mean length is said, each draft stays as likely to be accepted as it was. */
function withNumber(source: FormSource, pointer: string, value: number, former: Json | undefined): Document {
  if (pointer !== drafts) return assign(source, pointer, value);
  if (value === 0) return assign(source, '/engine/speculative/method', 'none');
  const document = assign(source, pointer, value);
  const lengthAt = '/engine/speculative/acceptance_length';
  const [placed] = placedFields(source, (path) => path === lengthAt);
  const length = placed && valueInForce(source, placed);
  if (typeof length !== 'number' || typeof former !== 'number') return document;
  const scaled = lengthOf(rateOf(length, former), value);
  return assign({ ...source, document }, lengthAt, Number(scaled.toPrecision(6)));
}

/** Tokens of a step with so many drafts, each as likely as the one before it. */
function lengthOf(rate: number, count: number): number {
  let length = 1;
  for (let place = 1; place <= count; ++place) length += rate ** place;
  return length;
}

function rateOf(length: number, count: number): number {
  let [low, high] = [0, 1];
  for (let i = 0; i < 50; ++i) {
    const middle = (low + high) / 2;
    if (lengthOf(middle, count) < length) low = middle;
    else high = middle;
  }
  return high;
}

const isGpu = (pointer: string): boolean => pointer.endsWith('/hardware/preset');

/** The fewest of each GPU are to be found; of the one in force, too, beside the scenario as it is, where there are several. */
function withSought(source: FormSource, variants: readonly Variant[]): readonly Variant[] {
  const [pool = {}] = poolsOf(source);
  const isOne = (pool['tensor_parallel'] ?? 1) === 1 && replicasOf(pool) === 1;
  return variants.flatMap((variant) => {
    const sought = { ...variant, isCurrent: false, isSought: true };
    if (!variant.isCurrent) return [sought];
    return isOne ? [variant] : [variant, { ...sought, name: `${variant.name}, fewest` }];
  });
}

function asFound(document: Document, found: Fewest): Partial<Variant> {
  return { isSought: false, document: withFewest(document, found), adapted: fewestInWords(found) };
}

/** The scenario on as many GPUs a replica as its model takes, where it is refused for fewer. */
function withEnoughGpus(document: Document, unfit: Report['unfit']): Partial<Variant> | null {
  const enough = unfit?.enough_tensor_parallel;
  if (!unfit || enough === undefined || enough === unfit.tensor_parallel) return null;
  const pools = poolsOf({ document, resolved: null });
  const index = Math.max(
    0,
    pools.findIndex((pool, at) => pool['name'] === unfit.pool || `${at}` === unfit.pool),
  );
  const changed = pools.map((pool, at) => (at === index ? { ...pool, tensor_parallel: enough } : pool));
  return {
    document: setAt(document, poolList, changed),
    adapted: `needs ${enough} GPUs each: tensor parallel ${enough} instead of ${unfit.tensor_parallel}`,
  };
}

/** Of two documents, where they differ: pointers with both values. */
export function differences(
  a: Json | undefined,
  b: Json | undefined,
  pointer = '',
): readonly { readonly pointer: string; readonly a: Json | undefined; readonly b: Json | undefined }[] {
  if (a !== undefined && b !== undefined && equalJson(a, b)) return [];
  if ((isObject(a) || isObject(b)) && [a, b].every((each) => each === undefined || each === null || isObject(each))) {
    const [ofA, ofB] = [isObject(a) ? a : {}, isObject(b) ? b : {}];
    const names = [...new Set([...Object.keys(ofA), ...Object.keys(ofB)])].filter(
      (name) => pointer !== '' || !/^(name|description)$/.test(name),
    );
    return names.flatMap((name) => differences(ofA[name], ofB[name], `${pointer}/${name}`));
  }
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.some(isObject))
    return a.flatMap((item: Json, index) => differences(item, (b as readonly Json[])[index], `${pointer}/${index}`));
  return a === b ? [] : [{ pointer, a, b }];
}

/** Another scenario's server with the requests, the seed and the targets of this one. */
export function onTheSameRequests(other: Document, own: Document): Document {
  return asked.reduce((document, section) => {
    const value = getAt(own, `/${section}`);
    return value === undefined ? removeAt(document, `/${section}`) : setAt(document, `/${section}`, value);
  }, other);
}

function splitVariants(source: FormSource): readonly Variant[] {
  const name = poolsInWords(poolsOf(source));
  const others = splitsOf(source).filter((split) => split.name !== name);
  if (others.length === 0) return [];
  return [{ name, document: source.document }, ...others].map((each, index) => ({
    ...each,
    isCurrent: index === 0,
    report: null,
    issues: [],
  }));
}

/** Runs the variants, and the other scenario, one after the other, beside what the page shows. */
export class Comparison {
  readonly #engine: Engine;
  readonly #store: Store;
  readonly #plans: () => Promise<Plans>;
  readonly #bandOf: (document: Document) => Promise<Report | null>;
  #pointer = '';
  /** What a GPU is compared by is a decision: what it takes to keep the targets. */
  #fewest = true;
  readonly #seeks = new Set<() => void>();
  #isRunning = false;
  #turn = 0;
  /** The scenario that was set aside to be compared with, as it was. */
  #kept: { readonly name: string; readonly document: Document } | null = null;
  #with: string | null = null;

  constructor(
    engine: Engine,
    store: Store,
    plans: () => Promise<Plans>,
    bandOf: (document: Document) => Promise<Report | null>,
  ) {
    this.#engine = engine;
    this.#store = store;
    this.#plans = plans;
    this.#bandOf = bandOf;
  }

  get kept(): string | null {
    return this.#kept?.name ?? null;
  }

  /** "" ends it. */
  by(pointer: string, source: FormSource | null): void {
    this.#pointer = pointer;
    this.refresh(source);
  }

  byFewest(on: boolean, source: FormSource | null): void {
    this.#fewest = on;
    this.refresh(source);
  }

  /** A scenario, to be compared with what is on the page from now on. */
  keep(document: Document, name: string, source: FormSource): void {
    this.#kept = { name, document };
    this.with('', source);
  }

  /** "": the kept one; an engine's place; else a preset's id; null ends it. */
  with(other: string | null, source: FormSource | null): void {
    this.#with = other;
    this.refresh(source);
  }

  /** The shown run begins: it has the engine for itself. */
  halt(): void {
    if (this.#pointer === '' && this.#with === null) return;
    this.#turn += 1;
    this.#isRunning = false;
    for (const stop of this.#seeks) stop();
    this.#seeks.clear();
    this.#engine.cancel('beside');
  }

  /** Starts anew, unless the shown run is under way; to be called again when that has ended. */
  refresh(source: FormSource | null): void {
    const { compared, beside } = this.#store.state;
    if (this.#pointer === '' && this.#with === null && !compared && !beside) return;
    this.halt();
    const turn = ++this.#turn;
    const fewest = source && isGpu(this.#pointer) && hasFewest(source.document, source.resolved) ? this.#fewest : null;
    const listed = source && this.#pointer !== '' ? variantsOf(source, this.#pointer) : [];
    const made = source && fewest ? withSought(source, listed) : listed;
    const { shown } = this.#store.state;
    const report = shown?.completeness === 'final' ? reportOf(shown) : null;
    const isBanded = shown?.banded !== undefined;
    const variants = made.map((variant) => (variant.isCurrent ? { ...variant, report, isBanded } : variant));
    const other = source && this.#other(source);
    const same = other && beside?.outcome && equalJson(beside.document, other.document);
    this.#store.update({
      compared: this.#pointer === '' ? null : { pointer: this.#pointer, fewest, variants },
      beside: same ? { ...beside, ...other, outcome: beside.outcome } : other,
    });
    if (this.#store.state.run.kind !== 'idle') return;
    this.#bandCurrent(turn, variants);
    this.#runNext(turn);
    if (fewest) void this.#seek(turn);
  }

  /** Asks for the fewest GPUs of each variant; one that is found is run as all others are. */
  async #seek(turn: number): Promise<void> {
    const plans = await this.#plans();
    if (turn !== this.#turn) return;
    this.#store.state.compared?.variants.forEach(({ isSought, document }, index) => {
      if (!isSought) return;
      const stop = findFewest(plans, document, this.#engine.traceFile, (found, issues) => {
        this.#seeks.delete(stop);
        this.#put(turn, index, found ? asFound(document, found) : { isSought: false, issues });
        this.#runNext(turn);
      });
      this.#seeks.add(stop);
    });
  }

  #put(turn: number, index: number, change: Partial<Variant>): void {
    const { compared } = this.#store.state;
    if (turn !== this.#turn || !compared) return;
    const variants = compared.variants.map((variant, at) => (at === index ? { ...variant, ...change } : variant));
    this.#store.update({ compared: { ...compared, variants } });
  }

  #other(source: FormSource): Beside | null {
    if (this.#with === null) return null;
    const preset = source.catalog.presets.scenarios.find(({ id }) => id === this.#with);
    const found = this.#with.startsWith(`${enginePlace}/`)
      ? scenarioUnder(source, lastOf(this.#with))
      : this.#with === ''
        ? this.#kept
        : preset && { name: preset.name, document: preset.document as Document };
    if (!found) return null;
    return {
      of: this.#with,
      name: found.name,
      document: onTheSameRequests(found.document, source.document),
      outcome: null,
      issues: [],
    };
  }

  #runNext(turn: number): void {
    if (turn !== this.#turn || this.#isRunning) return;
    const { beside } = this.#store.state;
    if (beside && beside.outcome === null && beside.issues.length === 0) this.#runOther(turn, beside);
    else this.#runVariant(turn);
  }

  #runOther(turn: number, beside: Beside): void {
    const settle = (change: Partial<Beside>) => {
      if (turn !== this.#turn || !this.#store.state.beside) return;
      this.#isRunning = false;
      this.#store.update({ beside: { ...this.#store.state.beside, ...change } });
      this.#runNext(turn);
    };
    this.#isRunning = true;
    this.#run(beside.document, {
      refused: (issues) => settle({ issues }),
      finished: (outcome) => settle({ outcome }),
    });
  }

  #runVariant(turn: number): void {
    const { compared } = this.#store.state;
    const index =
      compared?.variants.findIndex(
        ({ report, issues, isSought }) => report === null && issues.length === 0 && !isSought,
      ) ?? -1;
    const next = compared?.variants[index];
    if (!next) return void this.#bandNext(turn);
    const settle = (change: Partial<Variant>) => {
      if (turn !== this.#turn) return;
      this.#isRunning = false;
      this.#put(turn, index, change);
      this.#runNext(turn);
    };
    this.#isRunning = true;
    const adapts = isGpu(this.#pointer) && !next.adapted;
    this.#run(next.document, {
      refused: (issues, unfit) => settle((adapts && withEnoughGpus(next.document, unfit)) || { issues }),
      finished: ({ report }) => settle({ report }),
    });
  }

  /** The row of what is shown says what the page says, whatever the others wait for. */
  #bandCurrent(turn: number, variants: readonly Variant[]): void {
    const index = variants.findIndex(({ isCurrent }) => isCurrent);
    const current = variants[index];
    if (!current?.report || current.isBanded) return;
    const put = (banded: Report | null) => this.#put(turn, index, { report: banded ?? current.report, isBanded: true });
    void this.#bandOf(current.document).then(put);
  }

  /** Once every row has its answer, how far each forecast may be off, a row at a time. */
  async #bandNext(turn: number): Promise<void> {
    const { compared, beside } = this.#store.state;
    const index = compared?.variants.findIndex(({ report, isBanded }) => report !== null && !isBanded) ?? -1;
    const next = compared?.variants[index];
    if (this.#isRunning || turn !== this.#turn || compared?.variants.some(({ isSought }) => isSought)) return;
    this.#isRunning = true;
    if (next) {
      const report = (await this.#bandOf(next.document)) ?? next.report;
      this.#put(turn, index, { report, isBanded: true });
    } else if (beside?.outcome && !beside.banded) {
      const banded = (await this.#bandOf(beside.document)) ?? beside.outcome.report;
      const { beside: now } = this.#store.state;
      if (turn === this.#turn && now) this.#store.update({ beside: { ...now, banded } });
    } else {
      this.#isRunning = false;
      return;
    }
    if (turn !== this.#turn) return;
    this.#isRunning = false;
    this.#runNext(turn);
  }

  #run(
    document: Document,
    answer: { refused(issues: readonly Issue[], unfit?: Report['unfit']): void; finished(outcome: Outcome): void },
  ): void {
    const nothing = () => undefined;
    this.#engine.run(
      JSON.stringify(document),
      needsTrace(document),
      {
        accepted: nothing,
        loading: nothing,
        progress: nothing,
        refused: (_reason, issues, unfit) => answer.refused(issues, unfit),
        finished: (outcome, _progress, cancelled) => {
          if (outcome && !cancelled) answer.finished(outcome);
        },
        broken: (message) => answer.refused([{ path: '', message }]),
      },
      'beside',
    );
  }
}
