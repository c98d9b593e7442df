// Who fits constants to measurements: a worker for each fit, ended with it; all with one compiled module.
import wholeUrl from 'servecast.wasm?url';
import type { CalibrationAnswer, Issue, MeasuredFile, MeasurementAdvice } from 'servecast';
import { compileModule, inWords } from './compile';

export interface FileToFit {
  readonly file: Blob;
  readonly name: string;
  /** Judges the fit, and is no part of it. */
  readonly held_out: boolean;
}

export interface CalibrateTask {
  readonly module: WebAssembly.Module;
  /** The address that presets/ is at. */
  readonly site: string;
  readonly files: readonly FileToFit[];
  readonly document: string;
}

export type FromCalibrator =
  | {
      readonly kind: 'progress';
      readonly phase: 'reading' | 'fitting';
      readonly share: number;
      /** Servers so far. */
      readonly tried: number;
    }
  | { readonly kind: 'file'; readonly index: number; readonly read: MeasuredFile }
  /** Without issues: those of the files are all. */
  | { readonly kind: 'failed'; readonly issues: readonly Issue[] }
  | { readonly kind: 'answer'; readonly answer: CalibrationAnswer }
  /** Of no files. */
  | { readonly kind: 'advice'; readonly advice: MeasurementAdvice };

export class Calibrators {
  readonly #site: string;
  #compiled: Promise<WebAssembly.Module> | null = null;

  constructor(site: string) {
    this.#site = site;
  }

  /** Returns what gives it up: nothing more is heard then. */
  fit(files: readonly FileToFit[], document: string, hear: (message: FromCalibrator) => void): () => void {
    let worker: Worker | null = null;
    let over = false;
    const end = () => {
      over = true;
      worker?.terminate();
    };
    const say = (message: FromCalibrator) => {
      if (over) return;
      if (message.kind !== 'progress' && message.kind !== 'file') end();
      hear(message);
    };
    const broken = (message: string) => say({ kind: 'failed', issues: [{ path: '', message }] });
    this.#compiled ??= compileModule(wholeUrl).catch((error: unknown) => {
      this.#compiled = null;
      throw error;
    });
    this.#compiled.then(
      (module) => {
        if (over) return;
        worker = new Worker(new URL('./calibrate-worker.ts', import.meta.url), { type: 'module' });
        worker.onmessage = ({ data }: MessageEvent<FromCalibrator>) => say(data);
        worker.onerror = (event) => broken(event.message || 'the worker that fits could not start');
        worker.postMessage({ module, site: this.#site, files, document } satisfies CalibrateTask);
      },
      (error: unknown) => broken(inWords(error)),
    );
    return end;
  }
}
