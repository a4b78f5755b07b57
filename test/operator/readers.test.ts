/** The output of commands where nobody reads it, where it has no room, and on a terminal of any width. */
import assert from 'node:assert/strict';
import { open } from 'node:fs/promises';
import { test } from 'node:test';
import { facts, table, told, withProgress } from '../../src/operator/output.ts';
import { serving, temporary } from '../program.ts';
import { workplace } from './workplace.ts';

/** A reader that is gone before anything is written: its end of the pipe is closed. */
const UNREAD = 'exec > >(exec true); wait $!';

test('a reader that goes away hides no verdict', async (t) => {
  const { after, cwd } = await workplace(t);
  const words = ['--lab', '--environment', 'staging', '--first-key', 'free', '--data', 'lab'];
  await serving(t, words, { cwd });
  const ungraded = await after(UNREAD, 'grade k1 --at-least A --data lab');
  assert.equal(ungraded.exit, 5, ungraded.stderr);
  assert.match(ungraded.stderr, /^there is no grade yet/);
});

test('advice about a store names its directory: without it the command would reach another one', async (t) => {
  const { after, spawn, stored, done } = await workplace(t);
  await done('keys create --plan free');
  const [full, before] = [await open('/dev/full', 'w'), await stored()];
  t.after(() => full.close());
  const { ended, stderr } = await spawn('keys create --plan free --data shop', ['ignore', full.fd, 'pipe']);
  assert.deepEqual(await ended, [1, null]);
  assert.match(stderr(), /the key k1 is lost: end it with .* keys revoke k1 --data shop, and create another\n$/);
  const unread = await after('exec >&-', 'keys create --plan free --data shop');
  assert.match(unread.stderr, /the key k2 is lost: end it with .* keys revoke k2 --data shop, /);
  assert.deepEqual(await stored(), before);
});

test('a backup that its reader did not take, or that standard output has no room for, says so of the output', async (t) => {
  const { after, animals, done, spawn } = await workplace(t);
  await animals(5_000);
  await done('import in');
  const unread = await after(UNREAD, 'backup -');
  assert.deepEqual([unread.exit, unread.stderr], [1, 'the backup is not whole: its reader went away\n']);
  const full = await open('/dev/full', 'w');
  t.after(() => full.close());
  const { ended, stderr } = await spawn('backup -', ['ignore', full.fd, 'pipe']);
  assert.deepEqual(await ended, [1, null]);
  assert.match(stderr(), /^standard output: no space left on device/);
});

test('a line of progress is never as wide as the terminal, and has a bar where there is room', async (t) => {
  const { stderr } = process;
  const { isTTY, columns: own } = stderr;
  const write = t.mock.method(stderr, 'write', () => true);
  t.after(() => Object.assign(stderr, { isTTY, columns: own }));
  const line = async (what: string, share: number, columns: number) => {
    Object.assign(stderr, { isTTY: true, columns });
    write.mock.resetCalls();
    await withProgress(what, async (at) => at(share, 1));
    const [drawn] = write.mock.calls[0].arguments as unknown as [string];
    return /^\r(.*)\x1b\[K$/.exec(drawn)![1];
  };
  const long = `checking ${await temporary(t)}/animals-of-the-whole-year.jsonl`;
  for (let columns = 1; columns < 120; columns++)
    for (const what of ['import', long]) assert.ok((await line(what, 0.5, columns)).length < columns, `${columns}`);
  assert.equal(await line('import', 0.5, 80), 'import [############............] 50 %');
  assert.match(await line(long, 0.5, 80), /^checking .*… \[#{12}\.{12}\] 50 %$/);
  assert.match(await line(long, 1, 40), /^checking .*… 100 %$/);
  write.mock.resetCalls();
  await withProgress('checking -', async (at) => at(65_536, 0));
  assert.equal(write.mock.callCount(), 0, 'of a pipe nobody knows how much is to come');
});

test('a message takes the place of the progress bar; a terminal that cannot draw over a line has no bar', async (t) => {
  const { stderr, env } = process;
  const [{ isTTY }, { TERM }] = [stderr, env];
  let written = '';
  t.mock.method(stderr, 'write', (text: string, taken?: () => void) => {
    written += text;
    taken?.();
    return true;
  });
  t.after(() => {
    Object.assign(stderr, { isTTY });
    if (TERM === undefined) delete env.TERM;
    else env.TERM = TERM;
  });
  const work = () =>
    withProgress('checking', async (at) => {
      at(1, 2);
      await told('line 7: bad\n');
    });
  Object.assign(stderr, { isTTY: true });
  env.TERM = 'xterm';
  await work();
  assert.match(written, /^\rchecking \S+ 50 %\x1b\[K\r\x1b\[Kline 7: bad\n$/);
  [written, env.TERM] = ['', 'dumb'];
  await work();
  assert.equal(written, 'line 7: bad\n');
});

test('a table breaks its last column between words where the terminal would break it within one', (t) => {
  const { stdout } = process;
  const { columns: own } = stdout;
  t.after(() => Object.assign(stdout, { columns: own }));
  const at = (columns: number | undefined, print: () => string) => {
    Object.assign(stdout, { columns });
    return print();
  };
  const rows = () => table([{ what: 'owner and modes', why: 'data belongs to this user, and nobody else can write' }]);
  const [heading, row] = at(undefined, rows).split('\n');
  assert.deepEqual(
    [heading, row],
    ['WHAT             WHY', 'owner and modes  data belongs to this user, and nobody else can write'],
  );
  for (const columns of [row.length, 0]) assert.equal(at(columns, rows), `${heading}\n${row}`); // 0: not known
  assert.deepEqual(at(45, rows).split('\n').slice(1), [
    'owner and modes  data belongs to this user,',
    '                 and nobody else can write',
  ]);
  assert.deepEqual(at(35, rows).split('\n').slice(1), [
    'owner and modes',
    '    data belongs to this user, and',
    '    nobody else can write',
  ]);
  const digest = 'd'.repeat(64);
  assert.equal(
    at(60, () => facts({ digest })),
    `digest  ${digest}`,
  );
});
