// What the sheet says was asked: the model, what serves it, the load, the targets, and every setting of the document that
// differs from its preset or its default.
import type { Report } from 'servecast';
import { countOf } from '../lib/format';
import { equalJson, getAt, removeAt, segmentsOf, setAt, type Document, type Json } from '../state/document';
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

/** `otherwise`: what would be in force without it; "": nothing would. */
export interface Departure extends Input {
  readonly otherwise: string;
}

/** `trace`: the name of the file that is replayed, "" when it is not known; null: none is. */
export function inputsOf(source: FormSource, report: Report, trace: string | null): readonly Input[] {
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
    { name: 'Hardware', value: hardwareOf(report) },
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

/** "1 × H100 SXM 80 GB", "2 replicas of 4 × H100 SXM 80 GB". */
function hardwareOf({ scenario, gpus }: Report): string {
  const resolved = scenario as Document;
  const pools = poolsOf({ document: resolved, resolved: null });
  const parts = pools.map((pool) => {
    const gpu = getAt(pool, '/hardware/name') ?? getAt(resolved, '/hardware/name') ?? 'GPU';
    const each = Number(pool['tensor_parallel'] ?? 1) * Number(pool['pipeline_parallel'] ?? 1);
    const role = hasRoles(pools) ? `${roleOf(pool)} ` : '';
    const replicas = replicasOf(pool);
    const of = `${each} × ${String(gpu)}`;
    return replicas === 1 && role === '' ? of : `${countOf(replicas, `${role}replica`)} of ${of}`;
  });
  return `${parts.join(' + ')}${parts.length > 1 || /replica/.test(parts[0] ?? '') ? ` (${countOf(gpus, 'GPU')})` : ''}`;
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

/** What rows of their own tell. */
const told =
  /\/preset$|^\/slo\/|^\/workload\/(arrivals|prompt_tokens|output_tokens)\/|\/price_(per_gpu_hour|basis)$|^\/(schema|name|description)$|^\/cluster\/pools\/\d+\/(replicas|tensor_parallel|pipeline_parallel|role|name)$|^\/(model|hardware|engine)\/name$/;

export function departuresOf(source: FormSource): readonly Departure[] {
  const several = poolsOf(source).length > 1;
  return placedFields(source, () => true)
    .filter(({ pointer }) => !told.test(pointer))
    .flatMap((placed) => {
      const own = getAt(source.document, placed.pointer);
      const other = withoutIt(source, placed);
      if (own === undefined || equalJson(own, other)) return [];
      return [
        {
          name: settingName(placed.pointer, several),
          value: valueText(source, placed, own),
          otherwise: other === undefined || other === null ? '' : valueText(source, placed, other),
        },
      ];
    });
}

/** Of the preset that the section names, or whose name it has, else the default. */
function withoutIt(source: FormSource, placed: PlacedField): Json | undefined {
  const bare = removeAt(source.document, placed.pointer);
  const section = segmentsOf(placed.pointer)[0] ?? '';
  const name = getAt(source.document, `/${section}/name`);
  const preset = presetsFor(source.catalog, `/${section}/preset`).find((each) => each.document?.['name'] === name);
  const isNamed = getAt(bare, `/${section}/preset`) !== undefined || name === undefined || !preset;
  const document = isNamed ? bare : setAt(bare, `/${section}/preset`, preset.id);
  return valueInForce({ ...source, document, resolved: null }, placed);
}
