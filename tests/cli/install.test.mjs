// cmake --install gives a command with its manual page and completions, and a library that another project finds.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { command, slow } from '../command.mjs';
import { inFolder } from '../in_folder.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const build = dirname(command);

function ran(program, words, options = {}) {
  const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8', ...options });
  assert.equal(status, 0, `${program} ${words.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

test('Man_HasTheHelpOfEveryCommand_AndNoRequestThatHelpsBegin', () => {
  const page = ran(command, ['man']);
  const plain = page.replaceAll('\\-', '-').replaceAll('\\e', '\\').replaceAll('\\&', '');
  const [, commands] = plain.split('.SH COMMANDS\n');
  for (const name of ['run', 'plan', 'plan search', 'import', 'mcp', 'completion']) {
    assert.ok(commands.includes(ran(command, [...name.split(' '), '--help'])), name);
  }
  assert.ok(plain.includes(ran(command, ['--help'])));
  for (const line of page.split('\n').filter((each) => /^[.']/.test(each))) {
    assert.match(line, /^\.(TH|SH|SS|in|nf|fi)\b/);
  }
});

const skip = slow
  ? 'the sanitized engine is not for others: ./dev test all has it'
  : !existsSync(join(build, 'CMakeCache.txt'));

test('Install_OtherProjectsFindTheEngine_AndSayWhatTheCommandSays', { skip }, () =>
  inFolder((path, folder) => {
    const prefix = path('usr');
    ran('cmake', ['--install', build, '--prefix', prefix]);
    const has = (file) => readFileSync(join(prefix, file), 'utf8');
    assert.equal(has('share/man/man1/servecast.1'), ran(command, ['man']));
    assert.equal(has('share/bash-completion/completions/servecast'), ran(command, ['completion', 'bash']));
    assert.match(has('share/zsh/site-functions/_servecast'), /^#compdef servecast\n/);
    assert.ok(existsSync(join(prefix, 'share/fish/vendor_completions.d/servecast.fish')));

    const example = join(root, 'docs/examples/cpp');
    const options = [`-DCMAKE_PREFIX_PATH=${prefix}`, '-DCMAKE_BUILD_TYPE=Release'];
    ran('cmake', ['-S', example, '-B', path('build'), ...options]);
    ran('cmake', ['--build', path('build')]);
    const said = JSON.parse(ran(join(folder, 'build/forecast'), ['12']));
    const words = ['run', 'llama-3.1-8b-h100-chat', '--set', 'workload.arrivals.rate_per_s=12', '--sampling'];
    assert.deepEqual(said, JSON.parse(ran(join(prefix, 'bin/servecast'), words)));
  }),
);
