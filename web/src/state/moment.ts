// What Undo and Back bring back.
import type { AppState } from './store';

export type Moment = Pick<
  AppState,
  'base' | 'document' | 'pin' | 'preset_id' | 'wanted_trace' | 'link_trace' | 'former_workload'
>;

export function momentOf(state: AppState): Moment {
  const { base, document, pin, preset_id, wanted_trace, link_trace, former_workload } = state;
  return { base, document, pin, preset_id, wanted_trace, link_trace, former_workload };
}
