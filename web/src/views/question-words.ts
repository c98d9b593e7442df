// What the questions of capacity are called, and the targets, the load and the deployment that they are about.
import type { PlanQuestion, Report } from 'servecast';
import { countOf, formatGiven, formatGivenTime, sentence } from '../lib/format';
import { poolsInWords, poolsOf } from '../state/pools';
import { rateOf } from '../state/rate';
import { nameOfTarget } from './compare-figures';

export const questionNames: Readonly<Record<PlanQuestion, string>> = {
  'max-rate': 'Highest load',
  'min-gpus': 'Fewest GPUs',
  growth: 'Growth',
  day: 'Hours of a day',
  autoscale: 'Autoscaling',
  drill: 'What if',
  tornado: 'What moves it',
  cost: 'Own GPUs or an API',
  speculation: 'Speculation',
};

/** "within TTFT 300 ms and TPOT 40 ms", where it has limits of its own. */
function attainmentText(slo: Report['slo'][number]): string {
  const own = (['ttft', 'tpot', 'e2e'] as const).flatMap((metric) => {
    const limit = slo[`${metric}_ms`];
    return limit === undefined ? [] : [`${metric.toUpperCase()} ${formatGivenTime(limit)}`];
  });
  if (own.length === 0) return nameOfTarget(slo);
  return `within ${own.join(' and ')}${slo.class === undefined ? '' : ` of ${slo.class}`}`;
}

export function targetText(slo: Report['slo'][number]): string {
  return slo.limit_ms === null
    ? `${formatGiven((slo.limit_share ?? 0) * 100)}\u202f% ${attainmentText(slo)}`
    : sentence(`${nameOfTarget(slo)} <= ${formatGiven(slo.limit_ms)} ms`).replace(/\.$/, '');
}

export const allTargets = ({ slo }: Report): string =>
  slo.length === 1 ? 'the target' : slo.length === 2 ? 'both targets' : `all ${slo.length} targets`;

export function loadWord(report: Report): string {
  if (report.workload.source === 'trace') return 'speed of the trace';
  return rateOf(report) === null ? 'load' : 'rate';
}

/** "2 × H100 SXM 80 GB", "3 prefill + 5 decode". */
export function deploymentText({ scenario, gpus }: Report): string {
  const resolved = scenario as Parameters<typeof poolsOf>[0]['document'];
  const pools = poolsOf({ document: resolved, resolved: null });
  const name = (resolved['hardware'] as { name?: string } | undefined)?.name;
  return pools.length > 1 || !name ? `${poolsInWords(pools)} (${countOf(gpus, 'GPU')})` : `${gpus} × ${name}`;
}
