/** Started with a socket that a parent holds, as systemd does: a restart refuses nobody. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Agent, fetch } from 'undici';
import { command, freePort } from '../program.ts';
import { until } from '../until.ts';
import { missing, workplace } from './workplace.ts';

const RESTARTS = 5;
const WRITERS = 16;

/** Holds a socket, and prints its port; runs its words with it again and again, until one of them fails. */
const PARENT = `
  use Socket; use POSIX; $^F = 9; # what is opened stays open in children
  my $held;
  socket($held, PF_INET, SOCK_STREAM, 0) and bind($held, sockaddr_in(0, INADDR_LOOPBACK)) and listen($held, 511) or die;
  $| = 1; print +(sockaddr_in(getsockname $held))[0], "\\n";
  for (;;) {
    my $child = fork;
    if (!$child) {
      POSIX::dup2(fileno $held, 3);
      @ENV{qw(LISTEN_PID LISTEN_FDS)} = ($$, 1);
      exec @ARGV;
    }
    print "started $child\\n";
    waitpid $child, 0;
    exit 1 if $?;
  }`;

test('a restart on a socket that a parent holds refuses nobody', { skip: missing('perl', '-v') }, async (t) => {
  const { cwd, json } = await workplace(t);
  const { key } = await json<{ key: string }>('keys create --plan enterprise --per-minute 1000000 --per-day 9000000');
  const words = [...(await command()), 'serve', '--data', 'data', '--host', '192.0.2.1', '--port', '1'];
  const parent = spawn('perl', ['-e', PARENT, ...words], { cwd, stdio: ['ignore', 'pipe', 'ignore'] });
  let server = 0;
  t.after(() => {
    parent.kill('SIGKILL');
    if (server > 0) process.kill(server, 'SIGKILL');
  });
  const lines = createInterface(parent.stdout)[Symbol.asyncIterator]();
  /** What the next line that fits captures. */
  const next = async (pattern: RegExp) => {
    for (;;) {
      const { done, value } = await lines.next();
      assert.ok(!done, 'the server or its parent has ended');
      const [, found] = pattern.exec(value) ?? [];
      if (found !== undefined) return found;
    }
  };
  const port = await next(/^(\d+)$/);
  const started = async () => {
    server = Number(await next(/^started (\d+)$/));
    assert.equal(await next(/^petstore listening on (\S+)$/), `http://127.0.0.1:${port}/v1`, 'not --host and --port');
  };
  await started();

  const statuses = new Map<number, number>();
  let isOver = false;
  const writer = async () => {
    while (!isOver) {
      const dispatcher = new Agent(); // a connection for each request
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const request = { dispatcher, method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' };
      const { status } = await fetch(`http://127.0.0.1:${port}/v1/pets`, request); // rejects for one refused or reset
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      await dispatcher.close();
    }
  };
  const writers = Promise.all(Array.from({ length: WRITERS }, writer));
  for (let n = 0; n < RESTARTS; n++) {
    const before = statuses.get(201) ?? 0;
    await Promise.race([until(() => (statuses.get(201) ?? 0) > before + WRITERS), writers]);
    process.kill(server, 'SIGTERM');
    await Promise.race([started(), writers]);
  }
  isOver = true;
  await writers;
  assert.deepEqual([...statuses.keys()], [201]);
});

test('systemd-socket-activate starts it with a socket', { skip: missing('systemd-socket-activate') }, async (t) => {
  const { cwd } = await workplace(t);
  const words = [...(await command()), 'serve', '--data', 'data', '--host', '192.0.2.1'];
  const port = await freePort();
  const env = ['-E', 'PETSTORE_PORT=1', '-E', `PATH=${process.env.PATH}`];
  const child = spawn('systemd-socket-activate', [...env, '-l', `127.0.0.1:${port}`, ...words], { cwd, stdio: 'pipe' });
  let stderr = '';
  child.stderr.on('data', (text: Buffer) => (stderr += text));
  t.after(() => child.kill('SIGKILL'));
  let health: number | undefined;
  while (health === undefined) {
    health =
      (await fetch(`http://127.0.0.1:${port}/healthz`).then(
        ({ status }) => status,
        () => wait(50),
      )) ?? undefined;
  }
  assert.equal(health, 200);
  assert.match(stderr, /"warn","message":"a socket was given: --host and --port do not count"/);
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});
