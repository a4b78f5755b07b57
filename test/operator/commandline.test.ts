/** Help, arguments, variables, and the refusal of what is wrong with them. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { command as command_, commandsWith } from '../../src/operator/commands.ts';
import { DIGEST, KEY_ID } from '../../src/operator/keys.ts';
import { flagOf, prepare, variableOf } from '../../src/operator/options.ts';
import { command, temporary } from '../program.ts';
import { checkHelp, refusalOf } from './commands.ts';
import { workplace } from './workplace.ts';

const COMMANDS = commandsWith([]);

test('help names every command, option, range and default, in lines of at most 80 characters', () => {
  checkHelp(COMMANDS);
});

test('help and version are on stdout; a wrong command is refused in two lines, with the nearest one', async (t) => {
  const { at, run, done, json } = await workplace(t);
  for (const [line, usage] of [
    ['--help', 'COMMAND'],
    ['keys create -h --plan', 'keys create'],
  ]) {
    const { exit, stdout, stderr } = await run(line);
    assert.deepEqual([exit, stderr], [0, ''], line);
    assert.match(stdout, new RegExp(`^Usage: node \\S+ ${usage} `));
  }
  for (const [line, fault] of [
    ['keys', `give one of: keys ${'create find list revoke rotate lift plan'.replaceAll(' ', ', keys ')}`],
    ['keys crate --plan pro', 'there is no command "keys crate"; did you mean keys create?'],
    ['help \u001b[2J', 'there is no command "\\u{1b}[2J"'],
    ['', 'a command is missing'],
    ['--port 80', 'there is no command "--port"'],
  ]) {
    const { exit, stdout, stderr } = await run(line);
    assert.deepEqual([exit, stdout], [2, ''], line);
    const help = line.startsWith('keys') ? 'keys --help' : '--help';
    assert.equal(
      stderr.replace(`petstore: ${fault}`, 'FAULT').replace(/node \S+/, 'PETSTORE'),
      `FAULT\nSee PETSTORE ${help}\n`,
    );
  }
  const refused = await run('serve', { env: { PETSTORE_PORT: '65536' } });
  assert.deepEqual([refused.exit, refused.stdout, existsSync(at('data'))], [2, '', false]);
  assert.match(
    refused.stderr,
    /--port \(or PETSTORE_PORT\) cannot be "65536": give [^\n]+\nSee node \S+ serve --help\n$/,
  );
  const { version, commit, runtime } = await json<Record<string, string>>('version');
  assert.match(`${version} ${runtime}`, /^\d+\.\d+\.\d+ Node v\d+/);
  assert.equal(await done('--version'), `version  ${version}\ncommit   ${commit}\nruntime  ${runtime}\n`);
});

/** By command and option. */
const BAD_VALUES: Record<string, Record<string, string[]>> = {
  serve: {
    host: ['not a host', ''],
    port: ['65536', '80.5', '0x50'],
    data: ['', 'd'.repeat(4_097), 'sql://h/d'],
    firstKey: ['enterprise'],
    environment: ['live'],
    corsOrigin: ['a.b', 'https://a.b/', 'ftp://a.b', 'https://*.b', 'https:a.b', 'https://a.b:443'],
    trustProxy: ['11'],
    keepAlive: ['0', '3601'],
    maxStoreMb: ['0', '1000001'],
    banAfter: ['-1', '1000001'],
    accessLog: ['maybe'],
    metrics: ['9180', '::1:9180', '127.0.0.1:65536', '[zz]:9180'],
    baseUrl: [
      'https://api.example',
      'https://api.example/shop/v1',
      'https://api.example/v1?x',
      'https://x.example/?/v1',
      'https://x.example#/v1',
    ],
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
  export: { status: ['lost'] },
};

const commandOf = (name: string) => COMMANDS.find((found) => found.name === name)!;

const refusal = (name: string, words: string[], env?: Record<string, string>) => refusalOf(commandOf(name), words, env);

test('a value out of range names itself and says what is allowed, as an option and as a variable', () => {
  for (const [name, values] of Object.entries(BAD_VALUES)) {
    const { options } = commandOf(name);
    for (const [key, value] of Object.entries(values).flatMap(([key, all]) => all.map((one) => [key, one]))) {
      const words: string[] = Object.values(options).flatMap(({ isArgument }) => (isArgument ? 'k1' : []));
      if (name === 'keys create' && key !== 'plan') words.push('--plan', 'free');
      const refused = [refusal(name, [...words, `${flagOf(key)}=${value}`])];
      if (value !== '') refused.push(refusal(name, words, { [variableOf(key)]: value }));
      for (const message of refused) {
        const fault = `petstore ${name}: ${flagOf(key)} (or ${variableOf(key)}) cannot be `;
        assert.ok(message.startsWith(fault), message);
        assert.ok(message.includes(`give ${options[key].allowed}`), message);
      }
    }
  }
});

test('unknown options, missing and doubled ones, and what does not fit together are refused', () => {
  for (const [name, line, fault] of [
    ['serve', '--prot=1', /there is no option "--prot"; did you mean --port\?/],
    ['serve', '--threads 2', /there is no option "--threads"/],
    ['serve', '--port 1 -ab', /there is no option "-a"/],
    ['serve', '--port', /--port needs a value: give a whole number, 0 to 65535/],
    ['serve', '--port --host x', /--port needs a value/],
    ['serve', '--port 1 --port=2', /--port is given twice/],
    ['serve', 'now', /"now" is one argument too many/],
    ['serve', '-- --port', /"--port" is one argument too many/],
    ['restore', 'b --max-store-mb 1', /there is no option "--max-store-mb"/],
    ['serve', '--lab', /there is no option "--lab"/],
    ['keys revoke', `ps_live_${'x'.repeat(36)}`, /ID cannot be "ps_live_\[hidden\]"/],
    ['serve', `--ps_live_${'x'.repeat(36)}`, /no option "--ps_live_\[hidden\]"/],
    [
      'keys create',
      '',
      /--plan \(or PETSTORE_PLAN\) is missing: give free \(60 .*\), pro \(.*\), business \(.*\) or enterprise \(.*\)\n/,
    ],
    ['keys plan', 'k1 enterprise --per-minute 5', /the enterprise plan needs --per-minute N and --per-day N/],
    [
      'keys create',
      '--plan pro --per-day 5',
      /only the enterprise plan takes --per-minute and --per-day \(or their variables\)\n/,
    ],
    ['keys create', '--plan enterprise --per-minute 9 --per-day 8', /--per-minute 9 is more than --per-day 8 allows/],
    [
      'keys list',
      '--data x --store sql://h/d',
      /--data and --store \(or their variables\) both say where the store is/,
    ],
    ['keys revoke', '', /ID is missing: give the id of a key, such as k1/],
    ['keys revoke', 'k0', /ID cannot be "k0"/],
    ['keys plan', 'k1', /PLAN is missing/],
  ] as const) {
    const words = line === '' ? [] : line.split(' ');
    assert.match(refusal(name, words, line.includes('pro') ? { PETSTORE_PER_MINUTE: '5' } : undefined), fault);
  }
});

test('an option wins over its variable, and an empty variable counts as not set', () => {
  const env = { PETSTORE_DATA: 'of variable', PETSTORE_STORE: '', PETSTORE_JSON: 'true' };
  const { values } = prepare(commandOf('keys list'), ['--data', 'of option'], env, []);
  assert.deepEqual(values, { data: 'of option', store: undefined, json: true });
});

test('a variable that no option has is refused, with the nearest one; those of Kubernetes are not ours', async (t) => {
  for (const [name, fault] of [
    ['PETSTORE_BAN_AFTR', 'there is no variable "PETSTORE_BAN_AFTR"; did you mean PETSTORE_BAN_AFTER?'],
    ['PETSTORE_THREADS', 'there is no variable "PETSTORE_THREADS"\n'],
    ['PETSTORE_LAB', 'there is no variable "PETSTORE_LAB"'],
  ]) {
    assert.ok(refusalOf(commandOf('serve'), [], { [name]: '1' }, COMMANDS).startsWith(`petstore serve: ${fault}`));
  }
  const others = {
    PETSTORE_PORT: 'tcp://10.0.0.1:80', // of a service called petstore
    PETSTORE_SERVICE_HOST: '10.0.0.1',
    PETSTORE_SERVICE_PORT: '80',
    PETSTORE_SERVICE_PORT_HTTP: '80',
    PETSTORE_PORT_80_TCP: 'tcp://10.0.0.1:80',
    PETSTORE_PORT_80_TCP_PROTO: 'tcp',
    PETSTORE_DB_PORT_5432_TCP_ADDR: '10.0.0.2', // of one called petstore-db
    PETSTORE_DB_PORT: 'tcp://10.0.0.2:5432',
    PETSTORE_URL: 'http://127.0.0.1:8080', // of clients
    PETSTORE_KEY: 'ps_live_x',
    PETSTORE_GRACE: '1h', // of another command
  };
  const { run, serve } = await workplace(t);
  await serve('', { env: others });
  const { exit, stderr } = await run('keys list', { env: { ...others, PETSTORE_DATE: 'data' } });
  assert.deepEqual([exit, /^petstore keys list: there is no variable "PETSTORE_DATE"/.test(stderr)], [2, true], stderr);
});

test('a row whose work reads an option that it does not name does not compile', () => {
  command_('x', 'x', { options: KEY_ID, work: (_, { id }) => id });
  // @ts-expect-error: `grace` is not among its options
  command_('x', 'x', { options: KEY_ID, work: (_, { grace }) => grace });
  // @ts-expect-error: also where the work is a function with a type of its own
  command_('x', 'x', { options: KEY_ID, work: (_, { grace }: { id: string; grace: number }) => grace });
  // @ts-expect-error: and where it is of another type
  command_('x', 'x', { options: KEY_ID, run: ({ id }: { id: number }) => id });
  // @ts-expect-error: the parameters of a call are those that it takes
  command_('x', 'x', { options: KEY_ID, takes: DIGEST, work: (_, { id }) => id });
});

test('a command that is printed can be typed as it stands, in any terminal in the same folder', async (t) => {
  const [node, file] = await command();
  if (file === undefined) return t.skip('the binary has one name');
  const cwd = await temporary(t);
  const typed = {
    'my files/petstore.cjs': "node 'my files/petstore.cjs'",
    'bin/petstore': 'petstore', // npm install --global
  };
  for (const [link, line] of Object.entries(typed)) {
    await mkdir(path.join(cwd, path.dirname(link)), { recursive: true });
    await symlink(file, path.join(cwd, link));
    const { stdout } = await promisify(execFile)(node, [link, 'version', '--help'], { cwd });
    assert.match(stdout, new RegExp(`^Usage: ${line} version `), link);
  }
});

test('a value that begins with two dashes is given behind =', () => {
  const create = commandsWith([]).find(({ name }) => name === 'keys create')!;
  assert.equal(prepare(create, ['--plan', 'free', '--name=--x'], {}, []).texts.name, '--x');
});
