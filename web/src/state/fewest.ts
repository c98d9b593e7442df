// The fewest GPUs of a kind that keep a scenario's targets: tensor parallelism by doubling, and for each the fewest
// replicas, which the planner answers. Loaded with comparisons.
import type { Issue, MinGpus } from 'servecast';
import type { TraceFile } from '../engine/client';
import { getAt, needsTrace, setAt, type Document } from './document';
import { poolList, poolsOf, roleOf } from './pools';
import type { Plans } from './plans';

/** More are not in one machine. */
const mostParallel = 8;

export interface Fewest {
  readonly tensor_parallel: number;
  readonly replicas: number;
}

/** "36 GPUs: tensor parallel 4, 9 replicas". */
export function fewestInWords({ tensor_parallel: parallel, replicas }: Fewest): string {
  const of = [
    ...(parallel > 1 ? [`tensor parallel ${parallel}`] : []),
    ...(replicas > 1 || parallel === 1 ? [`${replicas} ${replicas === 1 ? 'replica' : 'replicas'}`] : []),
  ];
  const gpus = parallel * replicas;
  return `${gpus} ${gpus === 1 ? 'GPU' : 'GPUs'}: ${of.join(', ')}`;
}

/** One pool that serves whole requests, and something to keep. */
export function hasFewest(document: Document, resolved: Document | null): boolean {
  const pools = poolsOf({ document, resolved });
  const targets = getAt(document, '/slo') ?? getAt(resolved ?? undefined, '/slo');
  return pools.length === 1 && roleOf(pools[0] ?? {}) === 'mixed' && Array.isArray(targets) && targets.length > 0;
}

export function withFewest(document: Document, { tensor_parallel, replicas }: Fewest): Document {
  const [pool] = poolsOf({ document, resolved: null });
  return setAt(document, poolList, [{ ...pool, tensor_parallel, replicas }]);
}

/** Hears the fewest and what found it, or why there are none. Returns what gives it up. */
export function findFewest(
  { planners, options }: Pick<Plans, 'planners' | 'options'>,
  document: Document,
  trace: TraceFile | null,
  done: (found: Fewest | null, issues: readonly Issue[], plan: MinGpus | null) => void,
): () => void {
  const file = needsTrace(document) ? trace : null;
  let stop: () => void = () => undefined;
  let why: readonly Issue[] = [];
  let plan: MinGpus | null = null;
  const tried = (parallel: number, best: Fewest | null) => {
    const next = parallel * 2;
    // With more to a replica, one replica must be fewer than what was found.
    if (next > mostParallel || (best && next >= best.tensor_parallel * best.replicas)) done(best, why, plan);
    else ask(next, best);
  };
  const ask = (parallel: number, best: Fewest | null) => {
    const asked = withFewest(document, { tensor_parallel: parallel, replicas: 1 });
    stop = planners.ask(
      {
        question: 'min-gpus',
        scenario: JSON.stringify(asked),
        options,
        prices: '',
        with_trace: file !== null,
      },
      file,
      {
        progress: () => undefined,
        answered(answer, sentence) {
          const replicas = 'pools' in answer ? answer.pools[0]?.replicas : undefined;
          if (replicas === undefined) why = [{ path: '', message: sentence }];
          const found = replicas === undefined ? null : { tensor_parallel: parallel, replicas };
          const isFewer = found && (!best || parallel * found.replicas < best.tensor_parallel * best.replicas);
          if (isFewer && 'pools' in answer) plan = answer as MinGpus;
          tried(parallel, isFewer ? found : best);
        },
        failed(issues) {
          why = issues;
          tried(parallel, best);
        },
      },
    );
  };
  ask(1, null);
  return () => stop();
}
