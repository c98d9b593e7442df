// The scenario under every value of one of its choices, each run with the same requests.
import type { Issue, Report } from 'servecast';
import type { Engine } from '../engine/client';
import { needsTrace, segmentsOf, type Document, type Json } from './document';
import {
  assign,
  explainedChoices,
  isPoolOwn,
  placedFields,
  valueInForce,
  type FormSource,
  type PlacedField,
} from './fields';
import { poolList, poolsInWords, poolsOf, splitsOf } from './pools';
import type { Store } from './store';

export interface Variant {
  readonly name: string;
  /** The value that the scenario has. */
  readonly isCurrent: boolean;
  readonly document: Document;
  /** null: not yet run, or refused. */
  readonly report: Report | null;
  readonly issues: readonly Issue[];
}

/** What changes how requests are served, not which ones there are. */
const sections = ['hardware', 'model', 'engine', 'scheduler', 'cluster', 'latency'];

/** What was measured, or assumed, of a GPU or an engine: nobody chooses among these. */
const findings = /\/(auto_backend|operators|compared_as|nodes_assumed)$/;

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

/** Where the choices stand, by which variants are made; the list of pools stands for how replicas are split. */
export function comparablePointers(source: FormSource): readonly string[] {
  const [gpu, ...rest] = comparableFields(source).map(({ pointer }) => pointer);
  const pools = splitVariants(source).length > 0 ? [poolList] : [];
  return gpu === undefined ? pools : [gpu, ...pools, ...rest];
}

function valuesOf({ field }: PlacedField): readonly Json[] {
  return field.type === 'boolean' ? [false, true] : field.type === 'choice' ? field.choices : [];
}

/** The value in force first; none when the scenario has no such choice. */
export function variantsOf(source: FormSource, pointer: string): readonly Variant[] {
  if (pointer === poolList) return splitVariants(source);
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

/** Runs the variants one after the other, beside what the page shows. */
export class Comparison {
  readonly #engine: Engine;
  readonly #store: Store;
  #pointer = '';
  #turn = 0;

  constructor(engine: Engine, store: Store) {
    this.#engine = engine;
    this.#store = store;
  }

  /** "" ends it. */
  by(pointer: string, source: FormSource | null): void {
    this.#pointer = pointer;
    this.refresh(source);
  }

  /** The shown run begins: it has the engine for itself. */
  halt(): void {
    if (this.#pointer === '') return;
    this.#turn += 1;
    this.#engine.cancel('beside');
  }

  /** Starts anew, unless the shown run is under way; to be called again when that has ended. */
  refresh(source: FormSource | null): void {
    if (this.#pointer === '' && !this.#store.state.compared) return;
    this.halt();
    const turn = this.#turn;
    const made = source ? variantsOf(source, this.#pointer) : [];
    if (made.length === 0) {
      this.#store.update({ compared: this.#pointer === '' ? null : { pointer: this.#pointer, variants: [] } });
      return;
    }
    const { shown } = this.#store.state;
    const report = shown?.completeness === 'final' ? shown.outcome.report : null;
    const variants = made.map((variant) => (variant.isCurrent ? { ...variant, report } : variant));
    this.#store.update({ compared: { pointer: this.#pointer, variants } });
    if (this.#store.state.run.kind === 'idle') this.#runNext(turn);
  }

  #runNext(turn: number): void {
    const { compared } = this.#store.state;
    const index = compared?.variants.findIndex(({ report, issues }) => report === null && issues.length === 0) ?? -1;
    const next = compared?.variants[index];
    if (!next) return;
    const settle = (change: Partial<Variant>) => {
      const { compared: now } = this.#store.state;
      if (turn !== this.#turn || !now) return;
      this.#store.update({
        compared: {
          ...now,
          variants: now.variants.map((variant, at) => (at === index ? { ...variant, ...change } : variant)),
        },
      });
      this.#runNext(turn);
    };
    const nothing = () => undefined;
    this.#engine.run(
      JSON.stringify(next.document),
      needsTrace(next.document),
      {
        accepted: nothing,
        loading: nothing,
        progress: nothing,
        refused: (_reason, issues) => settle({ issues }),
        finished: (outcome, _progress, cancelled) => {
          if (outcome && !cancelled) settle({ report: outcome.report });
        },
        broken: (message) => settle({ issues: [{ path: '', message }] }),
      },
      'beside',
    );
  }
}
