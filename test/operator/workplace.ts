/** Where an operator stands: a folder of its own, in which commands are typed as lines. */
import assert from 'node:assert/strict';
import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TestContext } from 'node:test';
import type { EngineOptions } from '../../src/engine.ts';
import type { Context } from '../../src/operator/command.ts';
import { openFileEngine } from '../../src/operator/file-engine.ts';
import { SetClock } from '../clock.ts';
import { command, program, type RunOptions, serving, temporary } from '../program.ts';

export const ANIMAL = '{"name":"Rex","categoryId":1}\n';

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
  return {
    cwd,
    at,
    run,
    done,
    json,
    /** Of a shell: what is done before the program, such as setting a limit. */
    after: (first: string, line: string) => run(line, { before: ['bash', '-c', `${first} && exec "$@"`, 'bash'] }),
    serve: (line = '', options: RunOptions = {}) => serving(t, wordsOf(line), { cwd, ...options }),
    /** The file `in`, to be imported. */
    animals: (count: number) => writeFile(at('in'), ANIMAL.repeat(count)),
    stored: () => readdir(at('data')),
    /** What a client sends who has a key without limits to speak of. */
    async headers() {
      const limits = '--per-minute 1000000 --per-day 1000000';
      const { key } = await json<{ key: string }>(`keys create --plan enterprise ${limits}`);
      return { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
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

export const NOW = Date.UTC(2026, 0, 1);

/** What `work` comes to, on a store that is opened in this process, at a time that the test sets. */
export async function withStore<R>(
  data: string,
  work: (context: Context, clock: SetClock) => Promise<R>,
  { wall = NOW, ...options }: Partial<EngineOptions> & { wall?: number } = {},
): Promise<R> {
  const clock = new SetClock(wall);
  const engine = await openFileEngine(data, { clock, log: { info() {}, warn() {}, error() {} }, ...options });
  return work({ engine, clock, environment: 'production' }, clock).finally(() => engine.close());
}
