// Links by both decoders, the page's and the command's: those of the past, hostile ones, and the way there and back.
import { describe, expect, it } from 'vitest';
import corpus from '../../../tests/links/corpus.json';
import { isBuilt, link as command } from '../../../tests/links/command.mjs';
import { hasTail, hostileLinks, randomScenario } from '../../../tests/links/hostile.mjs';
import { getAt, type Document } from '../state/document';
import { encodeLink, withPin } from './encode';
import { decodeLink } from './link';
import { readPin } from './pin';

const patience = 300_000;
/** What a decoder says of a text that is no link; the rest is the engine's to refuse. */
const structural = /cut short or damaged|unpacks to more|newer kind|longer than any|found no link/;

interface Released {
  readonly name: string;
  readonly link: string;
  readonly text: string;
  /** null: of a preset, which may change. */
  readonly canonical: string | null;
  readonly members: Readonly<Record<string, unknown>>;
  readonly trace: string | null;
  readonly pin: string;
}

const released = corpus.links as unknown as readonly Released[];

describe('released links', () => {
  it('are different ones', () => expect(new Set(released.map(({ link }) => link)).size).toBe(released.length));
  it.each(released)('$name is read as ever', async ({ link, text, trace, pin }) => {
    const read = await decodeLink(`#${link}`);
    expect(read).toMatchObject({ text, pin });
    if (read.kind === 'packed') expect(read.trace_name).toBe(trace);
    expect(pin === '' || readPin(pin) !== null).toBe(true);
  });
  it.skipIf(!isBuilt)('are read as ever by the command, too', () => {
    const { status, stdout } = command(
      ['decode', '-'],
      released.map(({ link }) => `https://example.org/x/#${link}`).join('\n'),
    );
    expect(status).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.length).toBe(released.length);
    for (const [index, { canonical, members, name }] of released.entries()) {
      if (canonical !== null) expect(lines[index], name).toBe(canonical);
      const read = JSON.parse(lines[index] ?? '') as Document;
      for (const [pointer, value] of Object.entries(members)) expect(getAt(read, pointer), name).toEqual(value);
    }
  });
});

describe('hostile links', () => {
  const links = hostileLinks(1000);
  it(
    'each has an answer, in time, and none is repeated in it',
    async () => {
      const begin = performance.now();
      let longest = 0;
      for (const { name, link } of links) {
        const before = performance.now();
        const read = await decodeLink(`#${link}`);
        longest = Math.max(longest, performance.now() - before);
        if (read.kind === 'unreadable') {
          expect(read.reason, name).toMatch(/^The link [a-z ]+\.$/);
        } else if (read.kind !== 'none') {
          expect(read.text.length, name).toBeLessThanOrEqual(256 * 1024);
          expect(() => readPin(read.pin)).not.toThrow();
        }
      }
      expect(Object.prototype).not.toHaveProperty('polluted');
      expect(longest).toBeLessThan(1000);
      console.log(
        `${links.length} links in ${Math.round(performance.now() - begin)} ms, the slowest ${Math.round(longest)} ms`,
      );
    },
    patience,
  );
  it.skipIf(!isBuilt)(
    'the command refuses what the page refuses, and has a message for each',
    async () => {
      const { status, stderr, stdout } = command(['decode', '-'], links.map(({ link }) => `#${link}`).join('\n'));
      expect(status).toBe(2);
      const said = new Map<number, string>();
      for (const line of stderr.split('\n')) {
        const [, number = '0'] = /^link (\d+)/.exec(line) ?? [];
        if (!/: (replays the trace|pinned:|its pinned)/.test(line))
          said.set(Number(number), `${said.get(Number(number)) ?? ''}${line}\n`);
      }
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      expect(stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
      const read = stdout.split('\n').length - 1;
      expect(read + [...said.keys()].filter((number) => number > 0).length).toBe(links.length);
      for (const [index, { name, link }] of links.entries()) {
        const page = await decodeLink(`#${link}`);
        const words = said.get(index + 1) ?? '';
        const refused = page.kind === 'unreadable' || page.kind === 'none';
        if (refused) expect(words, `${name} ${link.slice(0, 300)}`).not.toBe('');
        else if (!hasTail(link)) expect(structural.test(words), `${name}: ${words} ${link.slice(0, 300)}`).toBe(false);
      }
    },
    patience,
  );
});

describe.skipIf(!isBuilt)('page and command', () => {
  it(
    '200 random scenarios go there and back with the same id, text and fingerprint',
    async () => {
      const documents = Array.from({ length: 200 }, (_, index) => JSON.stringify(randomScenario(index + 1)));
      const links = await Promise.all(documents.map((text) => encodeLink(text, null)));
      const there = command(['decode', '-'], links.join('\n'));
      expect(there.stderr).toBe('');
      const canonical = there.stdout.trimEnd().split('\n');
      expect(canonical.length).toBe(documents.length);
      for (const [index, text] of canonical.entries()) {
        const { stdout: back, status } = command(['encode', '-'], text);
        expect(status).toBe(0);
        expect(await decodeLink(`#${back.trim()}`), documents[index] ?? '').toEqual({
          kind: 'packed',
          text,
          trace_name: null,
          pin: '',
        });
        const own = command(['open', links[index] ?? '', '--once']);
        expect(own.stderr).toBe('');
        const { scenario_id: id, fingerprint, engine_version: version } = JSON.parse(own.stdout);
        // The page's link with what the first run found, opened from the command's text.
        const pinned = withPin(back.trim(), `v=1.${version}&r=meets&f=${fingerprint}`);
        const again = command(['open', pinned, '--once']);
        expect(again.stderr).toContain(`verified: the same bits, fingerprint ${fingerprint}`);
        expect(JSON.parse(again.stdout).scenario_id).toBe(id);
      }
    },
    patience,
  );
});
