// What an embed and the page around it say to each other: objects {type: 'servecast', v: 1, kind, ...}. An embed sends ready,
// turn, resize, progress, result and error; it takes set and turn. Whatever else comes is somebody else's, and not looked at.
import type { Report } from 'servecast';
import { pointerOfPath, type EmbedTheme } from './embed-options';

export type FromEmbed =
  /** Repeated until the page around answers, with a set, which may be empty. */
  | { readonly kind: 'ready' }
  /** To the element: may its engine start? It waits for the same message as the answer. */
  | { readonly kind: 'turn' }
  /** What its content needs, px. */
  | { readonly kind: 'resize'; readonly height: number }
  /** 0..1, of a run that takes its time. */
  | { readonly kind: 'progress'; readonly progress: number }
  | ({ readonly kind: 'result' } & Result)
  | { readonly kind: 'error'; readonly message: string };

export interface Result {
  readonly state: string;
  readonly sentence: string;
  readonly targets: readonly Pick<
    Report['slo'][number],
    'metric' | 'percentile' | 'limit_ms' | 'value_ms' | 'low' | 'high' | 'met'
  >[];
  readonly fingerprint: string;
  readonly engine_version: string;
  readonly scenario_id: string;
}

export type Value = number | string | boolean;

export interface Change {
  /** By JSON pointer. */
  readonly values: ReadonlyMap<string, Value>;
  readonly theme: EmbedTheme | null;
  /** Why it is not taken; "": it is. */
  readonly problem: string;
}

const mostValues = 32;
const longestText = 200;

export function resultOf(report: Report): Result {
  return {
    state: report.verdict.state,
    sentence: report.verdict.sentence,
    targets: report.slo.map(({ metric, percentile, limit_ms, value_ms, low, high, met }) => {
      return { metric, percentile, limit_ms, value_ms, low, high, met };
    }),
    fingerprint: report.fingerprint,
    engine_version: report.engine_version,
    scenario_id: report.scenario_id,
  };
}

/** Whether it is a message to an embed, of that kind. */
export const isOf = (kind: 'set' | 'turn', data: unknown): data is Record<string, unknown> =>
  isPlain(data) && data['type'] === 'servecast' && data['v'] === 1 && data['kind'] === kind;

/** null: it is no message to an embed. */
export function readSet(data: unknown): Change | null {
  if (!isOf('set', data)) return null;
  const { values: given = {}, theme: asked = null } = data;
  const values = new Map<string, Value>();
  const refuse = (problem: string): Change => ({ values: new Map(), theme: null, problem });
  if (!isPlain(given)) return refuse('values of set are an object of paths and values.');
  const entries = Object.entries(given);
  if (entries.length > mostValues) return refuse(`set takes at most ${mostValues} values.`);
  for (const [path, value] of entries) {
    const pointer = pointerOfPath(path);
    if (pointer === null) return refuse('set takes paths such as workload.arrivals.rate_per_s.');
    if (typeof value === 'number' ? !Number.isFinite(value) : typeof value !== 'boolean' && typeof value !== 'string')
      return refuse('set takes numbers, texts and truth values.');
    if (typeof value === 'string' && value.length > longestText) return refuse('set takes short texts.');
    values.set(pointer, value as Value);
  }
  const theme = asked === 'auto' || asked === 'light' || asked === 'dark' ? asked : null;
  if (asked !== null && theme === null) return refuse('theme is one of auto, light, dark.');
  return { values, theme, problem: '' };
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
