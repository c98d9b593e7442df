import { describe, expect, it } from 'vitest';
import type { Report } from 'servecast';
import { hasPower, tabInForce, tabOf, tabs, tabsOf, withPower, withTab } from './tabs';

const page = 'https://host.example/app/?theme=x#p=some&a.b=1';
const alone = {} as Report;
const cluster = { replicas: [] } as unknown as Report;

describe('the view in the address', () => {
  it('is the standard one where none, or one that there is not, is named', () => {
    expect(tabOf(page)).toBe('why');
    expect(tabOf('https://host.example/?view=nonsense')).toBe('why');
  });
  it('comes back, beside what else the address holds', () => {
    for (const { id } of tabs) expect(tabOf(withTab(page, id))).toBe(id);
    expect(withTab(page, 'compare')).toBe('https://host.example/app/?theme=x&view=compare#p=some&a.b=1');
    expect(withTab(withTab(page, 'compare'), 'why')).toBe(page);
  });
});

it('the address has the tile of power once it is asked for, beside the view', () => {
  expect(hasPower(page)).toBe(false);
  const shown = withPower(withTab(page, 'time'), true);
  expect(shown).toBe('https://host.example/app/?theme=x&view=time&tiles=power#p=some&a.b=1');
  expect(hasPower(withTab(shown, 'why'))).toBe(true);
  expect(hasPower('https://host.example/?tiles=nonsense')).toBe(false);
  expect(withPower(withTab(shown, 'why'), false)).toBe(page);
});

describe('the tabs of a scenario', () => {
  it('have the cluster only where there is one', () => {
    expect(tabsOf(alone).map(({ id }) => id)).not.toContain('cluster');
    expect(tabsOf(cluster).map(({ id }) => id)).toContain('cluster');
    expect(tabInForce('cluster', alone)).toBe('why');
    expect(tabInForce('cluster', cluster)).toBe('cluster');
    expect(tabInForce('cluster', null)).toBe('cluster');
  });
  it('have keys of their own', () => {
    expect(new Set(tabs.map(({ key }) => key)).size).toBe(tabs.length);
  });
});
