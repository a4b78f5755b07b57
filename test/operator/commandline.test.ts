import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { flagOf, read, variableOf } from '../../src/operator/arguments.ts';
import { COMMANDS } from '../../src/operator/commands.ts';
import type { CommandError } from '../../src/operator/exit.ts';
import { helpOf, overview } from '../../src/operator/help.ts';
import { command, temporary } from '../program.ts';
import { workplace } from './workplace.ts';

test('every command tells its options, ranges and defaults in lines of at most 80 characters', () => {
  const linesOf = (page: string) => {
    const [usage, ...lines] = page.split('\n');
    for (const line of lines) assert.ok(line.length <= 80, line);
    return [usage, ...lines];
  };
  const all = linesOf(overview(COMMANDS)).join('\n');
  assert.match(
    all,
    /\nExit status: 0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use by\nanother, 5 no grade yet\.$/,
  );
  for (const command of COMMANDS) {
    assert.ok(all.includes(`\n  ${command.name}`), command.name);
    const [usage, ...lines] = linesOf(helpOf(command));
    const hasFlags = Object.values(command.options).some(({ is }) => is !== 'placed');
    assert.equal(usage.endsWith(' [options]'), hasFlags, usage);
    assert.ok(usage.includes(` ${command.name} `), usage);
    const text = lines.join(' ').replace(/ +/g, ' ');
    for (const [key, { is, shown, help, allowed, fallback }] of Object.entries(command.options)) {
      const start = is === 'placed' ? `\n  ${shown} ` : `\n  ${flagOf(key)} ${shown}`.trimEnd();
      assert.ok(`\n${lines.join('\n')}`.includes(start), start);
      if (is === 'switch') continue;
      assert.ok(help.includes(allowed) || !help.includes(': '), 'what is allowed follows a colon, the only one');
      assert.ok(text.includes(allowed) || allowed === 'a path', allowed);
      assert.ok(fallback === undefined || text.includes(`(default ${fallback})`), key);
    }
  }
});

test('in a terminal of fewer columns no line of help is wider than that', () => {
  for (const columns of [50, 60, 79]) {
    const pages = [overview(COMMANDS, columns), ...COMMANDS.map((command) => helpOf(command, columns))];
    for (const line of pages.flatMap((page) => page.split('\n').slice(1))) {
      assert.ok(line.length <= columns || !line.trim().includes(' '), line); // a long word cannot be broken
    }
  }
  assert.equal(overview(COMMANDS, 200), overview(COMMANDS));
});

test('the manual names each command that takes no --json', () => {
  const [said = ''] = /With `--json`[\s\S]*?do not take it/.exec(readFileSync('docs/operating.md', 'utf8')) ?? [];
  const named = [...said.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  const without = COMMANDS.filter(({ options }) => !('json' in options)).map(({ name }) => name);
  assert.deepEqual(named.sort(), without.sort());
});

test('help and version are on stdout; without a known command the usage is on stderr, and last what was wrong', async (t) => {
  const { at, run, done, json } = await workplace(t);
  for (const [line, usage, wrong] of [
    ['--help', 'COMMAND'],
    ['-h', 'COMMAND'],
    ['help', 'COMMAND'],
    ['help keys create', 'keys create'],
    ['keys create -h --plan', 'keys create'],
    ['', 'COMMAND', 'a command is missing'],
    ['keys', 'COMMAND', 'a command is missing'],
    ['keys crate --plan pro', 'COMMAND', 'there is no command "keys crate"; did you mean keys create?'],
    ['exprot x', 'COMMAND', 'there is no command "exprot x"; did you mean export?'],
    ['key', 'COMMAND', 'there is no command "key"; did you mean keys?'],
    ['help \u001b[2J', 'COMMAND', 'there is no command "\\u{1b}[2J"'],
    ['postgres://u:pw@h/d', 'COMMAND', 'there is no command "postgres://…"'],
    ['help postgres://u:pw@h/d', 'COMMAND', 'there is no command "postgres://…"'],
    ['--port 80', 'COMMAND', 'a command is missing before "--port"'],
    ['--frob --data x', 'COMMAND', 'a command is missing before "--frob"'],
    ['keys --plan pro create', 'COMMAND', 'a command is missing before "--plan"'],
    ['keys --json', 'COMMAND', 'a command is missing before "--json"'],
  ]) {
    const { exit, stdout, stderr } = await run(line);
    const [told, other, status] = wrong ? [stderr, stdout, 2] : [stdout, stderr, 0];
    assert.deepEqual([exit, other], [status, ''], line);
    assert.match(told, new RegExp(`^Usage: node \\S+ ${usage} `));
    if (wrong) assert.ok(told.includes('  keys create') && told.endsWith(`\n\npetstore: ${wrong}\n`), told);
    else assert.ok(!told.includes('compact-child'));
  }
  for (const words of ['serve --port 0 --data', 'serve --port 0 --seed', 'backup', 'import', 'verify --data']) {
    const { exit, stderr } = await run(`${words} postgres://u:pw@h/d`); // meant for --store: no name of a file
    assert.deepEqual([exit, /cannot be "postgres:\/\/…": give a path/.test(stderr)], [2, true], stderr);
  }
  const refused = await run('serve', { env: { PETSTORE_PORT: '65536' } });
  assert.deepEqual([refused.exit, refused.stdout, existsSync(at('data'))], [2, '', false]);
  assert.match(refused.stderr, /PETSTORE_PORT cannot be "65536": give [\s\S]+\nSee node \S+ serve --help\n$/);
  for (const [line, wrong] of [
    ['serve --port 0 --store postgres://h', '--store must look like postgres://user:'],
    ['verify --store postgres://h/d?other=1', '--store knows the parameters schema and sslmode alone'],
    ['keys list --store postgres://h/d?schema=1', '--store: schema must be 1 to 63 of'],
  ]) {
    const { exit, stdout, stderr } = await run(line);
    const [name] = line.split(' -');
    assert.deepEqual([exit, stdout], [2, ''], `${line}: ${stderr}`);
    assert.ok(stderr.startsWith(`petstore ${name}: ${wrong}`), stderr);
    assert.match(stderr, new RegExp(`\nSee node \\S+ ${name} --help\n$`));
  }
  const { version, commit, runtime } = await json<Record<string, string>>('version');
  assert.match(version, /^\d+\.\d+\.\d+$/);
  assert.match(runtime, /^Node v\d+/);
  for (const line of ['--version', '-v', '-V']) {
    assert.equal(await done(line), `version  ${version}\ncommit   ${commit}\nruntime  ${runtime}\n`);
  }
  assert.match(await done('openapi --base-url https://a.example/v1'), /^ +"url": "https:\/\/a\.example\/v1"/m);
});

/** By command and option. */
const BAD_VALUES: Record<string, Record<string, string[]>> = {
  serve: {
    host: ['not a host', ''],
    port: ['65536', '-1', '80.5', '0x50', 'http'],
    data: ['', 'd'.repeat(4_097)],
    seed: [''],
    firstKey: ['gold', 'enterprise'],
    environment: ['live'],
    categories: ['some'],
    corsOrigin: ['a.b', 'https://a.b/', 'ftp://a.b', 'https://*.b', 'https:a.b', 'https://a.b:443'],
    trustProxy: ['11', 'yes'],
    keepAlive: ['0', '3601', '1.5'],
    maxStoreMb: ['0', '1000001'],
    banAfter: ['-1', '1000001'],
    accessLog: ['maybe'],
    metrics: ['9100', '::1:9100', '127.0.0.1:65536', '[zz]:9100'],
    baseUrl: ['https://api.example', 'https://api.example/v1?x', 'https://x.example/?/v1', 'https://x.example#/v1'],
    stagingBaseUrl: ['a', 'mailto:a@b.example/v1', 'https:a/v1', 'https://*.a/v1', 'https://a@b/v1', 'https://a/v1 '],
  },
  'keys create': {
    plan: ['gold'],
    name: ['', 'n'.repeat(101), 'two\nlines', 'red\u001b[31m'],
    perMinute: ['0', '1000000001'],
    perDay: ['1e3'],
    environment: ['test'],
    json: ['yes'],
  },
  'keys rotate': { grace: ['24', '31d', '-1h'] },
  'keys list': { store: ['mysql://h/d'] },
  export: { status: ['lost'] },
  import: { skipBad: ['no'] },
};

const commandOf = (name: string) => COMMANDS.find((found) => found.name === name)!;

function refusal(name: string, words: string[], environment: Record<string, string> = {}): string {
  try {
    read(commandOf(name), words, environment);
  } catch (error) {
    assert.equal((error as CommandError).exit, 2);
    return (error as CommandError).message;
  }
  assert.fail(`${name} ${words} is taken`);
}

test('a value out of range names itself and says what is allowed, as an option and as a variable', () => {
  for (const [name, values] of Object.entries(BAD_VALUES)) {
    const { options } = commandOf(name);
    for (const [key, value] of Object.entries(values).flatMap(([key, all]) => all.map((one) => [key, one]))) {
      const places = Object.values(options).flatMap((option) => (option.is === 'placed' ? ['k1'] : []));
      if (name === 'keys create' && key !== 'plan') places.push('--plan', 'free');
      const said = [[flagOf(key), refusal(name, [...places, `${flagOf(key)}=${value}`])]];
      if (value !== '') said.push([variableOf(key), refusal(name, places, { [variableOf(key)]: value })]);
      for (const [as, message] of said) {
        assert.ok(message.startsWith(`petstore ${name}: ${as} cannot be `), message);
        assert.ok(message.includes(options[key].allowed), message);
      }
    }
  }
});

test('unknown options, missing and doubled ones, and what does not fit together say so', () => {
  for (const [name, line, said] of [
    ['serve', '--prot=1', /there is no option "--prot"; did you mean --port\?/],
    ['serve', '--port 1 -ab', /there is no option "-ab"/],
    ['serve', '-p=1', /there is no option "-p=1"/],
    ['serve', '--port', /--port needs a value: give a whole number, 0 to 65535/],
    ['serve', '--port --host x', /--port needs a value/],
    ['serve', '--port 1 --port=2', /--port is given twice/],
    ['serve', 'now', /"now" is one argument too many/],
    ['serve', '-- --port', /"--port" is one argument too many/],
    ['keys revoke', `ps_live_${'x'.repeat(36)}`, /ID cannot be "ps_live_\[hidden\]"/],
    ['keys list', `ps_test_${'x'.repeat(36)}`, /"ps_test_\[hidden\]" is one argument too many/],
    ['serve', `--ps_live_${'x'.repeat(36)}`, /no option "--ps_live_\[hidden\]"/],
    ['keys create', '', /--plan is missing: give free \(60 .*\), pro \(.*\), business \(.*\) or enterprise \(.*\)\n/],
    ['keys plan', 'k1 enterprise --per-minute 5', /the enterprise plan needs --per-minute N and --per-day N/],
    ['keys create', '--plan pro --per-day 5', /only the enterprise plan takes PETSTORE_PER_MINUTE and --per-day\n/],
    ['keys create', '--plan enterprise --per-minute 9 --per-day 8', /--per-minute 9 is more than --per-day 8 allows/],
    ['keys list', '--data x --store postgres://h/d', /--data and --store both say where the store is/],
    ['grade', 'k1 --at-least E', /--at-least cannot be "E": give A, B, C or D/],
    ['keys revoke', '', /ID is missing/],
    ['keys revoke', '1', /ID cannot be "1": give the id of a key, such as k1/],
    ['keys revoke', 'k0', /ID cannot be "k0"/],
    ['keys plan', 'k1', /PLAN is missing/],
    ['version', '--data x', /there is no option "--data"/],
    ['verify', '--help=false', /: --help takes no value\n/],
  ] as const) {
    const words = line === '' ? [] : line.split(' ');
    assert.match(refusal(name, words, line.includes('pro') ? { PETSTORE_PER_MINUTE: '5' } : undefined), said);
  }
});

test('an option wins over its variable, and an empty variable counts as not set', () => {
  const variables = { PETSTORE_DATA: 'of variable', PETSTORE_STORE: '', PETSTORE_JSON: 'true' };
  assert.deepEqual(read(commandOf('keys list'), ['--data', 'of option'], variables), { data: 'of option', json: true });
});

test('ready asks the service where its variables say, and tells what is wrong', async (t) => {
  const { run, serve } = await workplace(t);
  const server = await serve();
  const { port } = new URL(server.url);
  const asked = await run('ready', { env: { PETSTORE_PORT: port, PETSTORE_HOST: '0.0.0.0' } });
  assert.deepEqual([asked.exit, asked.stdout], [0, `ready  http://127.0.0.1:${port}/readyz\n`]);
  await server.stop();
  const gone = await run(`ready --port ${port}`);
  const where = `http://127.0.0.1:${port}/readyz`;
  assert.deepEqual([gone.exit, gone.stderr], [1, `cannot reach ${where}: connection refused\n`]);
  const silent = createServer().listen(Number(port), '127.0.0.1');
  t.after(() => silent.close());
  const late = await run(`ready --port ${port}`);
  assert.deepEqual([late.exit, late.stderr], [1, `${where} is not ready: no answer in time\n`]);
});

test('ready asks at an address that names its interface, which no URL can', async (t) => {
  const { run, serve } = await workplace(t);
  const loopback = Object.entries(networkInterfaces()).find(([, all]) => all?.some(({ address }) => address === '::1'));
  const host = `::1%${loopback![0]}`;
  const { port } = new URL((await serve(`--host ${host}`)).url);
  const { exit, stdout, stderr } = await run(`ready --host ${host} --port ${port}`);
  assert.deepEqual([exit, stdout, stderr], [0, `ready  http://[${host}]:${port}/readyz\n`, '']);
});

test('a command that is printed can be typed as it stands, in any terminal in the same folder', async (t) => {
  const [node, file] = await command();
  if (file === undefined) return t.skip('the binary has one name');
  const cwd = await temporary(t);
  const typed = {
    'petstore.cjs': 'node petstore.cjs',
    'my files/petstore.cjs': "node 'my files/petstore.cjs'",
    'node_modules/.bin/petstore': 'node_modules/.bin/petstore', // npx petstore
    'bin/petstore': 'petstore', // npm install --global
  };
  for (const [link, line] of Object.entries(typed)) {
    await mkdir(path.join(cwd, path.dirname(link)), { recursive: true });
    await symlink(file, path.join(cwd, link));
    const { stdout } = await promisify(execFile)(node, [link, 'version', '--help'], { cwd });
    assert.match(stdout, new RegExp(`^Usage: ${line} version `), link);
  }
});
