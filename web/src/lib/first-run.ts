import type { Report, RunFigures, RunReport } from 'servecast';

/** What a report says of its first run alone; of a report of one run, that is all of it. */
export function firstRun(report: Report): RunFigures {
  return report.first_run ?? (report as RunReport);
}

/** "first of 10 runs", where there are several. */
export function whichRun({ certainty }: Report): string {
  return certainty && certainty.runs > 1 ? `first of ${certainty.runs} runs` : '';
}
