// Designs that keep missed targets where no one change does: as many GPUs of this kind as it takes, of the scenario as it
// is, and with the change that costs nothing and helps most. Found by the plan of the fewest GPUs. Loaded when needed.
import type { Advice, MinGpus } from 'servecast';
import type { TraceFile } from '../engine/client';
import { freeChange } from '../lib/advice';
import { readDocument, type Document } from './document';
import { fewestInWords, findFewest, hasFewest, withFewest, type Fewest } from './fewest';
import type { Plans } from './plans';
import type { FoundDesign, Shown, WaysOut } from './store';

/** Hears of each design that is found, and of the end. Returns what gives it up. */
export function findDesigns(
  plans: Pick<Plans, 'planners' | 'options'>,
  { document, outcome }: Pick<Shown, 'document' | 'outcome'>,
  advice: Advice,
  trace: TraceFile | null,
  put: (found: Pick<WaysOut, 'designs' | 'seeks'>) => void,
): () => void {
  const free = freeChange(advice);
  const changed = free && readDocument(free.document);
  const bases = [{ base: document, change: '' }, ...(free && changed ? [{ base: changed, change: free.change }] : [])];
  const designs: FoundDesign[] = [];
  let stop: () => void = () => undefined;
  let stopped = false;
  const next = () => {
    const asked = bases.shift();
    const seeks = asked !== undefined && hasFewest(asked.base, outcome.report.scenario as Document);
    put({ designs: [...designs], seeks });
    if (!seeks) return;
    const { base, change } = asked;
    stop = findFewest(plans, base, trace, (found, _issues, plan) => {
      if (found && plan) designs.push(designOf(base, change, found, plan));
      if (!stopped) next();
    });
    if (stopped) stop();
  };
  next();
  return () => {
    stopped = true;
    stop();
  };
}

/** As the plan found it. With the forecast's error it may take more replicas than by sampling alone: those. */
export function designOf(document: Document, change: string, found: Fewest, plan: MinGpus): FoundDesign {
  const [pool] = plan.pools;
  const sure = plan.sure?.at_90 ?? null;
  const replicas = Math.max(found.replicas, sure ?? 0);
  const design = { ...found, replicas };
  const gpus = replicas * found.tensor_parallel;
  const price = pool?.price_per_gpu_hour ?? null;
  return {
    document: withFewest(document, design),
    words: [change, fewestInWords(design)].filter(Boolean).join(', '),
    gpus,
    cost_per_hour: price === null ? null : price * gpus,
    slo: pool?.curve.find(({ at }) => at === replicas)?.slo ?? null,
    sure: sure !== null,
  };
}
