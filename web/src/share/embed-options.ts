// How an embed looks and what it may do: parameters behind the scenario in the fragment of embed.html. What is not known
// is left as it is without them, and named.

export const uis = ['compact', 'chart', 'what-if', 'full'] as const;
const metrics = ['ttft', 'tpot', 'itl', 'e2e'] as const;
const autoruns = ['visible', '1', '0'] as const;
const themes = ['auto', 'light', 'dark'] as const;
const locks = ['0', '1'] as const;
export type EmbedTheme = (typeof themes)[number];
const mostKnobs = 3;

export interface EmbedOptions {
  readonly ui: (typeof uis)[number];
  /** The one latency to show; null: that of the targets. */
  readonly metric: (typeof metrics)[number] | null;
  readonly autorun: (typeof autoruns)[number];
  readonly theme: EmbedTheme;
  /** Nothing can be changed, neither by readers nor by the page around. */
  readonly lock: boolean;
  /** Places in the document, JSON pointers. */
  readonly knobs: readonly string[];
  /** What was asked for and is not known, in sentences. */
  readonly problems: readonly string[];
}

/** share/link.ts and host/link.cpp know them, too. */
export const names = ['ui', 'metric', 'autorun', 'theme', 'lock', 'knobs'];
const nameOf = (part: string) => part.split('=', 1)[0] ?? '';

/** The link without what is of an embed. */
export function withoutOptions(fragment: string): string {
  return fragment
    .replace(/^#/, '')
    .split('&')
    .filter((part) => !names.includes(nameOf(part)))
    .join('&');
}

/** "workload.arrivals.rate_per_s" as a JSON pointer; null: it is no path. */
export function pointerOfPath(path: string): string | null {
  return path.length <= 200 && /^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/.test(path) && !path.includes('__')
    ? `/${path.replaceAll('.', '/')}`
    : null;
}

/** Of one said twice the last counts: what the element adds stands behind what its link had. */
export function readOptions(fragment: string): EmbedOptions {
  const said = new Map<string, string>();
  for (const part of fragment
    .slice(0, 256 * 1024)
    .replace(/^#/, '')
    .split('&')) {
    const name = nameOf(part);
    if (names.includes(name)) said.set(name, part.slice(name.length + 1).slice(0, 1000));
  }
  const problems: string[] = [];
  const one = <T extends string>(name: string, allowed: readonly T[], otherwise: T): T => {
    const value = said.get(name);
    if (value === undefined) return otherwise;
    const found = allowed.find((each) => each === value);
    if (!found) problems.push(`${name} is one of ${allowed.join(', ')}.`);
    return found ?? otherwise;
  };
  const paths = (said.get('knobs') ?? '').replaceAll(/%2c/gi, ',').split(',').filter(Boolean);
  const knobs = paths.flatMap((path) => pointerOfPath(path) ?? []);
  if (knobs.length < paths.length || knobs.length > mostKnobs)
    problems.push(`knobs are one to ${mostKnobs} paths of settings, separated by commas.`);
  const ui = one('ui', uis, 'chart');
  return {
    ui,
    metric: said.has('metric') ? one('metric', metrics, 'ttft') : null,
    autorun: one('autorun', autoruns, 'visible'),
    theme: one('theme', themes, 'auto'),
    lock: one('lock', locks, '0') === '1',
    knobs: knobs.length === 0 && ui === 'what-if' ? ['/workload/arrivals/rate_per_s'] : knobs.slice(0, mostKnobs),
    problems,
  };
}
