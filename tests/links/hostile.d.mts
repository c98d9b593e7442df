export interface HostileLink {
  readonly name: string;
  readonly link: string;
}
export function packed(text: string, level?: number): string;
export function hasTail(link: string): boolean;
export function hostileLink(number: number): HostileLink;
export function hostileLinks(count: number): readonly HostileLink[];
export function randomScenario(seed: number): object;
