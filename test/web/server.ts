/** The program itself, serving from a directory of its own, with a key that no test here can use up. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { program, serveProgram } from '../program.ts';

export const SEED = new URL('../../data/seed.json', import.meta.url).pathname;

export interface Live {
  /** Without `/v1`. */
  origin: string;
  /** Of the business plan. */
  key: string;
  /** Runs an operator's command on this server; what it printed. */
  operate(...command: string[]): Promise<string>;
  stop(): Promise<void>;
}

export async function startLive(...options: string[]): Promise<Live> {
  const data = await mkdtemp(join(tmpdir(), 'petstore-web-'));
  const { url, key, stop } = await serveProgram(['--data', data, '--first-key', 'business', ...options]);
  return {
    origin: new URL(url).origin,
    key,
    async operate(...command) {
      const { exit, stdout, stderr } = await program([...command, '--data', data]);
      if (exit !== 0) throw new Error(`petstore ${command.join(' ')}: ${stderr}`);
      return stdout.trim();
    },
    async stop() {
      await stop();
      await rm(data, { recursive: true });
    },
  };
}
