/** The errands to copy, each in its language where that is installed: what they get in the drill. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporary } from '../program.ts';
import { serveLab } from './clients.ts';

const at = (name: string) => fileURLToPath(new URL(`../../docs/lab/${name}`, import.meta.url));

/** What runs it, how one sees that this is there, the grade, and what fails. */
const ERRANDS: [name: string, command: string[], look: string[], grade: string, fails: string[]][] = [
  ['errand.mjs', [process.execPath], [process.execPath, '--version'], 'A', []],
  ['errand.py', ['python3'], ['python3', '--version'], 'A', []],
  ['errand.go', ['go', 'run'], ['go', 'version'], 'A', []],
  ['errand.sh', ['sh'], ['curl', '--version'], 'B', ['reuse']], // a process, and so a connection, for each request
];

describe('errands to copy', { concurrency: true }, () => {
  for (const [name, command, [program, ...words], grade, fails] of ERRANDS) {
    it(`${name}: ${grade}`, async (t) => {
      if (spawnSync(program, words).status !== 0) return t.skip(`${program} is not installed`);
      const { url, key, ask } = await serveLab(t, await temporary(t));
      await ask('POST /lab/drill');
      const cache = { GOCACHE: process.env.GOCACHE ?? '/tmp/petstore-go-cache', GOFLAGS: '-mod=mod' };
      const env = { ...process.env, ...cache, PETSTORE_URL: new URL(url).origin, PETSTORE_KEY: key };
      await promisify(execFile)(command[0], [...command.slice(1), at(name)], { env });
      const { json } = await ask('GET /lab/grade');
      const failed = json.checks.filter(({ verdict }: { verdict: string }) => verdict === 'fail');
      const told = JSON.stringify(json, null, 1);
      assert.deepEqual(
        failed.map(({ id }: { id: string }) => id),
        fails,
        told,
      );
      assert.equal(json.grade, grade, told);
      assert.deepEqual((await ask('GET /lab/faults')).json, [], 'every fault of the drill was met');
    });
  }
});
