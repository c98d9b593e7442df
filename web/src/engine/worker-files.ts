// The part of the worker that reads a person's files, fetched with the first one, and with it the module that can. Traces
// are decompressed and read piece by piece, so that a large file never blocks the page; their rows stay in the module,
// their bytes do not.
import wholeUrl from 'servecast.wasm?url';
import type { Issue, ServecastModule, TraceFit, TraceRead } from 'servecast';
import { compileModule, instantiate } from './compile';
import type { FromWorker, WholeQuestion } from './protocol';
import { unpacked } from './unpacked';
import type { ReadTrace, WorkerHost } from './worker';

const sliceMs = 12;
const progressMs = 100;
const traceLimitBytes = 2 ** 30;
/** Read in a few milliseconds. */
const pieceBytes = 2 ** 18;

let whole: Promise<ServecastModule> | null = null;

/** Takes the first engine's place. */
export function wholeEngine(host: WorkerHost): Promise<ServecastModule> {
  whole ??= Promise.all([host.engine(), import('servecast'), compileModule(wholeUrl)])
    .then(([, { default: create }, compiled]) => instantiate(create, compiled))
    .then((module) => {
      host.replace(module);
      return module;
    })
    .catch((error: unknown) => {
      whole = null;
      throw error;
    });
  return whole;
}

export async function answered(host: WorkerHost, question: WholeQuestion, words: readonly string[]): Promise<unknown> {
  const module = await wholeEngine(host);
  const asked: (...words: readonly string[]) => string = module[question];
  const ask = () => JSON.parse(asked(...words)) as { readonly issues?: readonly Issue[] };
  return host.presets.with(module, ask, ({ issues }) => issues ?? []);
}

/** Who reads a trace: a newer one may come meanwhile. */
export type TraceHost = Pick<WorkerHost, 'isCurrent' | 'nextTask' | 'keep' | 'post' | 'broken'>;

export async function readTrace(
  module: ServecastModule,
  host: TraceHost,
  id: number,
  file: Blob,
  name: string,
): Promise<void> {
  const unreadable = (message: string) => host.post({ kind: 'trace_unreadable', id, message });
  const { gzip, reader, taken } = await unpacked(file);
  const rows = new module.Trace(name);
  let total = 0;
  let kept = false;
  let trapped = false;
  let turn = performance.now();
  let lastProgress = turn;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || !host.isCurrent(id)) break;
      total += value.byteLength;
      if (total > traceLimitBytes) {
        void reader.cancel();
        return unreadable(`${name} is larger than 1 GiB${gzip ? ' when unpacked' : ''}: no more than that is read.`);
      }
      let more = true;
      for (let at = 0; more && at < value.byteLength && host.isCurrent(id); at += pieceBytes) {
        more = rows.add(value.subarray(at, at + pieceBytes));
        if (performance.now() - turn < sliceMs) continue;
        await host.nextTask();
        turn = performance.now();
      }
      if (turn - lastProgress >= progressMs) {
        lastProgress = turn;
        host.post({ kind: 'trace_progress', id, progress: file.size > 0 ? taken() / file.size : 1 });
      }
      if (!more) break;
    }
    void reader.cancel();
    if (!host.isCurrent(id)) return;
    const read = JSON.parse(rows.finish()) as TraceRead;
    host.keep({ rows, read, module });
    kept = true;
    host.post({ kind: 'trace_read', id, name, bytes: total, read });
  } catch (error) {
    trapped = error instanceof WebAssembly.RuntimeError;
    // Said first, so that the file is not tried again by the next worker.
    if (trapped) unreadable(`The engine stopped on ${name}: ${String(error)}`);
    if (trapped) return host.broken(id, error);
    unreadable(gzip ? `${name} begins like a gzip file but is damaged or cut short.` : `${name} could not be read.`);
  } finally {
    if (!kept && !trapped) rows.delete();
  }
}

/** The answer to a question for the fitted workload. */
export function fitted(id: number, trace: ReadTrace | null): FromWorker {
  const fit = trace ? (JSON.parse(trace.rows.fit()) as TraceFit | readonly Issue[]) : [];
  const failed = Array.isArray(fit);
  const message = failed
    ? (fit as readonly Issue[]).map((issue) => issue.message).join('; ') || 'There is no trace.'
    : '';
  return { kind: 'trace_fitted', id, fit: failed ? null : (fit as TraceFit), message };
}
