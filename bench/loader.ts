/** Loads a server from another process on another core: with wrk at saturation where it is installed, else with undici. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Bench } from './bench.ts';
import type { Call, LoadOrder, LoadReport } from './load.ts';
import { pinned } from './machine.ts';
import { run } from './run.ts';

const WRK_SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url));
/** Over what the load itself lasts: starting, and waiting for the last replies. */
const LOAD_GRACE_MS = 60_000;

/** Fails if any reply had another status than it should: what is wrong is not worth timing. */
export async function load(bench: Bench, order: LoadOrder): Promise<LoadReport> {
  const report = await (wrkCan(bench, order) ? withWrk(bench, order) : withUndici(bench, order));
  if (report.wrong > 0 || report.requests === 0) {
    const { method, path } = order.calls[0];
    throw new Error(`${method} ${path} on ${order.origin}: ${report.wrong} of ${report.requests} replies were wrong`);
  }
  return report;
}

/** wrk counts whole seconds, knows no rate, and tells only refusals (400 and up) from the rest. */
function wrkCan(bench: Bench, { seconds, perSecond, calls }: LoadOrder): boolean {
  const oneKind = calls.every((call) => call.status >= 400 === calls[0].status >= 400);
  return bench.wrk !== undefined && Number.isInteger(seconds) && perSecond === undefined && oneKind;
}

async function withUndici(bench: Bench, order: LoadOrder): Promise<LoadReport> {
  const program = await bench.once('load', () => buildSender(bench.file('load.mjs')));
  const file = bench.file('load.order.json');
  writeFileSync(file, JSON.stringify(order));
  const command = pinned(bench.cores?.load, [process.execPath, program, file]);
  return JSON.parse(await run(command, { timeoutMs: order.seconds * 1000 + LOAD_GRACE_MS }));
}

/** One file, so that Node starts it without a loader for TypeScript. */
async function buildSender(outfile: string): Promise<string> {
  const requireForCommonJs = `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`;
  const entry = fileURLToPath(new URL('load.ts', import.meta.url));
  const options = { bundle: true, platform: 'node', format: 'esm', target: 'node20', logLevel: 'error' } as const;
  await build({ entryPoints: [entry], outfile, banner: { js: requireForCommonJs }, ...options });
  return outfile;
}

async function withWrk(bench: Bench, { origin, calls, connections, seconds }: LoadOrder): Promise<LoadReport> {
  const file = bench.file('requests.lua');
  writeFileSync(file, `return {\n${calls.map(inLua).join(',\n')}\n}\n`);
  const options = [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '--timeout',
    '30s',
    '-s',
    WRK_SCRIPT,
    origin,
    '--',
    file,
  ];
  const command = pinned(bench.cores?.load, [bench.wrk!, ...options]);
  const printed = await run(command, { timeoutMs: seconds * 1000 + LOAD_GRACE_MS });
  const found = JSON.parse(printed.slice(printed.lastIndexOf('{"requests"')));
  const refusalsWanted = calls[0].status >= 400;
  const [p50, p90, p99, p999, max] = [found.p50, found.p90, found.p99, found.p999, found.max].map((us) => us / 1000);
  return {
    requests: found.requests,
    seconds: found.microseconds / 1e6,
    wrong: found.broken + (refusalsWanted ? found.requests - found.refused : found.refused),
    latency: { p50, p90, p99, p999, max },
    senderLateMs: 0,
  };
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
