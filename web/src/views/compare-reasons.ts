// Why two servers differ on the same requests: what each of them did, and what of it their schedulers explain.
import { html, nothing, type TemplateResult } from 'lit';
import type { Report, RunFigures } from 'servecast';
import { formatCount, formatNumber, formatPercent, formatTime } from '../lib/format';
import { changeText } from './compare-figures';
import { firstRun } from '../lib/first-run';

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
    help: 'how often requests lost their memory; SGLang says retracted',
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

/** What the schedulers do otherwise where that part of the time differs. */
const because: Readonly<Partial<Record<Part, string>>> = {
  interference:
    'SGLang computes prompts first and alone, so tokens wait for whole batches of them; vLLM puts both in one step, within its token budget',
  queue:
    'SGLang admits a request if its prompt and all its tokens fit beside an estimate of what the others will make, and after a refusal none until one has ended; vLLM admits whoever’s prompt fits now',
  preempted:
    'SGLang retracts several at once when its estimate was too low, and they wait at the tail; vLLM preempts one at a time, which goes to the head',
  decode: 'steps have other batches, and the engines other host times',
  prefill: 'SGLang computes several prompts in a batch of their own, vLLM beside running tokens',
};

const schedulerOf = ({ scenario }: Report): string =>
  (scenario as { readonly scheduler?: { readonly policy?: string } }).scheduler?.policy ?? 'vllm';

/** The parts of the mean time in which the two differ by 2 % of it or more, the largest first. */
export function reasons(a: Report, b: Report): readonly { readonly text: string; readonly why: string }[] {
  const of = (report: Report) =>
    Object.values(firstRun(report).time_split?.e2e_ms ?? {}).reduce((sum, ms) => sum + ms, 0);
  const least = Math.max(of(a), of(b)) / 50;
  const two = [schedulerOf(a), schedulerOf(b)];
  const explained = two.includes('sglang') && two.includes('vllm');
  return (Object.keys(parts) as (keyof typeof parts)[])
    .map((name) => ({ name, more: (parts[name].of(b) ?? 0) - (parts[name].of(a) ?? 0) }))
    .filter(({ more }) => more !== 0 && Math.abs(more) >= least)
    .sort((x, y) => Math.abs(y.more) - Math.abs(x.more))
    .map(({ name, more }) => ({
      text: `${parts[name].head}: ${formatTime(Math.abs(more))} ${more > 0 ? 'more' : 'less'} in B`,
      why: explained ? (because[name] ?? '') : '',
    }));
}

export function renderReasons(name: string, a: Report, b: Report): TemplateResult {
  const found = reasons(a, b);
  return html`<h3>Where the difference comes from</h3>
    ${
      found.length === 0
        ? html`<p class="quiet-text">Every part of a request’s time agrees within 2\u202f%.</p>`
        : html`<ul class="plain-list" id="reasons">${found.map(({ text, why }) => html`<li><b>${text}</b>${why === '' ? nothing : html`: ${why}.`}</li>`)}</ul>`
    }
    <div class="table-scroll" tabindex="0" role="region" aria-label="What A and B did">
      <table id="did">
        <thead><tr><th scope="col">Mean of a request, and of the run</th><th scope="col">A: ${name}</th><th scope="col">B: on the page</th><th scope="col">B against A</th></tr></thead>
        <tbody>${rows.map(({ head, help, of, format }) => {
          const [of_a, of_b] = [of(a), of(b)];
          const change = of_a === null || of_b === null || of_a === 0 ? '' : changeText(of_b / of_a - 1);
          return html`<tr><th scope="row" title=${help}>${head}</th><td>${format(of_a)}</td><td>${format(of_b)}</td><td>${change}</td></tr>`;
        })}</tbody>
      </table>
    </div>
    ${[a, b].map((report, index) => (report.departures ? html`<p class="quiet-text">${index === 0 ? 'A' : 'B'}: ${report.departures.join('; ')}.</p>` : nothing))}`;
}
