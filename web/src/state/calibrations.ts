// The calibration of one's own measurements: which files, how far the fit is, and what came of it. Loaded when its view is
// first opened; files stay in this page.
import type { CalibrationAnswer, Issue, MeasurementAdvice } from 'servecast';
import type { FromCalibrator } from '../engine/calibrators';

export interface CalibrationFile {
  readonly file: File;
  readonly held_out: boolean;
  /** "": not read yet, or refused. */
  readonly found: string;
  readonly issues: readonly Issue[];
}

export type CalibrationProgress =
  | { readonly kind: 'empty' | 'done' | 'cancelled' }
  | { readonly kind: 'working'; readonly phase: 'reading' | 'fitting'; readonly share: number; readonly tried: number }
  /** Without issues those of the files say it. */
  | { readonly kind: 'failed'; readonly issues: readonly Issue[] };

/** Who fits: a worker, or a test. */
export interface Fitting {
  fit(
    files: readonly { readonly file: Blob; readonly name: string; readonly held_out: boolean }[],
    document: string,
    hear: (message: FromCalibrator) => void,
  ): () => void;
}

const mostFiles = 32;
const withoutTimes = 'The files have power alone. Add the file of the run that it was measured beside, before it.';

export class Calibrations {
  files: readonly CalibrationFile[] = [];
  progress: CalibrationProgress = { kind: 'empty' };
  /** Of the files; of former ones while a fit is under way. */
  answer: CalibrationAnswer | null = null;
  /** Where nothing was measured yet. */
  advice: MeasurementAdvice | null = null;
  /** More files were dropped than are taken. */
  tooMany = false;
  readonly #fitting: Fitting;
  readonly #document: () => string;
  readonly #heard = new Set<() => void>();
  #stop: (() => void) | null = null;
  #asksAdvice = false;

  /** `document`: of the open scenario. */
  constructor(fitting: Fitting, document: () => string) {
    this.#fitting = fitting;
    this.#document = document;
  }

  subscribe(hear: () => void): () => void {
    this.#heard.add(hear);
    return () => this.#heard.delete(hear);
  }

  add(files: readonly File[]): void {
    const known = this.files.filter(({ file }) => !files.some(({ name }) => name === file.name));
    const all = [...known, ...files.map((file) => ({ file, held_out: false, found: '', issues: [] }))];
    this.tooMany = all.length > mostFiles;
    this.#refit(all.slice(0, mostFiles));
  }

  remove(index: number): void {
    this.#refit(this.files.filter((_file, at) => at !== index));
  }

  /** A file of power belongs to the run of the file before it. */
  moveUp(index: number): void {
    const files = [...this.files];
    files.splice(index - 1, 0, ...files.splice(index, 1));
    this.#refit(files);
  }

  holdOut(index: number, heldOut: boolean): void {
    this.#refit(this.files.map((file, at) => (at === index ? { ...file, held_out: heldOut } : file)));
  }

  /** What is known of former files goes. */
  cancel(): void {
    this.#stop?.();
    this.#stop = null;
    this.#put({ kind: 'cancelled' });
  }

  again(): void {
    this.#refit(this.files);
  }

  /** Which measurements to begin with, of the open scenario. */
  askAdvice(): void {
    if (this.#asksAdvice || this.files.length > 0) return;
    this.#asksAdvice = true;
    this.#fitting.fit([], this.#document(), (message) => {
      if (message.kind !== 'advice') return;
      this.advice = message.advice;
      this.#tell();
    });
  }

  #refit(files: readonly CalibrationFile[]): void {
    this.#stop?.();
    this.#stop = null;
    this.files = files.map((file) => ({ ...file, found: '', issues: [] }));
    if (files.length === 0) {
      this.answer = null;
      this.#put({ kind: 'empty' });
      return;
    }
    this.#put({ kind: 'working', phase: 'reading', share: 0, tried: 0 });
    const asked = files.map(({ file, held_out: heldOut }) => ({ file, name: file.name, held_out: heldOut }));
    this.#stop = this.#fitting.fit(asked, this.#document(), (message) => this.#hear(message));
  }

  #hear(message: FromCalibrator): void {
    if (message.kind === 'file') {
      this.files = this.files.map((file, at) => (at === message.index ? { ...file, ...message.read } : file));
      this.#tell();
    } else if (message.kind === 'progress') {
      this.#put({ kind: 'working', phase: message.phase, share: message.share, tried: message.tried });
    } else if (message.kind === 'failed') {
      this.answer = null;
      this.#put({ kind: 'failed', issues: message.issues });
    } else if (message.kind === 'advice') {
      // Of files none of which has times.
      this.answer = null;
      this.#put({ kind: 'failed', issues: [{ path: '', message: withoutTimes }] });
    } else if (message.kind === 'answer') {
      this.answer = message.answer;
      this.#put({ kind: 'done' });
    }
  }

  #put(progress: CalibrationProgress): void {
    this.progress = progress;
    this.#tell();
  }

  #tell(): void {
    for (const hear of this.#heard) hear();
  }
}
