/** Loads a server from another process on another core: at saturation with wrk, at a fixed rate with our own sender. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Call } from './ask.ts';
import type { Bench } from './bench.ts';
import { pinned, programOnPath } from './machine.ts';
import type { Latency } from './measure.ts';
import { run } from './run.ts';
import type { PacedOrder, SenderReport } from './sender.ts';

export interface LoadOrder {
  origin: string;
  calls: Call[];
  connections: number;
  /** Whole ones: wrk counts no others. */
  seconds: number;
}

export interface LoadReport {
  requests: number;
  seconds: number;
  latency: Latency;
}

const WRK_SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url));
const SENDER = fileURLToPath(new URL('sender.ts', import.meta.url));
/** Over what the load itself lasts: starting, and waiting for the last replies. */
const LOAD_GRACE_MS = 60_000;

export const wrk = programOnPath('wrk');

/** As many requests as go. Fails if any reply was no refusal where it should be one, or the other way round. */
export async function saturate(bench: Bench, { origin, calls, connections, seconds }: LoadOrder): Promise<LoadReport> {
  const file = bench.file('requests.lua');
  writeFileSync(file, `return {\n${calls.map(inLua).join(',\n')}\n}\n`);
  const words = `-t1 -c${connections} -d${seconds}s --timeout 30s -s ${WRK_SCRIPT} ${origin} -- ${file}`.split(' ');
  const command = pinned(bench.cores?.load, [wrk as string, ...words]);
  const printed = await run(command, { timeoutMs: seconds * 1000 + LOAD_GRACE_MS });
  const found = JSON.parse(printed.slice(printed.lastIndexOf('{"requests"')));
  const { requests, refused } = found;
  mustBeRight(origin, calls, requests, found.broken + (calls[0].status >= 400 ? requests - refused : refused));
  const [p50, p90, p99, p999, max] = [found.p50, found.p90, found.p99, found.p999, found.max].map((us) => us / 1000);
  return { requests, seconds: found.microseconds / 1e6, latency: { p50, p90, p99, p999, max } };
}

export async function sendPaced(bench: Bench, order: PacedOrder): Promise<SenderReport> {
  const program = await bench.once('sender', () => buildSender(bench.file('sender.mjs')));
  const file = bench.file('load.order.json');
  writeFileSync(file, JSON.stringify(order));
  const command = pinned(bench.cores?.load, [process.execPath, program, file]);
  const report = JSON.parse(await run(command, { timeoutMs: order.seconds * 1000 + LOAD_GRACE_MS })) as SenderReport;
  mustBeRight(order.origin, order.calls, report.requests, report.wrong);
  return report;
}

/** What is wrong is not worth timing. */
function mustBeRight(origin: string, [{ method, path }]: Call[], requests: number, wrong: number): void {
  if (wrong === 0 && requests > 0) return;
  throw new Error(`${method} ${path} on ${origin}: ${wrong} of ${requests} replies were wrong`);
}

/** One file, so that Node starts it without a loader for TypeScript. */
async function buildSender(outfile: string): Promise<string> {
  const js = `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`;
  const options = { bundle: true, platform: 'node', format: 'esm', target: 'node20', logLevel: 'error' } as const;
  await build({ entryPoints: [SENDER], outfile, banner: { js }, ...options });
  return outfile;
}

/** Quoted as in JSON, which Lua reads alike as long as nothing but printable ASCII is in it. */
function inLua({ method, path, headers, body }: Call): string {
  const fields = Object.entries(headers).map(([name, value]) => `[${quoted(name)}]=${quoted(value)}`);
  const text = body === undefined ? '' : `,body=${quoted(body)}`;
  return `{method=${quoted(method)},path=${quoted(path)},headers={${fields.join(',')}}${text}}`;
}

function quoted(text: string): string {
  if (/[^\x20-\x7e]/.test(text)) throw new Error(`wrk.lua takes printable ASCII only: ${text}`);
  return JSON.stringify(text);
}
