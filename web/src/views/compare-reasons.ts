// Why servers differ on the same requests: what each of them did, and what of it their schedulers explain.
import { html, nothing, type TemplateResult } from 'lit';
import type { Report, RunFigures } from 'servecast';
import { formatCount, formatGiven, formatNumber, formatPercent, formatTime } from '../lib/format';
import { changeText } from './compare-figures';
import { firstRun } from '../lib/first-run';
import { getAt, type Document, type Json } from '../state/document';
import { poolsOf } from '../state/pools';
import type { Variant } from '../state/store';

type Part = keyof NonNullable<RunFigures['time_split']>['e2e_ms'];
interface Row {
  readonly head: string;
  readonly help: string;
  of(report: Report): number | null;
  format(value: number | null): string;
}

const part = (head: string, name: Part, help: string): Row => ({
  head,
  help,
  of: (report) => firstRun(report).time_split?.e2e_ms[name] ?? null,
  format: formatTime,
});
const parts = {
  queue: part('Waits for admission', 'queue', 'mean time of a request in the queue'),
  prefill: part('Its own prompt', 'prefill', 'mean time in which its prompt is computed'),
  decode: part('Its tokens', 'decode', 'mean time of steps as if they had tokens alone'),
  interference: part(
    'Waits for others’ prompts',
    'interference',
    'mean time by which prompts of others delay its tokens',
  ),
  preempted: part('Lost to preemption', 'preempted', 'mean time from losing its memory until it has caught up'),
};
const rows: readonly Row[] = [
  ...Object.values(parts),
  {
    head: 'Requests in a step',
    help: 'requests that run, mean while a step runs',
    of: (report) => firstRun(report).mean_batch_size,
    format: (value) => formatNumber(value),
  },
  { head: 'Steps', help: 'batches that were computed', of: (report) => firstRun(report).steps, format: formatCount },
  {
    head: 'Preempted or retracted',
    help: 'how often requests lost their memory; SGLang says retracted, TensorRT-LLM paused',
    of: (report) => firstRun(report).preemptions,
    format: formatCount,
  },
  {
    head: 'Prompt tokens from the cache',
    help: 'of those looked up by first admissions',
    of: (report) => firstRun(report).prefix_cache.hit_rate,
    format: formatPercent,
  },
];

/** What a scheduler does in each part of a request's time, by its rules and settings. */
type Rules = Readonly<Partial<Record<Part, (scenario: Document, report: Report) => string>>>;

const budget = (scenario: Document): string =>
  `of up to ${formatCount(Number(getAt(scenario, '/engine/max_num_batched_tokens')))} tokens`;
const capacity = (scenario: Document): Json | undefined => getAt(scenario, '/scheduler/capacity_scheduler_policy');

const rulesOf: Readonly<Record<string, Rules>> = {
  vllm: {
    queue: () => 'vLLM admits whoever’s prompt fits now',
    prefill: (scenario) => `vLLM computes prompts beside running tokens, in steps ${budget(scenario)}`,
    decode: steps('vLLM'),
    interference: (scenario) => `vLLM puts prompts and tokens in one step ${budget(scenario)}`,
    preempted: () => 'vLLM preempts one request at a time, which goes to the head of the queue',
  },
  sglang: {
    queue: () =>
      'SGLang admits a request if its prompt and all its tokens fit beside an estimate of what the others will make, and after a refusal none until one has ended',
    prefill: () => 'SGLang computes several prompts in a batch of their own',
    decode: steps('SGLang'),
    interference: (scenario) =>
      getAt(scenario, '/scheduler/enable_mixed_chunk') === true
        ? 'SGLang computes prompts first, with running tokens beside them (enable_mixed_chunk)'
        : 'SGLang computes prompts first and alone, so tokens wait for whole batches of prompts',
    preempted: () =>
      'SGLang retracts several requests at once when its estimate was too low, and they wait at the tail of the queue',
  },
  trtllm: {
    queue: (scenario) =>
      capacity(scenario) === 'static_batch'
        ? 'TensorRT-LLM admits none until its whole batch has ended (static_batch)'
        : capacity(scenario) === 'max_utilization'
          ? 'TensorRT-LLM admits a request once there are KV blocks for its prompt (max_utilization)'
          : 'TensorRT-LLM admits a request once there are KV blocks for its prompt and all its tokens (guaranteed_no_evict)',
    prefill: (scenario) =>
      `TensorRT-LLM computes ${prompts(scenario)} beside running tokens, in steps ${budget(scenario)}`,
    decode: steps('TensorRT-LLM'),
    interference: (scenario) => `TensorRT-LLM puts ${prompts(scenario)} and tokens in one step ${budget(scenario)}`,
    preempted: (scenario) =>
      capacity(scenario) === 'max_utilization'
        ? 'TensorRT-LLM pauses the last of its list, which keeps its place'
        : 'TensorRT-LLM never preempts, as a request’s KV blocks are reserved until it ends',
  },
};

function prompts(scenario: Document): string {
  return getAt(scenario, '/engine/enable_chunked_prefill') === true ? 'prompts in chunks' : 'whole prompts';
}

/** What makes one engine's steps shorter than another's on the same GPU. */
function steps(name: string): (scenario: Document, report: Report) => string {
  return (scenario, report) => {
    const share = getAt(scenario, '/engine/kernel_share');
    const kernels = typeof share === 'number' && share < 1 ? `, and ${percentOf(share)} of the kernel latency` : '';
    const time = (member: string) => formatGiven(Number(getAt(scenario, `/engine/${member}`)));
    const requests = formatNumber(firstRun(report).mean_batch_size);
    return `${name} has ${requests} requests in a step, host times of ${time('step_overhead_us')}\u202fµs a step and ${time('sequence_overhead_us')}\u202fµs a request${kernels}`;
  };
}

const percentOf = (share: number): string => `${formatGiven(share * 100)}\u202f%`;
const scenarioOf = ({ scenario }: Report): Document => scenario as Document;

/** "" where pools have several. */
function schedulerOf(report: Report): string {
  const scenario = scenarioOf(report);
  const all = String(getAt(scenario, '/scheduler/policy') ?? 'vllm');
  const pools = poolsOf({ document: scenario, resolved: null });
  const policies = new Set(pools.map((pool) => String(getAt(pool, '/scheduler/policy') ?? all)));
  const [first = all, ...others] = policies;
  return others.length === 0 ? first : '';
}

/** "" for two servers with one scheduler, or with one that is not explained. */
function whyOf(part: Part, a: Report, b: Report): string {
  if (schedulerOf(a) === schedulerOf(b)) return '';
  const clauses = [a, b].map((report) => rulesOf[schedulerOf(report)]?.[part]?.(scenarioOf(report), report));
  return clauses.every((clause) => clause !== undefined) ? clauses.join('; ') : '';
}

interface Reason {
  readonly text: string;
  readonly why: string;
}

/** The parts of the mean time in which `b` differs from `a` by 2 % of it or more, the largest first. */
export function reasons(a: Report, b: Report, where = ' in B'): readonly Reason[] {
  const of = (report: Report) =>
    Object.values(firstRun(report).time_split?.e2e_ms ?? {}).reduce((sum, ms) => sum + ms, 0);
  const least = Math.max(of(a), of(b)) / 50;
  return (Object.keys(parts) as (keyof typeof parts)[])
    .map((name) => ({ name, more: (parts[name].of(b) ?? 0) - (parts[name].of(a) ?? 0) }))
    .filter(({ more }) => more !== 0 && Math.abs(more) >= least)
    .sort((x, y) => Math.abs(y.more) - Math.abs(x.more))
    .map(({ name, more }) => ({
      text: `${parts[name].head}: ${formatTime(Math.abs(more))} ${more > 0 ? 'more' : 'less'}${where}`,
      why: whyOf(name, a, b),
    }));
}

function listed(found: readonly Reason[], id: string): TemplateResult {
  return found.length === 0
    ? html`<p class="quiet-text">Every part of a request’s time agrees within 2\u202f%.</p>`
    : html`<ul class="plain-list" id=${id}>${found.map(({ text, why }) => html`<li><b>${text}</b>${why === '' ? nothing : html`: ${why}.`}</li>`)}</ul>`;
}

const changeOf = (of_a: number | null, of_b: number | null): string =>
  of_a === null || of_b === null || of_a === 0 ? '' : changeText(of_b / of_a - 1);

export function renderReasons(name: string, a: Report, b: Report): TemplateResult {
  return html`<h3>Where the difference comes from</h3>
    ${listed(reasons(a, b), 'reasons')}
    <div class="table-scroll" tabindex="0" role="region" aria-label="What A and B did">
      <table id="did" class="did">
        <thead><tr><th scope="col">Mean of a request, and of the run</th><th scope="col">A: ${name}</th><th scope="col">B: on the page</th><th scope="col">B against A</th></tr></thead>
        <tbody>${rows.map(({ head, help, of, format }) => html`<tr><th scope="row" title=${help}>${head}</th><td>${format(of(a))}</td><td>${format(of(b))}</td><td>${changeOf(of(a), of(b))}</td></tr>`)}</tbody>
      </table>
    </div>
    ${[a, b].map((report, index) => (report.departures ? html`<p class="quiet-text">${index === 0 ? 'A' : 'B'}: ${report.departures.join('; ')}.</p>` : nothing))}`;
}

/** Every other engine against the one in force, and what each of them did. */
export function renderEngineReasons(
  variants: readonly Variant[],
  beside: (policy: string) => void,
): TemplateResult | typeof nothing {
  const known = variants.flatMap(({ report, ...variant }) => (report ? [{ ...variant, report }] : []));
  const own = known.find(({ isCurrent }) => isCurrent);
  if (!own || known.length < 2) return nothing;
  return html`<section class="engine-reasons" aria-labelledby="engine-reasons">
    <h3 id="engine-reasons">Where the differences come from</h3>
    ${known
      .filter((each) => each !== own)
      .map(
        (other) => html`<h4>${other.name} against ${own.name}</h4>
          ${listed(reasons(own.report, other.report, ''), `reasons-${schedulerOf(other.report)}`)}
          <p><button type="button" aria-label=${`All figures of ${other.name} beside yours`} @click=${() => beside(schedulerOf(other.report))}>All figures side by side</button></p>`,
      )}
    <div class="table-scroll" tabindex="0" role="region" aria-label="What each engine did">
      <table id="engines-did" class="did">
        <thead><tr><th scope="col">Mean of a request, and of the run</th>${known.map(({ name, isCurrent }) => html`<th scope="col">${name}${isCurrent ? ' (yours)' : ''}</th>`)}</tr></thead>
        <tbody>${rows.map(({ head, help, of, format }) => {
          const base = of(own.report);
          const cells = known.map(({ report, isCurrent }) => {
            const change = isCurrent ? '' : changeOf(base, of(report));
            return html`<td>${format(of(report))}${change === '' ? nothing : html` <small>${change}</small>`}</td>`;
          });
          return html`<tr><th scope="row" title=${help}>${head}</th>${cells}</tr>`;
        })}</tbody>
      </table>
    </div>
  </section>`;
}
