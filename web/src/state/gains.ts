// How much load each of several scenarios holds: the plan of that question, one after the other, until it is given up.
import type { PlanValue } from 'servecast';
import type { TraceFile } from '../engine/client';
import { isMaxRate } from './headroom';
import type { Plans } from './plans';

/** "sought" until it is known; null: there is no figure. */
export type Held = PlanValue | 'sought' | null;

/** Hears of each, by its place. Returns what gives the rest up. */
export function findHeld(
  { planners, options }: Pick<Plans, 'planners' | 'options'>,
  scenarios: readonly string[],
  trace: TraceFile | null,
  hear: (place: number, held: Held) => void,
): () => void {
  let stop: () => void = () => undefined;
  const ask = (place: number) => {
    const scenario = scenarios[place];
    if (scenario === undefined) return;
    const done = (held: Held) => {
      hear(place, held);
      ask(place + 1);
    };
    hear(place, 'sought');
    const task = { question: 'max-rate', scenario, options, prices: '', with_trace: trace !== null } as const;
    stop = planners.ask(task, trace, {
      progress: () => undefined,
      answered: (answer) => done(isMaxRate(answer) ? answer.answer : null),
      failed: () => done(null),
    });
  };
  ask(0);
  return () => stop();
}
