// The wheel and the Debian package of tools/, made of the command under test, unpacked and used as people use them.
// The wheel is tried without pip, which may not be there; so is dpkg, elsewhere than on Debian.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { command, slow } from '../command.mjs';
import { inFolder } from '../in_folder.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const sanitized = slow && 'the sanitized command takes minutes to pack: ./dev test all has it';
const missing = (program) => sanitized || (spawnSync(program, ['--version']).status !== 0 && `${program} is not there`);

function ran(program, words, options = {}) {
  const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8', cwd: root, ...options });
  assert.equal(status, 0, `${program} ${words.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}
const preset = 'llama-3.1-8b-h100-chat';
const few = ['--set', 'workload.requests=200'];

const program = `
import json, sys, servecast
few = {"workload.requests": 200}
report = servecast.run("${preset}", set=few, once=True)
document = json.loads(sys.argv[1])
assert servecast.run(document, once=True)["fingerprint"] == report["fingerprint"]
assert report["verdict"]["sentence"] in report._repr_html_().replace("&lt;", "<").replace("&gt;", ">")
assert "<td>TTFT p99</td>" in report._repr_html_(), report._repr_html_()
answer = servecast.plan("cost", document, input=0.1, output=0.5)
assert answer.sentence.endswith("."), answer.sentence
points = servecast.sweep(document, {"workload.arrivals.rate_per_s": [2, 4]}, once=True)
assert len(points) == 2 and all("report" in point for point in points)
try:
    servecast.run(document, set={"engine.max_num_seqs": -1, "slo.0.limit_ms": -5})
    raise SystemExit("not refused")
except servecast.ServecastError as error:
    assert len(error.issues) == 2 and "max_num_seqs" in str(error), error.issues
print(json.dumps(report))
`;

test('Wheel_RunsPlansSweeps_AndRaisesEveryIssue', { skip: missing('python3') }, () =>
  inFolder((path, folder) => {
    const words = ['tools/wheel/build.py', command, '0.1.0', 'manylinux2014_x86_64', folder];
    const wheel = ran('python3', words).trim();
    assert.match(wheel, /servecast-0\.1\.0-py3-none-manylinux2014_x86_64\.whl$/);
    ran('python3', ['-m', 'zipfile', '-e', wheel, path('site')]);
    const env = { ...process.env, PYTHONPATH: path('site'), PYTHONDONTWRITEBYTECODE: '1' };
    const document = ran(command, ['show', preset, ...few]);
    const said = JSON.parse(ran('python3', ['-c', program, document], { env }));
    assert.deepEqual(said, JSON.parse(ran(command, ['run', preset, ...few, '--once'])));
    assert.equal(ran('python3', ['-m', 'servecast', '--version'], { env }), ran(command, ['--version']));
    // RECORD has every file, with its digest and size, as pip checks them.
    const check = `
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
rows = list(csv.reader(io.StringIO(wheel.read("servecast-0.1.0.dist-info/RECORD").decode())))
assert sorted(row[0] for row in rows) == sorted(wheel.namelist())
for name, digest, size in rows[:-1]:
    data = wheel.read(name)
    assert int(size) == len(data), name
    assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), name
`;
    ran('python3', ['-c', check, wheel]);
  }),
);

test('Deb_HasTheCommandItsPageAndCompletions', { skip: missing('dpkg-deb') }, () =>
  inFolder((path, folder) => {
    const deb = ran('sh', ['tools/deb.sh', command, 'amd64', '0.1.0', folder]).trim();
    ran('dpkg-deb', ['-x', deb, path('unpacked')]);
    const own = path('unpacked/usr/bin/servecast');
    assert.equal(ran(own, ['--version']), ran(command, ['--version']));
    const fields = ran('dpkg-deb', ['-f', deb]);
    assert.match(fields, /^Package: servecast\nVersion: 0\.1\.0\nArchitecture: amd64$/m);
    assert.doesNotMatch(fields, /^Depends/m);
    const page = spawnSync('gzip', ['-dc', path('unpacked/usr/share/man/man1/servecast.1.gz')], { encoding: 'utf8' });
    assert.equal(page.stdout, ran(command, ['man']));
  }),
);
