// The part of the worker that tries changes of a scenario, fetched when a target is missed for the first time.
import type { Advice, AdviceRun } from 'servecast';
import { inWords } from './compile';
import type { ToWorker } from './protocol';
import type { WorkerHost } from './worker';
import { wholeEngine } from './worker-files';

type AdviceRequest = Extract<ToWorker, { kind: 'advise' }>;

const progressMs = 100;

/** Changes of the scenario, each run by the whole module: their answer comes when all are done, progress on the way. */
export async function advise(host: WorkerHost, { id, scenario, with_trace: withTrace }: AdviceRequest): Promise<void> {
  const say = (progress: number, advice: Advice | null, message = '') =>
    host.post({ kind: 'advice', id, progress, advice, message });
  let advice: AdviceRun | null = null;
  try {
    const module = await wholeEngine(host);
    if (host.currentRun.advice !== id) return;
    advice = await host.made(
      module,
      () => new module.Advice(scenario),
      () => undefined,
    );
    const trace = withTrace ? host.trace() : null;
    if (trace?.module === module) advice.setTrace(trace.rows);
    const pace = { steps: 2000 };
    let lastProgress = 0;
    for (;;) {
      const { finished } = host.slice(advice, pace);
      const issues = host.parseIssues(advice.error());
      const files = issues.flatMap(({ kind, path }) => (kind === 'missing_file' ? [path] : []));
      if (issues.length > files.length) return say(1, null, issues[0]?.message);
      if (finished) break;
      await Promise.all(files.map((file) => host.presets.fetch(module, file)));
      await host.nextTask();
      if (host.currentRun.advice !== id) return;
      if (host.cancelledRuns.has(id)) break;
      if (performance.now() - lastProgress < progressMs) continue;
      lastProgress = performance.now();
      say(advice.progress(), null);
    }
    say(advice.progress(), JSON.parse(advice.summary()) as Advice);
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) throw error;
    say(1, null, inWords(error));
  } finally {
    host.cancelledRuns.delete(id);
    advice?.delete();
  }
}
