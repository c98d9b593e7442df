// What an answer took, as work that is counted: the same on every machine, whatever else it does.
import type { Report } from 'servecast';
import { firstRun } from './first-run';

/** Not repeated many times unasked: a run of more, which takes some seconds on a laptop. */
const mostUnasked = 4_000_000;

/** Engine steps and requests of all runs, about: each is taken to be as the first one was. */
export function workOf(report: Report): number {
  const { arrived, steps } = firstRun(report);
  const { certainty } = report;
  const requests = certainty ? certainty.runs * certainty.requests_per_run : arrived;
  return requests * (1 + steps / Math.max(1, arrived));
}

export const tookLong = (report: Report): boolean => workOf(report) > mostUnasked;
