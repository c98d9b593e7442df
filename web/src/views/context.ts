// What view functions get: the app, its state at this rendering, and the page's own few switches.
import type { App } from '../state/app';
import type { AppState } from '../state/store';

export interface ViewContext {
  readonly app: App;
  readonly state: AppState;
  readonly theme: 'light' | 'dark';
  readonly openGroups: ReadonlySet<string>;
  toggleGroup(id: string, open: boolean): void;
  chooseTrace(): void;
  /** Opens what hides the field and focuses it. */
  focusField(pointer: string): void;
  /** Opens the comparison of a choice's values. */
  compareBy(pointer: string): void;
  share(): void;
}
