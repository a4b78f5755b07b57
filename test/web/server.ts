/** The program itself, serving from a directory of its own, with a key that no test here can use up. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { program, serveProgram } from '../program.ts';

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

/** An enterprise key with few requests a minute: its id, and the key itself. */
export async function narrowKey(live: Live, perMinute: number): Promise<{ id: string; key: string }> {
  const limits = ['--per-minute', String(perMinute), '--per-day', '1000'];
  return JSON.parse(await live.operate('keys', 'create', '--plan', 'enterprise', ...limits, '--json'));
}
