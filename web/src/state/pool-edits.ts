// What a person does to the pools of a cluster: others, fewer, prefill and decode apart. Loaded when it is first done.
import { equalJson, removeAt, setAt, type Document } from './document';
import type { FormSource } from './fields';
import { hasRoles, poolList, poolsInWords, poolsOf, replicasInAll, roleOf } from './pools';

/** Another like the last, of one replica; where prefill and decode are apart it decodes. */
export function withAnotherPool(source: FormSource): Document {
  const pools = poolsOf(source);
  const { name: _name, ...last } = pools.at(-1) ?? {};
  const added: Document = { ...last, replicas: 1, ...(hasRoles(pools) ? { role: 'decode' } : {}) };
  return setAt(source.document, poolList, [...pools, added]);
}

export function withoutPool(source: FormSource, index: number): Document {
  return settled(
    setAt(
      source.document,
      poolList,
      poolsOf(source).filter((_, at) => at !== index),
    ),
  );
}

/** Roles and what belongs to them go where prefill and decode are not both there, or nobody is left to encode for. */
function settled(document: Document): Document {
  const pools = poolsOf({ document, resolved: null });
  const roles = new Set(pools.map(roleOf));
  const apart = roles.has('prefill') && roles.has('decode');
  const encodes = roles.has('encode') && roles.size > 1;
  const kept = pools.map(({ role, ...pool }): Document => (encodes && role === 'encode' ? { role, ...pool } : pool));
  const idle = [
    ...(apart ? [] : ['/cluster/decode_router']),
    ...(encodes ? [] : ['/cluster/encode_router']),
    ...(apart || encodes ? [] : ['/cluster/disaggregation']),
  ];
  return idle.reduce(removeAt, apart ? document : setAt(document, poolList, kept));
}

/** But for role, name and number of replicas: undefined when the pools are not alike. */
function kindOfAll(pools: readonly Document[]): Document | undefined {
  const [first, ...rest] = pools.map(({ name: _name, role: _role, replicas: _replicas, ...kind }): Document => kind);
  return rest.every((kind) => equalJson(kind, first)) ? first : undefined;
}

/** Every replica serves whole requests; equal pools become one. */
export function withoutRoles(source: FormSource): Document {
  const pools = poolsOf(source);
  const kind = kindOfAll(pools);
  const whole = kind
    ? [{ ...kind, replicas: replicasInAll(pools) }]
    : pools.map(({ role: _role, ...pool }): Document => pool);
  return settled(setAt(source.document, poolList, whole));
}

/** Of the replicas of equal pools, so many for prefill and the others for decode; undefined where there is no such split. */
export function withSplit(source: FormSource, prefill: number): Document | undefined {
  const pools = poolsOf(source);
  const kind = kindOfAll(pools);
  const decode = replicasInAll(pools) - prefill;
  if (!kind || prefill < 1 || decode < 1) return undefined;
  return setAt(source.document, poolList, [
    { ...kind, role: 'prefill', replicas: prefill },
    { ...kind, role: 'decode', replicas: decode },
  ]);
}

const splitsCompared = 9;

/** The same replicas serving whole requests, or prefill and decode apart in every split (of many replicas, some). */
export function splitsOf(source: FormSource): readonly { readonly name: string; readonly document: Document }[] {
  const pools = poolsOf(source);
  const replicas = replicasInAll(pools);
  const parts = Math.min(replicas, splitsCompared);
  const prefills = [
    ...new Set(
      Array.from({ length: Math.max(0, parts - 1) }, (_, part) => Math.round(((part + 1) * replicas) / parts)),
    ),
  ];
  const splits = prefills.map((prefill) => withSplit(source, prefill)).filter((document) => document !== undefined);
  const all = [...(splits.length > 0 || hasRoles(pools) ? [withoutRoles(source)] : []), ...splits];
  return all.map((document) => ({ name: poolsInWords(poolsOf({ document, resolved: null })), document }));
}
