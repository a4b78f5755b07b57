/**
 * What several threads are worth on this machine: `node bench/threads.mjs [--threads 1,2,4,8] [--connections 64,256,1000]
 * [--seconds 2] [--rounds 2] [--only list,429,get,create] PROGRAM …` (by default dist/petstore.cjs by this Node) prints a
 * table. It needs nothing but Node: the load comes from processes of its own, as many as there are cores left (at least
 * two), each with its share of the connections, one request at a time on each. For every thread count there is a server
 * of its own on a store of its own; they are loaded in turn. CPU a request is the server's alone.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const WARM_MS = 300;
const TICKS_PER_SECOND = 100;
const HEAD_END = Buffer.from('\r\n\r\n');
const UNLIMITED = '1000000000';
const SELF = fileURLToPath(import.meta.url);

/** One process of load: counts the replies that come in the middle of its time, and those with another status. */
function send({ port, connections, request, status, ms }) {
  const bytes = Buffer.from(request);
  const wanted = `HTTP/1.1 ${status} `;
  let [replies, wrong, isCounting] = [0, 0, false];
  for (let i = 0; i < connections; i++) {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => socket.write(bytes));
    let missing = 0;
    socket.on('data', (chunk) => {
      if (missing > 0) missing -= chunk.length;
      else {
        const end = chunk.indexOf(HEAD_END);
        const head = chunk.latin1Slice(0, end);
        const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0;
        if (!head.startsWith(wanted)) wrong++;
        missing = end + HEAD_END.length + Number(length) - chunk.length;
      }
      if (missing > 0) return;
      if (isCounting) replies++;
      socket.write(bytes);
    });
    socket.on('error', () => wrong++);
  }
  setTimeout(() => {
    isCounting = true;
    process.send('begun');
  }, WARM_MS);
  setTimeout(() => {
    process.send({ replies, wrong });
    process.exit(0);
  }, WARM_MS + ms);
}

if (process.argv[2] === 'send') send(JSON.parse(process.argv[3]));
else await main(process.argv.slice(2));

function optionsIn(words) {
  const options = {
    threads: '1,2,4,8',
    connections: '64,256,1000',
    seconds: '2',
    rounds: '2',
    only: 'list,429,get,create',
  };
  while (words[0]?.startsWith('--')) {
    const name = words.shift().slice(2);
    if (!(name in options) || words.length === 0) throw new Error(`--${name}: there are ${Object.keys(options)}`);
    options[name] = words.shift();
  }
  const program = words.length > 0 ? words : [process.execPath, join(SELF, '../../dist/petstore.cjs')];
  const numbers = (text) => text.split(',').map(Number);
  return { ...options, threads: numbers(options.threads), connections: numbers(options.connections), program };
}

async function main(words) {
  const { threads, connections, seconds, rounds, only, program } = optionsIn(words);
  const dir = mkdtempSync(join(tmpdir(), 'petstore-threads-'));
  const servers = [];
  try {
    console.log(
      `${cpus()[0].model}, ${availableParallelism()} cores, ${process.platform}, load by Node ${process.version}`,
    );
    for (const count of threads) servers.push(await serve(program, join(dir, String(count)), count));
    for (const kind of only.split(',')) {
      for (const open of connections) {
        const rows = await measure(servers, kind, { open, ms: 1000 * Number(seconds), rounds: Number(rounds) });
        for (const row of rows) console.log(row);
      }
    }
  } finally {
    for (const { child } of servers) child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }
}

async function measure(servers, kind, { open, ms, rounds }) {
  const found = servers.map(() => []);
  for (let round = 0; round < rounds; round++) {
    const order = servers.map((_, at) => at);
    for (const at of round % 2 ? order.reverse() : order) found[at].push(await load(servers[at], kind, open, ms));
  }
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  const rows = found.map((all) => ({
    perSecond: median(all.map((one) => one.perSecond)),
    cpu: median(all.map((one) => one.cpu)),
  }));
  return rows.map(({ perSecond, cpu }, at) => {
    const times = (perSecond / rows[0].perSecond).toFixed(2);
    const cells = [kind, `${open} connections`, `${servers[at].threads} threads`, `${Math.round(perSecond)}/s`];
    return `| ${[...cells, `${times} x`, `${cpu.toFixed(1)} us`, `${(cpu / rows[0].cpu).toFixed(2)} x`].join(' | ')} |`;
  });
}

async function serve(program, data, threads) {
  const run = (words, input) => {
    const ran = spawnSync(program[0], [...program.slice(1), ...words, '--data', data], { encoding: 'utf8', input });
    if (ran.status !== 0) throw new Error(`${words.join(' ')}: ${ran.error ?? ran.stderr}`);
    return ran.stdout;
  };
  const key = (perDay) => {
    const limits = ['--per-minute', perDay, '--per-day', perDay];
    return JSON.parse(run(['keys', 'create', '--plan', 'enterprise', ...limits, '--json'])).key;
  };
  const keys = { rich: key(UNLIMITED), poor: key('1') };
  run(['import', '-'], '{"name":"Rex of the threads","categoryId":1}\n'.repeat(30));
  const serving = ['serve', '--port', '0', '--ban-after', '0', '--threads', String(threads), '--data', data];
  const child = spawn(program[0], [...program.slice(1), ...serving], { stdio: ['ignore', 'pipe', 'inherit'] });
  child.stderr?.resume();
  const [line] = await once(child.stdout, 'data');
  const port = Number(/:(\d+)\/v1/.exec(String(line))?.[1]);
  return { child, threads, port, keys };
}

function requestOf(kind, { rich, poor }) {
  const body = kind === 'create' ? '{"name":"Rex","categoryId":1}' : '';
  const line = kind === 'create' ? 'POST /v1/pets' : kind === 'get' ? 'GET /v1/pets/1' : 'GET /v1/pets?limit=20';
  const length = body ? `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n` : '';
  const key = kind === '429' ? poor : rich;
  return `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${length}\r\n${body}`;
}

/** The first reply to the poor key may be a 200. */
async function load({ child, threads, port, keys }, kind, open, ms) {
  const processes = Math.max(2, availableParallelism() - threads);
  const status = { list: 200, get: 200, create: 201, 429: 429 }[kind];
  const share = Math.ceil(open / processes);
  const senders = Array.from({ length: Math.ceil(open / share) }, (_, at) => {
    const order = { port, connections: Math.min(share, open - at * share), request: requestOf(kind, keys), status, ms };
    return spawn(process.execPath, [SELF, 'send', JSON.stringify(order)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  });
  const results = senders.map((sender) => {
    return new Promise((resolve) => sender.on('message', (told) => told !== 'begun' && resolve(told)));
  });
  await Promise.all(senders.map((sender) => once(sender, 'message')));
  const before = cpuSeconds(child.pid);
  const told = await Promise.all(results);
  const cpu = cpuSeconds(child.pid) - before;
  const sum = (name) => told.reduce((total, one) => total + one[name], 0);
  if (sum('wrong') > 1) throw new Error(`${kind}: ${sum('wrong')} of ${sum('replies')} replies were wrong`);
  return { perSecond: (1000 * sum('replies')) / ms, cpu: (1e6 * cpu) / sum('replies') };
}

/** Not that of measure.ts, which is exact to the nanosecond: that is TypeScript, which not every Node reads. */
function cpuSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
