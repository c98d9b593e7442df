// A thread that fits constants to a person's measurements, once: files are unpacked and handed over piece by piece, the
// fit goes in slices. Who gives it up ends it.
import createServecast from 'servecast';
import type { CalibrationAnswer, Issue, MeasuredFile, MeasurementAdvice, ServecastModule } from 'servecast';
import { inWords, instantiate } from './compile';
import type { CalibrateTask, FromCalibrator } from './calibrators';
import { PresetFiles } from './preset-files';
import { unpacked } from './unpacked';

interface WorkerScope {
  onmessage: ((event: MessageEvent<CalibrateTask>) => void) | null;
  postMessage(message: FromCalibrator): void;
}
const scope = self as unknown as WorkerScope;

const sliceMs = 50;
const progressMs = 100;
const mostBytes = 2 ** 28;
type Work = InstanceType<ServecastModule['Calibration']>;

class Unreadable extends Error {}

/** All of a file, unpacked; `took`: bytes of the file so far. */
async function handOver(work: Work, file: Blob, name: string, took: (bytes: number) => void): Promise<void> {
  const { gzip, reader, taken } = await unpacked(file);
  work.begin(name, gzip ? 0 : file.size);
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      took(taken());
      if (work.add(next.value)) continue;
      void reader.cancel();
      throw new Unreadable(`${name} is larger than ${mostBytes / 2 ** 20} MiB: no more than that is read`);
    }
  } catch (error) {
    if (error instanceof Unreadable || error instanceof WebAssembly.RuntimeError) throw error;
    throw new Unreadable(
      gzip ? `${name} begins like a gzip file but is damaged or cut short` : `${name} could not be read`,
    );
  }
}

async function readAll(work: Work, files: CalibrateTask['files']): Promise<boolean> {
  const all = files.reduce((sum, { file }) => sum + file.size, 0);
  let before = 0;
  let told = performance.now();
  let good = true;
  for (const [index, { file, name, held_out: heldOut }] of files.entries()) {
    const took = (bytes: number) => {
      if (performance.now() - told < progressMs) return;
      told = performance.now();
      scope.postMessage({ kind: 'progress', phase: 'reading', share: all > 0 ? (before + bytes) / all : 1, tried: 0 });
    };
    let read: MeasuredFile;
    try {
      await handOver(work, file, name, took);
      read = JSON.parse(work.end(heldOut)) as MeasuredFile;
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      read = { found: '', issues: [{ path: '', message: error.message }] };
    }
    before += file.size;
    good &&= read.issues.length === 0;
    scope.postMessage({ kind: 'file', index, read });
  }
  return good;
}

async function calibrate({ module: compiled, site, files, document }: CalibrateTask): Promise<void> {
  const module = await instantiate(createServecast, compiled);
  const presets = new PresetFiles(() => undefined);
  presets.site = site;
  const failed = (issues: readonly Issue[]) => scope.postMessage({ kind: 'failed', issues });
  const work = new module.Calibration(document, new Date().toISOString().slice(0, 10));
  if (!(await readAll(work, files))) return failed([]);
  const issues = await presets.with(
    module,
    () => JSON.parse(work.fit()) as readonly Issue[],
    (asked) => asked,
  );
  if (issues.length > 0) return failed(issues);
  let requests = 1000;
  let told = 0;
  for (let finished = false; !finished; ) {
    const begin = performance.now();
    finished = work.advance(requests);
    const ms = Math.max(performance.now() - begin, 0.1);
    requests = Math.round(Math.min(1e8, Math.max(100, (requests * sliceMs) / ms)));
    const error = work.error();
    if (error !== '') return failed(JSON.parse(error) as readonly Issue[]);
    if (begin - told < progressMs) continue;
    told = begin;
    scope.postMessage({ kind: 'progress', phase: 'fitting', share: work.progress(), tried: work.tried() });
  }
  const answer = JSON.parse(work.answer()) as CalibrationAnswer | MeasurementAdvice;
  scope.postMessage('pack' in answer ? { kind: 'answer', answer } : { kind: 'advice', advice: answer });
}

scope.onmessage = ({ data }) => {
  calibrate(data).catch((error: unknown) =>
    scope.postMessage({
      kind: 'failed',
      issues: [
        {
          path: '',
          message: error instanceof WebAssembly.RuntimeError ? `the engine stopped: ${String(error)}` : inWords(error),
        },
      ],
    }),
  );
};
