import type { Catalog, Issue, Report } from 'servecast';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { EngineClient, type RunListener } from './client';
import type { FromWorker, Outcome, ToWorker } from './protocol';

class FakeWorker {
  onmessage: ((event: { data: FromWorker }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;
  readonly sent: ToWorker[] = [];
  terminated = false;
  postMessage(message: ToWorker): void {
    this.sent.push(message);
  }
  terminate(): void {
    this.terminated = true;
  }
  say(message: FromWorker): void {
    this.onmessage?.({ data: message });
  }
  lastId(kind: ToWorker['kind']): number {
    const found = this.sent.findLast((message) => message.kind === kind);
    return found && 'id' in found ? found.id : 0;
  }
}

function listener() {
  return {
    accepted: vi.fn(),
    loading: vi.fn(),
    refused: vi.fn<(reason: string, issues: readonly Issue[]) => void>(),
    progress: vi.fn(),
    finished: vi.fn<(outcome: Outcome | null, progress: number, cancelled: boolean) => void>(),
    broken: vi.fn<(message: string) => void>(),
  } satisfies RunListener;
}

const outcome: Outcome = { report: {} as Report, columns: {}, engine_ms: 1 };

describe('the engine client', () => {
  let workers: FakeWorker[];
  let client: EngineClient;
  const current = () => workers.at(-1)!;

  beforeEach(async () => {
    workers = [];
    client = new EngineClient(Promise.resolve({} as WebAssembly.Module), () => {
      workers.push(new FakeWorker());
      return current() as unknown as Worker;
    });
    await Promise.resolve();
    current().say({ kind: 'ready', catalog: {} as Catalog });
    await client.ready;
  });

  it('Cancel_OfAWorkerThatDoesNotListen_IsAnsweredSoon_ByAFreshOne_ThatIsAskedAgain', async () => {
    vi.useFakeTimers();
    const run = listener();
    client.run('{}', false, run);
    const answer = client.ask('canonical', 'text');
    const deaf = current();
    client.cancel();
    vi.advanceTimersByTime(29);
    expect(deaf.terminated).toBe(false);
    vi.advanceTimersByTime(1);
    expect(deaf.terminated).toBe(true);
    expect(run.finished).toHaveBeenCalledWith(null, 0, true);
    const canonical = { text: 'text', id: 'id', issues: [] };
    current().say({ kind: 'answer', id: current().lastId('ask'), canonical });
    expect(await answer).toEqual(canonical);
    vi.useRealTimers();
  });
  it('Cancel_ThatIsAnswered_KeepsTheWorker', () => {
    vi.useFakeTimers();
    const run = listener();
    client.run('{}', false, run);
    client.cancel();
    const id = current().lastId('run');
    current().say({ kind: 'finished', id, cancelled: true, progress: 0.3, outcome });
    vi.advanceTimersByTime(1000);
    expect(workers).toHaveLength(1);
    expect(run.finished).toHaveBeenCalledTimes(1);
    vi.useRealTimers();
  });
  it('Run_Superseded_IsSilent', () => {
    const first = listener();
    const second = listener();
    client.run('{}', false, first);
    const old = current().lastId('run');
    client.run('{}', false, second);
    current().say({ kind: 'finished', id: old, cancelled: false, progress: 1, outcome });
    current().say({ kind: 'finished', id: current().lastId('run'), cancelled: true, progress: 0.4, outcome });
    expect(first.finished).not.toHaveBeenCalled();
    expect(second.finished).toHaveBeenCalledWith(outcome, 0.4, true);
  });
  it('Band_Cancelled_OrSuperseded_IsNeverAnswered', async () => {
    const report = { fingerprint: 'new' } as Report;
    const first = vi.fn();
    void client.band('{}', false).then(first);
    const old = current().lastId('band');
    const second = client.band('{}', false);
    expect(current().sent).toContainEqual({ kind: 'cancel', id: old });
    current().say({ kind: 'band', id: old, report });
    current().say({ kind: 'band', id: current().lastId('band'), report });
    expect(await second).toBe(report);
    const third = vi.fn();
    void client.band('{}', false).then(third);
    client.cancelBand();
    current().say({ kind: 'band', id: current().lastId('band'), report });
    await Promise.resolve();
    expect(first).not.toHaveBeenCalled();
    expect(third).not.toHaveBeenCalled();
  });
  it('Band_OfAWorkerThatDies_IsNotKnown', async () => {
    const asked = client.band('{}', false);
    current().say({ kind: 'broken', id: current().lastId('band'), message: 'unreachable' });
    expect(await asked).toBeNull();
  });
  it('Worker_Dies_IsReplacedWithModuleAndTrace_AndTheRunIsTold', async () => {
    const file = new Blob(['x']);
    const loading = client.loadTrace(file, 'day.csv', () => undefined);
    current().say({
      kind: 'trace_read',
      id: current().lastId('load_trace'),
      name: 'day.csv',
      bytes: 1,
      read: { format: 'csv', reading: 'CSV', requests: 1, has_arrivals: true, issues: [] },
    });
    await loading;
    const run = listener();
    const asked = client.ask('canonical', '{}');
    client.run('{}', true, run);
    current().say({ kind: 'broken', id: current().lastId('run'), message: 'unreachable' });
    await expect(asked).rejects.toThrow('unreachable');
    expect(run.broken).toHaveBeenCalledWith('unreachable');
    expect(workers.map((worker) => worker.terminated)).toEqual([true, false]);
    await Promise.resolve();
    expect(
      current()
        .sent.map((message) => message.kind)
        .sort(),
    ).toEqual(['init', 'load_trace']);
    const next = listener();
    client.run('{}', true, next);
    current().say({ kind: 'finished', id: current().lastId('run'), cancelled: false, progress: 1, outcome });
    expect(next.finished).toHaveBeenCalledOnce();
  });
  it('Worker_NeverStarts_IsNotTriedForEver', async () => {
    const made: FakeWorker[] = [];
    const dead = new EngineClient(Promise.resolve({} as WebAssembly.Module), () => {
      made.push(new FakeWorker());
      return made.at(-1) as unknown as Worker;
    });
    made[0]!.onerror?.({ message: 'not found' });
    await expect(dead.ready).rejects.toThrow('not found');
    expect(made).toHaveLength(1);
  });
});
