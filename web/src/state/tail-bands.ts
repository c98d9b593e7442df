// Bands along the curves of latencies. The engine says how sure a percentile is that has a target, so the scenario is run
// again, in an idle planner, with a target that never decides at each of a few percentiles. Such a target changes nothing
// that is simulated, but a percentile that is not known well makes the engine run longer. So both reports must have the same
// figures; else less is asked.
import type { Report } from 'servecast';
import type { Outcome } from '../engine/protocol';
import type { BandedMetric, TailBands, TailPoint } from '../lib/tail-bands';
import { tookLong } from '../lib/work';
import { needsTrace } from './document';
import type { Plans } from './plans';
import type { AppState, Store } from './store';

const metrics: readonly BandedMetric[] = ['ttft', 'tpot', 'e2e'];
const percentiles = [50, 75, 90, 95, 98, 99, 99.5, 99.9];
const neverDecides = 3.6e6;
/** An answer that has stood for so long, ms, is being read: until then the machine belongs to whoever works. */
const readMs = 600;

/** What is asked, one after the other until the runs are the same: up to this percentile, or to that of the metric's own
    targets. */
const upTo = [99.9, 99.5, 99, 'targets'] as const;
type UpTo = (typeof upTo)[number];

/** The scenario of a report with such targets after its own. */
export function probed({ scenario, slo }: Pick<Report, 'scenario' | 'slo'>, most: UpTo = 99.9): string {
  const ownOf = (metric: BandedMetric) =>
    slo.filter((own) => own.metric === metric && own.class === undefined).map((own) => own.percentile);
  const isAsked = (metric: BandedMetric, percentile: number) =>
    !ownOf(metric).includes(percentile) && percentile <= (most === 'targets' ? Math.max(0, ...ownOf(metric)) : most);
  const probes = metrics.flatMap((metric) =>
    percentiles
      .filter((percentile) => isAsked(metric, percentile))
      .map((percentile) => ({ metric, percentile, limit_ms: neverDecides })),
  );
  const { slo: own = [] } = scenario as { slo?: readonly object[] };
  return JSON.stringify({ ...scenario, slo: [...own, ...probes] });
}

/** Runs that are more, or longer, have another mean. */
function areSameRuns(one: Report, other: Report): boolean {
  const statistics = ['n', 'mean', 'p50', 'p90', 'p99', 'max'] as const;
  return (['ttft_ms', 'tpot_ms', 'e2e_ms'] as const).every((metric) =>
    statistics.every((each) => one[metric][each] === other[metric][each]),
  );
}

/** What the report of the probed scenario says of the scenario's own; null: nothing. */
export function bandsOf(report: Report, own: Report): TailBands | null {
  if (!areSameRuns(report, own)) return null;
  const known = metrics.flatMap((metric) => {
    const points = report.slo.flatMap((target): readonly TailPoint[] => {
      const { percentile, value_ms: value, low, high, band = null, unbounded } = target;
      if (target.metric !== metric || target.class !== undefined || unbounded) return [];
      if (value === null || low === null || high === null) return [];
      return [{ percentile, value_ms: value, low, high, band: band && { low: band.low, high: band.high } }];
    });
    const ascending = points.sort((a, b) => a.percentile - b.percentile);
    return ascending.length > 1 ? [[metric, ascending] as const] : [];
  });
  return known.length > 0 ? Object.fromEntries(known) : null;
}

/** The certain answer at rest; null: there is none, or one run is all that it has. */
function wanted({ shown, run, document }: AppState): Outcome | null {
  if (shown?.completeness !== 'final' || run.kind !== 'idle' || shown.document !== document) return null;
  const { report } = shown.outcome;
  const { certainty, slo } = report;
  if (!certainty || certainty.method === 'one_run' || slo.length === 0 || tookLong(report)) return null;
  return shown.outcome;
}

/** From now on every certain answer gets its bands, some time after it. */
export function keepTailBands(store: Store, plans: Pick<Plans, 'planners' | 'trace'>): void {
  let of: Outcome | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stop: () => void = () => undefined;
  const ask = (outcome: Outcome, [most, ...less]: readonly UpTo[]) => {
    if (most === undefined) return;
    const trace = needsTrace(store.state.document) ? plans.trace : null;
    stop = plans.planners.band(probed(outcome.report, most), trace, (report) => {
      if (!report || of !== outcome) return;
      const bands = bandsOf(report, outcome.report);
      if (bands) store.update({ tail_bands: { of: outcome, bands } });
      else ask(outcome, less);
    });
  };
  const look = () => {
    const now = wanted(store.state);
    if (now === of) return;
    of = now;
    clearTimeout(timer);
    stop();
    if (now && store.state.tail_bands?.of !== now) timer = setTimeout(() => ask(now, upTo), readMs);
  };
  store.subscribe(look);
  look();
}
