// Why a report has no power, in words: what the engine's rules for it (docs/model.md, "Power") say of this scenario.
import type { Report } from 'servecast';
import { getAt, isObject, type Document } from './document';
import { firstRun } from '../lib/first-run';

export interface UnknownPower {
  readonly reason: string;
  /** A field that would make it known; null: none would. */
  readonly pointer: string | null;
}

const parts = ['busy_w', 'compute_w', 'memory_w'];
const amount = (of: Document, name: string): number => Number(of[name] ?? 0);

export function unknownPower(report: Report): UnknownPower {
  const scenario = report.scenario as Document;
  const at = (pointer: string) => getAt(scenario, pointer);
  if (at('/engine/compat') === 'blis')
    return {
      reason: 'BLIS’s rules (engine.compat) count neither the arithmetic nor the reads of a step.',
      pointer: null,
    };
  const { scaling } = firstRun(report);
  if (scaling && scaling.starts + scaling.stops > 0)
    return {
      reason: 'Replicas start and stop in this run, and what a starting replica draws was not measured.',
      pointer: null,
    };
  const pools = at('/cluster/pools');
  const places = Array.isArray(pools) ? pools.map((_pool, index) => `/cluster/pools/${index}/hardware`) : [];
  for (const place of new Set([...places.filter((own) => at(own) !== undefined), '/hardware'])) {
    const card = at(place);
    if (!isObject(card)) continue;
    const isCapped = amount(card, 'power_cap_w') > 0;
    if (isCapped && parts.some((name) => amount(card, name) > 0)) continue;
    const name = typeof card['name'] === 'string' && card['name'] !== '' ? card['name'] : 'this GPU';
    return {
      reason: `No power law of ${name} is known: ${isCapped ? 'its power was not measured beside runs that can be simulated' : 'the most that it draws is not stated'}.`,
      pointer: `${place}/${isCapped ? 'busy_w' : 'power_cap_w'}`,
    };
  }
  return { reason: 'No time was simulated.', pointer: null };
}
