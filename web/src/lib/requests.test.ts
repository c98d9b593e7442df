import { describe, expect, it } from 'vitest';
import { spansOf, transfersUnderWay } from './requests';

const column = (...values: number[]) => Float64Array.from(values);

/** One request: 2 ms on the host, 3 in the queue, 10 of prefill; its KV waits 4, travels 5 and waits 1; then it decodes. */
const handedOver = {
  arrival_s: column(1),
  scheduling_delay_ms: column(5),
  host_ms: column(2),
  queue_ms: column(3),
  prefill_ms: column(10),
  transfer_ms: column(5),
  handover_ms: column(5),
  decode_ms: column(20),
  interference_ms: column(2),
  preempted_ms: column(0),
  prefilled_s: column(1.015),
  transfer_start_s: column(1.019),
};

describe('requests', () => {
  it('Spans_FollowEachOther_InTheOrderInWhichTheyPassed', () => {
    const spans = spansOf(handedOver, 0);
    expect(spans.map(({ part }) => part)).toEqual([
      'host',
      'queue',
      'prefill',
      'handover',
      'transfer',
      'handover',
      'decode',
      'interference',
    ]);
    expect(spans.find(({ part }) => part === 'transfer')?.from).toBeCloseTo(19);
    expect(spans.at(-1)?.to).toBeCloseTo(47);
    for (const [index, span] of spans.slice(1).entries()) expect(span.from).toBe(spans[index]?.to);
  });
  it('Spans_OfWhoeverIsNotComplete_AreNone', () => {
    expect(spansOf({ ...handedOver, decode_ms: column(NaN) }, 0)).toEqual([]);
    expect(spansOf({}, 0)).toEqual([]);
  });
  it('Transfers_AreCountedByTheTimeTheyTake', () => {
    const times = column(0, 1, 2);
    const under = (starts: number[], lengths: number[]) =>
      transfersUnderWay(times, { transfer_start_s: column(...starts), transfer_ms: column(...lengths) });
    expect([...under([0.5, NaN, 1.75], [1000, NaN, 500])!]).toEqual([0.5, 0.75, 0.25]);
    expect(under([NaN], [NaN])).toBeUndefined();
    expect([...under([5], [100])!], 'beyond the last interval').toEqual([0, 0, 0]);
    expect(transfersUnderWay(column(0), {})).toBeUndefined();
  });
});
