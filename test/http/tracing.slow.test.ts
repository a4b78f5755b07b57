/** Tracers that listen to node:http, as they are installed: one span a request, with its status and its caller's trace. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { bundle, ROOT } from '../../scripts/bundle.ts';
import { temporary } from '../program.ts';
import { exchange, PET } from '../raw.ts';
import { until } from '../until.ts';

const run = promisify(execFile);
/** Node calls what it is told by NODE_OPTIONS in each process, also those of tsx. */
const APPEND = `const { appendFileSync } = require('node:fs');
const append = (span) => appendFileSync(process.env.SPANS, JSON.stringify(span) + '\\n');\n`;

const TRACERS = {
  OpenTelemetry: {
    leavesOut: /^$/,
    packages: ['api', 'sdk-trace-node', 'instrumentation', 'instrumentation-http'].map(
      (one) => `@opentelemetry/${one}`,
    ),
    /** As its documents say. */
    setUp: `${APPEND}
const { NodeTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node');
const { registerInstrumentations } = require('@opentelemetry/instrumentation');
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http');
const exporter = {
  export(spans, done) {
    for (const span of spans) {
      append({ trace: span.spanContext().traceId, status: span.attributes['http.response.status_code'] });
    }
    done({ code: 0 });
  },
  shutdown: async () => {},
};
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
registerInstrumentations({ instrumentations: [new HttpInstrumentation()] });
require('node:http');
`,
  },
  Sentry: {
    packages: ['@sentry/node'],
    /** It leaves these out by itself. */
    leavesOut: /^(?:HEAD|OPTIONS|GET \/v1\/nothing)/,
    setUp: `${APPEND}
require('@sentry/node').init({
  dsn: 'http://key@127.0.0.1:9/1',
  tracesSampleRate: 1,
  traceLifecycle: 'static',
  beforeSendTransaction({ contexts: { trace } }) {
    append({ trace: trace.trace_id, status: trace.data['http.response.status_code'] });
    return null;
  },
});
`,
  },
};

const install = (cwd: string, packages: string[]) =>
  run('npm', ['install', '--no-audit', '--no-fund', '--omit=optional', '--ignore-scripts', ...packages], { cwd });

async function nodeOf(version: string): Promise<string> {
  const words = ['--yes', `--package=node@${version}`, '--', 'node', '-p', 'process.execPath'];
  return (await run('npx', words)).stdout.trim();
}

/** What is sent, and the statuses that come back: in one packet, and then each on a connection of its own. */
const request = (key: string, asked: string, extra: string, trace: string, body = '') => {
  const parent = randomBytes(8).toString('hex');
  const traced = `traceparent: 00-${trace}-${parent}-01\r\nsentry-trace: ${trace}-${parent}-1\r\n`;
  return `${asked} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${traced}${extra}\r\n${body}`;
};
const BODY = `Content-Type: application/json\r\nContent-Length: ${PET.length}\r\n`;
const PIPELINED: [asked: string, status: number, extra?: string, body?: string][] = [
  ['GET /v1/pets', 200],
  ['POST /v1/pets', 201, BODY, PET],
  ['POST /v1/pets', 400, BODY, PET.replace('{', '[')],
  ['GET /v1/pets/1', 200],
  ['DELETE /v1/pets/1', 204],
  ['GET /v1/nothing', 404],
  ['GET /v1/pets', 200, 'Connection: close\r\n'],
];
const ALONE: typeof PIPELINED = [
  ['HEAD /v1/pets', 200, 'Connection: close\r\n'],
  ['OPTIONS /v1/pets', 204, 'Connection: close\r\n'],
  ['GET /v1/pets', 400, 'Host: y\r\n'],
  ['POST /v1/pets', 413, 'Content-Type: application/json\r\nContent-Length: 99999\r\nExpect: 100-continue\r\n'],
];

for (const [name, { packages, setUp, leavesOut }] of Object.entries(TRACERS)) {
  test(`${name} sees each request once, with its status, on source and bundle, Node 20 and 26`, async (t) => {
    const cwd = await temporary(t);
    await install(cwd, packages);
    await writeFile(join(cwd, 'tracing.cjs'), setUp);
    const bundled = join(cwd, 'petstore.cjs');
    await bundle({ outfile: bundled, commit: 'test' });
    const source = ['--import', import.meta.resolve('tsx'), join(ROOT, 'extras/main.ts')];
    for (const version of ['20', '26']) {
      const node = await nodeOf(version);
      for (const words of [[bundled], source]) {
        const what = `Node ${version}, ${words.at(-1)}`;
        const spans = join(cwd, `spans-${version}-${words.length}`);
        await writeFile(spans, '');
        const serve = ['serve', '--port', '0', '--data', `${spans}-data`, '--first-key', 'business'];
        const env = { ...process.env, NODE_OPTIONS: `--require ${join(cwd, 'tracing.cjs')}`, SPANS: spans };
        const server = spawn(node, [...words, ...serve], { env, cwd, stdio: ['ignore', 'pipe', 'inherit'] });
        t.after(() => server.kill('SIGKILL'));
        let printed = '';
        for await (const line of createInterface(server.stdout)) {
          printed += `${line}\n`;
          if (/listening on/.test(printed) && /ps_live_\w{36}/.test(printed)) break;
        }
        const port = Number(/127\.0\.0\.1:(\d+)/.exec(printed)?.[1]);
        const key = /ps_live_\w{36}/.exec(printed)?.[0] as string;
        const wanted = new Map<string, number>();
        const bytesOf = ([asked, status, extra = '', body]: (typeof PIPELINED)[number]) => {
          const trace = randomBytes(16).toString('hex');
          if (!leavesOut.test(asked)) wanted.set(trace, status);
          return request(key, asked, extra, trace, body);
        };
        const replies = await exchange(port, PIPELINED.map(bytesOf).join(''));
        assert.deepEqual(
          replies.map(({ status }) => status),
          PIPELINED.map(([, status]) => status),
          what,
        );
        for (const row of ALONE) {
          const socket = net.connect(port, '127.0.0.1');
          socket.write(bytesOf(row));
          assert.match(await text(socket), new RegExp(`^HTTP/1.1 ${row[1]} `), what);
        }
        assert.equal((await exchange(port, 'garbage\r\n\r\n'))[0].status, 400, 'it is no request, and has no span');
        const seen = async () =>
          (await readFile(spans, 'utf8'))
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line || '{}'));
        await until(async () => (await seen()).length >= wanted.size);
        const statuses = (await seen()).map(({ trace, status }) => [trace, status]);
        assert.deepEqual(new Map(statuses as [string, number][]), wanted, what);
        assert.equal(statuses.length, wanted.size, `${what}: one span a request`);
        server.kill('SIGTERM');
        assert.deepEqual(await once(server, 'exit'), [0, null], what);
      }
    }
  });
}
