// What the sheet says was asked: the model, what serves it, the load, the targets, and every setting of the document that
// differs from its preset or its default.
import type { Catalog, Preset, Report } from 'servecast';
import { countOf } from '../lib/format';
import { equalJson, getAt, isObject, removeAt, segmentsOf, setAt, type Document, type Json } from '../state/document';
import {
  choiceText,
  isDefaulted,
  labelOf,
  placedFields,
  presetsFor,
  unitOf,
  valueInForce,
  withRateOfSessions,
  type FormSource,
  type PlacedField,
} from '../state/fields';
import { hasRoles, poolsOf, replicasOf, roleOf } from '../state/pools';
import { settingName, settingText } from './compare-figures';
import { valueAt } from './placed';
import { targetText } from './question-words';

export interface Input {
  readonly name: string;
  readonly value: string;
}

/** `otherwise`: what the preset or the default has; "": nothing. */
export interface Departure extends Input {
  readonly otherwise: string;
  readonly from: 'preset' | 'default';
}

/** What was simulated, or would have been. */
export type Asked = Pick<Report, 'scenario' | 'slo' | 'gpus'>;

/** `trace`: the name of the file that is replayed, "" when it is not known; null: none is. */
export function inputsOf(source: FormSource, report: Asked, trace: string | null): readonly Input[] {
  const named = (section: string) => {
    const preset = valueAt(source, `/${section}/preset`);
    const name = getAt(report.scenario as Document, `/${section}/name`);
    if (typeof preset === 'string') return choiceText(source.catalog, `/${section}/preset`, preset);
    return typeof name === 'string' && name !== '' ? name : 'stated in full';
  };
  const traced = trace === null ? '' : `trace ${trace === '' ? 'without a name' : trace}`;
  const prompts = settingsOf(source, '/workload/prompt_tokens/');
  const outputs = settingsOf(source, '/workload/output_tokens/');
  return [
    { name: 'Model', value: joined([named('model'), weightsOf(source)]) },
    { name: 'Hardware', value: hardwareOf({ ...source, document: report.scenario as Document }, report.gpus) },
    { name: 'Engine', value: joined([named('engine'), ...limitsOf(source)]) },
    { name: 'Load', value: joined([traced, ...settingsOf(source, '/workload/arrivals/')]) },
    { name: 'Prompts', value: joined(prompts) },
    { name: 'Outputs', value: joined(outputs) },
    { name: 'Targets', value: report.slo.map(targetText).join('; ') || 'none' },
  ].filter(({ value }) => value !== '');
}

const joined = (parts: readonly string[]): string => parts.filter(Boolean).join(', ');

function weightsOf(source: FormSource): string {
  const [format, type] = ['quantization', 'torch_dtype'].map((name) => valueAt(source, `/model/${name}`));
  const weights = format === undefined || format === 'none' ? type : format;
  return typeof weights === 'string' ? `weights in ${weights}` : '';
}

/** "1 × H100 SXM 80 GB", "2 replicas of 4 × H100 SXM 80 GB, 8 GPUs in all". */
function hardwareOf(source: FormSource, gpus?: number): string {
  const { document, catalog } = source;
  const pools = poolsOf({ document, resolved: null });
  const scenarios = presetName(source, 'hardware') || 'GPU';
  const parts = pools.map((pool) => {
    const own = getAt(pool, '/hardware/preset');
    const named = typeof own === 'string' ? choiceText(catalog, '/hardware/preset', own) : scenarios;
    const gpu = getAt(pool, '/hardware/name') ?? named;
    const role = hasRoles(pools) ? `${roleOf(pool)} ` : '';
    const replicas = replicasOf(pool);
    const of = `${gpusOfReplica(pool)} × ${String(gpu)}`;
    return replicas === 1 && role === '' ? of : `${countOf(replicas, `${role}replica`)} of ${of}`;
  });
  return `${parts.join(' + ')}${parts.length > 1 || /replica/.test(parts[0] ?? '') ? `, ${countOf(gpus ?? gpusOf(document), 'GPU')} in all` : ''}`;
}

/** Of a batch, which decide most of what an engine does. */
function limitsOf(source: FormSource): readonly string[] {
  const numbers = [
    ['/engine/max_num_seqs', 'sequences'],
    ['/engine/max_num_batched_tokens', 'tokens a step'],
  ] as const;
  return numbers.flatMap(([pointer, what]) => {
    const value = valueAt(source, pointer);
    return typeof value === 'number' ? [`${settingText(value)} ${what}`] : [];
  });
}

const leading = /\/(process|distribution)$/;

/** In words, those that somebody or a preset chose, and what kind it is: "poisson", "rate 40 req/s". */
function settingsOf(source: FormSource, prefix: string): readonly string[] {
  return placedFields(source, (path) => path.startsWith(prefix))
    .filter((placed) => leading.test(placed.pointer) || !isDefaulted(source, placed))
    .flatMap((placed) => {
      const value = valueInForce(source, placed);
      if (value === undefined || value === null) return [];
      const text = valueText(source, placed, value);
      return [placed.field.type === 'choice' ? text : `${labelOf(placed.pointer).toLowerCase()} ${text}`];
    });
}

function valueText(source: FormSource, { field, pointer }: PlacedField, value: Json): string {
  if (Array.isArray(value)) return `a table of ${countOf(value.length, 'row')}`;
  const unit = unitOf(withRateOfSessions(source, field));
  const isSaid = unit === '' || typeof value !== 'number' || labelOf(pointer).toLowerCase() === unit;
  return `${settingText(value)}${isSaid ? '' : `\u202f${unit}`}`;
}

/** What the targets, the pools and the rows of presets tell, and what is no setting. */
const told =
  /\/preset$|^\/slo\/|\/price_(per_gpu_hour|basis)$|^\/(schema|name|description)$|^\/cluster\/pools\/\d+\/(replicas|tensor_parallel|pipeline_parallel|role|name|hardware\/.*)$|^\/(model|hardware|engine|workload)\/name$/;
/** Of a scenario with no preset behind it these rows tell everything. */
const asked = /^\/workload\/(arrivals|prompt_tokens|output_tokens)\//;
const sections = ['model', 'hardware', 'engine', 'workload'] as const;
type Section = (typeof sections)[number];

/** The scenario preset that a document was made from: the one that is open, else the one whose title or note it has. */
export function originOf(catalog: Catalog, document: Document, id: string | null): Preset | null {
  const { scenarios } = catalog.presets;
  const has = (key: string) => (each: Preset) => {
    const own = document[key];
    return typeof own === 'string' && own !== '' && each.document?.[key] === own;
  };
  return (
    scenarios.find((each) => each.id === id) ??
    scenarios.find(has('name')) ??
    scenarios.find(has('description')) ??
    null
  );
}

/** Each setting that has another value than in the scenario's preset, else than in the presets of its parts, else than by default. */
export function departuresOf(source: FormSource, origin: Preset | null): readonly Departure[] {
  const own = { ...source, resolved: null };
  const base = origin?.document ? { ...own, document: origin.document as Document } : null;
  const several = poolsOf(own).length > 1;
  const isSame = (section: string) => {
    const [mine, theirs] = [presetIn(own, section), base && presetIn(base, section)];
    return base !== null && (mine === undefined || mine === theirs);
  };
  const settings = placedFields(own, () => true)
    .filter(({ pointer }) => !told.test(pointer) && (base !== null || !asked.test(pointer)))
    .flatMap((placed) => {
      const { pointer } = placed;
      const [section = '', list, index] = segmentsOf(pointer);
      const isTheirs = list === 'pools' ? base !== null && poolsOf(base)[Number(index)] !== undefined : isSame(section);
      const reference = base && isTheirs ? base : withoutIt(own, pointer);
      const [value, other] = [valueInForce(own, placed) ?? null, valueInForce(reference, placed) ?? null];
      if (equalJson(value, other)) return [];
      // What nobody wrote, and what hangs on a choice that the preset does not have, is listed with that choice.
      if (getAt(own.document, pointer) === undefined && getAt(reference.document, pointer) === undefined) return [];
      const from: Departure['from'] = isDefaulted(reference, placed) ? 'default' : 'preset';
      return [
        {
          name: settingName(pointer, several, false),
          value: value === null ? 'none' : valueText(own, placed, value),
          otherwise: other === null ? '' : valueText(reference, placed, other),
          from,
        },
      ];
    });
  return base ? [...partsOf(own, base), ...settings] : settings;
}

/** Presets, GPUs with their replicas, and targets: each whole. */
function partsOf(own: FormSource, base: FormSource): readonly Departure[] {
  const presets = sections.map((section) => [
    labelOf(`/${section}`),
    presetName(own, section),
    presetName(base, section),
  ]);
  const targets = (of: FormSource) => targetsIn(of).map(targetText).join('; ') || 'none';
  return [
    ...presets.filter(([name]) => name !== 'Hardware'),
    ['Hardware', hardwareOf(own), hardwareOf(base)],
    ['Targets', targets(own), targets(base)],
  ].flatMap(([name = '', value = '', otherwise = '']) =>
    value === '' || otherwise === '' || value === otherwise
      ? []
      : [{ name, value, otherwise, from: 'preset' as const }],
  );
}

/** Of all replicas. */
export function gpusOf(document: Document): number {
  return poolsOf({ document, resolved: null }).reduce((sum, pool) => sum + replicasOf(pool) * gpusOfReplica(pool), 0);
}

const gpusOfReplica = (pool: Document): number =>
  Number(pool['tensor_parallel'] ?? 1) * Number(pool['pipeline_parallel'] ?? 1);

/** Its targets, as a report would list them: links leave out what is so by default. */
export function targetsIn({ catalog, document }: FormSource): Report['slo'] {
  const list = getAt(document, '/slo');
  const targets = Array.isArray(list) ? (list as readonly Json[]).filter(isObject) : [];
  const standard = ['metric', 'percentile'].map((name) => [
    name,
    catalog.fields.find(({ path }) => path === `/slo/-/${name}`)?.default,
  ]);
  const defaults = Object.fromEntries(standard.filter(([, value]) => value !== undefined && value !== null));
  return targets.map((target) => ({ ...defaults, limit_ms: null, ...target })) as unknown as Report['slo'];
}

/** The preset that a section names, or whose name it has; with neither, the one by default. */
function presetIn({ catalog, document }: FormSource, section: string): string | undefined {
  const pointer = `/${section}/preset`;
  const chosen = getAt(document, pointer);
  if (typeof chosen === 'string') return chosen;
  const name = getAt(document, `/${section}/name`);
  const presets = presetsFor(catalog, pointer);
  if (name !== undefined) return presets.find((each) => each.document?.['name'] === name)?.id ?? String(name);
  const standard = catalog.fields.find(({ path }) => path === pointer)?.default;
  return typeof standard === 'string' && getAt(document, `/${section}`) === undefined ? standard : undefined;
}

/** "": it says all by itself. */
function presetName(source: FormSource, section: Section): string {
  const id = presetIn(source, section);
  return id === undefined ? '' : choiceText(source.catalog, `/${section}/preset`, id);
}

/** With the preset that the section names, or whose name it has, else the default, in place of the value. */
function withoutIt(source: FormSource, pointer: string): FormSource {
  const bare = removeAt(source.document, pointer);
  const section = segmentsOf(pointer)[0] ?? '';
  const name = getAt(source.document, `/${section}/name`);
  const preset = presetsFor(source.catalog, `/${section}/preset`).find((each) => each.document?.['name'] === name);
  const isNamed = getAt(bare, `/${section}/preset`) !== undefined || name === undefined || !preset;
  return { ...source, document: isNamed ? bare : setAt(bare, `/${section}/preset`, preset.id) };
}

export interface Heading {
  readonly title: string;
  readonly note: string;
}

/** What the author called it. The preset's own title and note are of the preset: of what was changed they say what it was. */
export function headingOf(document: Document, origin: Preset | null, title: string, isChanged: boolean): Heading {
  const text = (of: Document | undefined, key: string) => {
    const found = of?.[key];
    return typeof found === 'string' ? found.trim() : '';
  };
  const note = text(document, 'description');
  const preset = origin?.document as Document | undefined;
  if (!isChanged || !preset) return { title, note };
  const isTheirs = (key: string) => ['', text(preset, key)].includes(text(document, key));
  return {
    title: isTheirs('name') ? `Changed from: ${origin?.name ?? title}` : title,
    note: note !== '' && isTheirs('description') ? `Changed from: ${note}` : note,
  };
}
