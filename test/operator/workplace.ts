/** An operator's terminal: a folder of its own, in which commands are typed as lines. */
import assert from 'node:assert/strict';
import { type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TestContext } from 'node:test';
import type { Context } from '../../src/operator/commands.ts';
import type { EngineOptions } from '../../src/store/engine.ts';
import { openFileStore } from '../../src/store/file/store.ts';
import { SetClock } from '../clock.ts';
import { command, program, type RunOptions, type Serving, serving, temporary } from '../program.ts';

export const ANIMAL = '{"name":"Rex","categoryId":1}\n';
/** Another user than the one who runs the tests. */
export const NOBODY = 65_534;
export const isRoot = process.getuid?.() === 0;

/** For a test's `skip`. */
export const missing = (file: string, word = '--version') =>
  spawnSync(file, [word]).error === undefined ? false : `there is no ${file} on this machine`;

const wordsOf = (line: string) => line.split(' ').filter((word) => word !== '');

export async function workplace(t: TestContext) {
  const cwd = await temporary(t);
  const at = (name: string) => path.join(cwd, name);
  const run = (line: string, options: RunOptions = {}) => program(wordsOf(line), { cwd, ...options });
  /** What it printed; it must end well. */
  const done = async (line: string): Promise<string> => {
    const { exit, stdout, stderr } = await run(line);
    assert.equal(exit, 0, `${line}: ${stderr}`);
    return stdout;
  };
  const json = async <T>(line: string): Promise<T> => JSON.parse(await done(`${line} --json`));
  /** A key that has no limits to speak of. */
  const key = async (): Promise<string> => {
    const limits = '--per-minute 1000000 --per-day 1000000';
    return (await json<{ key: string }>(`keys create --plan enterprise ${limits}`)).key;
  };
  return {
    cwd,
    at,
    run,
    done,
    json,
    /** `first`: what a shell does before the program, such as setting a limit. */
    after: (first: string, line: string) => run(line, { before: ['bash', '-c', `${first} && exec "$@"`, 'bash'] }),
    serve: (line = '', options: RunOptions = {}) => serving(t, wordsOf(line), { cwd, ...options }),
    /** The file `in`, to be imported. */
    animals: (count: number) => writeFile(at('in'), ANIMAL.repeat(count)),
    stored: () => readdir(at('data')),
    key,
    /** Of a client with such a key. */
    async headers() {
      return { authorization: `Bearer ${await key()}`, 'content-type': 'application/json' };
    },
    /** A process of which the test itself reads what it wants, or nothing. */
    async spawn(line: string, stdio: StdioOptions = 'pipe', env: Record<string, string> = {}) {
      const [file, ...words] = await command();
      const child = spawn(file, [...words, ...wordsOf(line)], { cwd, stdio, env: { ...process.env, ...env } });
      t.after(() => child.kill('SIGKILL'));
      let stderr = '';
      child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
      return { child, ended: once(child, 'close'), stderr: () => stderr };
    },
  };
}

/** The value of a field of the line of log that says so. */
export async function logged(server: Serving, message: string, field: string): Promise<string> {
  while (!server.stderr().includes(`"message":"${message}"`)) await once(server.process.stderr!, 'data');
  const line = server.stderr().split('\n').find((one) => one.includes(`"message":"${message}"`))!; // biome-ignore format: one search
  return JSON.parse(line)[field];
}

export const NOW = Date.UTC(2026, 0, 1);

/** What `work` comes to, on a store that is opened in this process, at a time that the test sets. */
export async function withStore<R>(
  data: string,
  work: (context: Context, clock: SetClock) => Promise<R>,
  { wall = NOW, ...options }: Partial<EngineOptions> & { wall?: number } = {},
): Promise<R> {
  const clock = new SetClock(wall);
  const engine = await openFileStore(data, { clock, log: { info() {}, warn() {}, error() {} }, ...options });
  return work({ engine, clock, environment: 'production' }, clock).finally(() => engine.close());
}
