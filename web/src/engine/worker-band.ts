// The part of the worker that finds how far the forecast itself may be off, fetched after the first certain verdict.
import type { BandRun, Report } from 'servecast';
import type { ToWorker } from './protocol';
import type { WorkerHost } from './worker';
import { wholeEngine } from './worker-files';

type BandRequest = Extract<ToWorker, { kind: 'band' }>;

/** The whole module makes the certain run again, then those of its bands, in slices. Cancelled: no answer. */
export async function band(host: WorkerHost, { id, scenario, with_trace: withTrace }: BandRequest): Promise<void> {
  const dropped = () => host.currentRun.band !== id || host.cancelledRuns.has(id);
  const say = (report: Report | null) => host.post({ kind: 'band', id, report });
  let run: BandRun | null = null;
  try {
    const module = await wholeEngine(host);
    if (dropped()) return;
    run = await host.made(
      module,
      () => new module.Band(scenario),
      () => undefined,
    );
    const trace = withTrace ? host.trace() : null;
    if (trace?.module === module) run.setTrace(trace.rows);
    for (const pace = { steps: 2000 }; ; await host.nextTask()) {
      if (dropped()) return;
      const { finished } = host.slice(run, pace);
      if (run.error() !== '') return say(null);
      if (finished) break;
    }
    say(JSON.parse(run.summary()) as Report | null);
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) throw error;
    say(null);
  } finally {
    host.cancelledRuns.delete(id);
    run?.delete();
  }
}
