// The scenario under each serving engine of the catalogue, with the same model, GPUs, pools and requests. Loaded with
// comparisons.
import type { Catalog, Field, Preset } from 'servecast';
import { equalJson, getAt, isObject, removeAt, setAt, type Document, type Json } from './document';
import type { FormSource } from './fields';
import { poolList } from './pools';
import type { Variant } from './store';

/** Stands for the choice among engines; with a policy below it, for one of them. */
export const enginePlace = '/engine';

export interface ServingEngine {
  /** The scheduler that makes it this engine. */
  readonly policy: string;
  /** The newest version of it. */
  readonly preset: Preset;
}

/** Settings that say the same of every engine: an engine that lacks such a feature refuses it. */
const ofEveryEngine: ReadonlySet<string> = new Set([
  'enable_expert_parallel',
  'enable_prefix_caching',
  'gpu_memory_utilization',
  'host',
  'kv_cache_dtype',
  'kv_offload',
  'lora_overhead_us',
  'max_lora_rank',
  'max_loras',
  'max_model_len',
  'speculative',
]);

/** Members that name an engine or its evidence, and are no settings of a server. */
const naming: ReadonlySet<string> = new Set(['preset', 'name', 'compared_as', 'policy', 'version']);

/** "vllm" of "vllm-0.19". */
const familyOf = ({ id }: Preset): string => id.split('-')[0] ?? id;

/** What people call an engine, whatever its version: "SGLang" of "SGLang 0.5.16". */
const nameOfEngine = ({ preset }: ServingEngine): string => preset.name.split(' ')[0] ?? preset.name;

/** "vLLM, SGLang or TensorRT-LLM". */
export function enginesInWords(catalog: Catalog): string {
  const names = enginesOf(catalog).map(nameOfEngine);
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1) ?? ''}`;
}

function schedulers({ fields }: Catalog): Field | undefined {
  return fields.find(({ path }) => path === '/scheduler/policy');
}

function policyOf(catalog: Catalog, preset: Preset | undefined): string {
  return String(preset?.scheduler?.['policy'] ?? schedulers(catalog)?.default);
}

/** Schedulers that presets of the same name run by: the preset that is named as they are, else the last version. */
export function enginesOf(catalog: Catalog): readonly ServingEngine[] {
  return (schedulers(catalog)?.choices ?? []).flatMap((policy) => {
    const versions = catalog.presets.engines
      .filter((preset) => familyOf(preset) === policy && policyOf(catalog, preset) === policy)
      .sort((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true }));
    const preset = versions.find(({ id }) => id === policy) ?? versions.at(-1);
    return preset ? [{ policy, preset }] : [];
  });
}

/** Where a document says how its replicas are served: in all, and of each pool. */
function placesOf(document: Document): readonly string[] {
  const pools = getAt(document, poolList);
  return ['', ...(Array.isArray(pools) ? pools.map((_, index) => `${poolList}/${index}`) : [])];
}

/** By its id, else by its name; a scenario that says neither has the default. Undefined: an engine without a preset. */
function presetAt({ catalog, document, resolved }: FormSource, place: string): Preset | undefined {
  const { engines } = catalog.presets;
  const id = getAt(document, `${place}/engine/preset`);
  if (id !== undefined) return engines.find((preset) => preset.id === id);
  const isAll = place === '';
  const name = getAt(document, `${place}/engine/name`) ?? (isAll ? getAt(resolved ?? {}, '/engine/name') : undefined);
  if (name !== undefined) return engines.find((preset) => preset.document?.['name'] === name);
  const standard = catalog.fields.find(({ path }) => path === '/engine/preset')?.default;
  return isAll ? engines.find((preset) => preset.id === standard) : undefined;
}

interface Served {
  readonly policy: string;
  readonly preset: Preset | undefined;
}

/** By what a pool's replicas are served: what it says itself, else what the scenario says. */
function servedAt(source: FormSource, place: string): Served {
  const { catalog, document, resolved } = source;
  const said = getAt(document, `${place}/scheduler/policy`);
  const named = getAt(document, `${place}/engine/preset`) !== undefined;
  const own = presetAt(source, place);
  if (place === '') {
    const inForce = named ? undefined : getAt(resolved ?? {}, '/scheduler/policy');
    return { policy: String(said ?? inForce ?? policyOf(catalog, own)), preset: own };
  }
  const all = servedAt(source, '');
  return { policy: String(said ?? (named ? policyOf(catalog, own) : all.policy)), preset: own ?? all.preset };
}

function poolsServed(source: FormSource): readonly Served[] {
  const [all = '', ...pools] = placesOf(source.document);
  return (pools.length === 0 ? [all] : pools).map((place) => servedAt(source, place));
}

const isBy = ({ policy, preset }: Served, engine: ServingEngine): boolean =>
  policy === engine.policy && (!preset || familyOf(preset) === policy);

/** What a document sets otherwise than its preset: a document that is written out says everything. */
function saidAt(
  source: FormSource,
  place: string,
  section: 'engine' | 'scheduler',
): readonly (readonly [string, Json])[] {
  const own = getAt(source.document, `${place}/${section}`);
  if (!isObject(own)) return [];
  const { preset } = servedAt(source, place);
  const standard = section === 'engine' ? preset?.document : preset?.scheduler;
  const fields = source.catalog.fields.filter(({ path }) => path.startsWith(`/${section}/`));
  return Object.entries(own).filter(([key, value]) => {
    const field = fields.find(({ path }) => path === `/${section}/${key}`);
    return !naming.has(key) && !equalJson(value, (standard?.[key] ?? field?.default ?? null) as Json);
  });
}

/** Where settings of the scenario's own engine stand, for which every engine has its own. */
export function notCarried(source: FormSource): readonly string[] {
  const said = placesOf(source.document).flatMap((place) => [
    ...saidAt(source, place, 'engine')
      .filter(([key]) => !ofEveryEngine.has(key))
      .map(([key]) => `/engine/${key}`),
    ...saidAt(source, place, 'scheduler').map(([key]) => `/scheduler/${key}`),
  ]);
  return [...new Set(said)];
}

/** The scenario under an engine, by that one's defaults but for what says the same of every engine. */
function underEngine(source: FormSource, { preset }: ServingEngine): Document {
  let sharesMemory = false;
  const document = placesOf(source.document).reduce((changed, place) => {
    const kept = Object.fromEntries(saidAt(source, place, 'engine').filter(([key]) => ofEveryEngine.has(key)));
    sharesMemory ||= 'gpu_memory_utilization' in kept;
    const bare = removeAt(changed, `${place}/scheduler`);
    if (place === '') return setAt(bare, '/engine', { preset: preset.id, ...kept });
    return Object.keys(kept).length === 0 ? removeAt(bare, `${place}/engine`) : setAt(bare, `${place}/engine`, kept);
  }, source.document);
  // A share of its own would count before the one that was set.
  const share = 'free_gpu_memory_fraction';
  return sharesMemory && preset.scheduler?.[share] !== undefined
    ? setAt(document, `/scheduler/${share}`, null)
    : document;
}

/** Under one of the engines, as a scenario of its own; null: there is none of that policy. */
export function scenarioUnder(source: FormSource, policy: string): { name: string; document: Document } | null {
  const engine = enginesOf(source.catalog).find((each) => each.policy === policy);
  return engine ? { name: engine.preset.name, document: underEngine(source, engine) } : null;
}

/** The engine of all replicas; undefined where they have several, or one by rules that are not its own. */
export function engineInForce(source: FormSource): ServingEngine | undefined {
  const served = poolsServed(source);
  return enginesOf(source.catalog).find((engine) => served.every((each) => isBy(each, engine)));
}

function nameInForce(source: FormSource): string {
  const names = poolsServed(source).map(({ policy, preset }) => {
    const name = preset?.name ?? String(getAt(source.resolved ?? source.document, '/engine/name') ?? policy);
    return preset && (familyOf(preset) !== policy || policyOf(source.catalog, preset) !== policy)
      ? `${name}, scheduler ${policy}`
      : name;
  });
  return [...new Set(names)].join(' + ');
}

/** The scenario as it is first, then every other engine. */
export function engineVariants(source: FormSource): readonly Variant[] {
  const engines = enginesOf(source.catalog);
  if (engines.length < 2) return [];
  const own = engineInForce(source);
  const nothing = { report: null, issues: [] };
  return [
    { name: nameInForce(source), isCurrent: true, document: source.document, ...nothing },
    ...engines
      .filter(({ policy }) => policy !== own?.policy)
      .map((engine) => ({
        name: engine.preset.name,
        isCurrent: false,
        document: underEngine(source, engine),
        ...nothing,
      })),
  ];
}
