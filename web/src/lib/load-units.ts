// How a rate of requests reads in other units. Tokens and users follow from what a run came to.
import type { Report } from 'servecast';

export type LoadUnit = 'rpm' | 'tokens' | 'users';

/** So many of the unit are one request a second; null: no run says. Users by Little's law: they hold for the rate of the
    run, and nearly for those around it. */
export function perRequestPerS(unit: LoadUnit, report: Report | null): number | null {
  if (unit === 'rpm') return 60;
  const { output_tokens_per_s: tokens = 0, requests_per_s: requests = 0, e2e_ms: e2e } = report ?? {};
  const factor = unit === 'tokens' ? tokens / requests : (e2e?.mean ?? 0) / 1000;
  return Number.isFinite(factor) && factor > 0 ? factor : null;
}
