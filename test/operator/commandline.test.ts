import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { flagOf, mistyped, read, variableOf } from '../../src/operator/arguments.ts';
import { COMMANDS } from '../../src/operator/commands.ts';
import type { CommandError } from '../../src/operator/exit.ts';
import { helpOf } from '../../src/operator/help.ts';
import { SERVE_OPTIONS } from '../../src/operator/options.ts';
import { program, temporary } from '../program.ts';

test('every command tells its options, ranges and defaults in lines of at most 80 characters', () => {
  for (const command of COMMANDS) {
    const [usage, ...lines] = helpOf(command).split('\n');
    assert.ok(usage.endsWith(' [options]') && usage.includes(` ${command.name} `), usage);
    const text = lines.join(' ').replace(/ +/g, ' ');
    for (const [key, { is, shown, help, allowed, fallback }] of Object.entries(command.options)) {
      const start = is === 'placed' ? `  ${shown} ` : `  ${flagOf(key)} ${shown}`.trimEnd();
      assert.ok(
        lines.some((line) => line.startsWith(start)),
        start,
      );
      if (is === 'switch') continue;
      assert.ok(help.includes(allowed) || !help.includes(': '), 'what is allowed follows a colon, the only one');
      assert.ok(text.includes(allowed) || allowed === 'a path', allowed);
      assert.ok(fallback === undefined || text.includes(`(default ${fallback})`), key);
    }
    for (const line of lines) assert.ok(line.length <= 80, line);
  }
});

test('without a command the usage is on stderr, with exit 2; asked for, it is on stdout', async () => {
  const missing = await program([]);
  assert.deepEqual([missing.exit, missing.stdout], [2, '']);
  assert.match(missing.stderr, /^Usage: node \S+ COMMAND[\s\S]*a command is missing\n$/);
  for (const words of [['--help'], ['-h'], ['help']]) {
    const { exit, stdout, stderr } = await program(words);
    assert.deepEqual([exit, stderr, stdout.includes('compact-child')], [0, '', false]);
    for (const { name } of COMMANDS) assert.ok(stdout.includes(`  ${name}`), name);
    for (const line of stdout.split('\n').slice(1)) assert.ok(line.length <= 80, line);
  }
  const asked = await Promise.all([program(['help', 'keys', 'create']), program(['keys', 'create', '-h', '--plan'])]);
  for (const { stdout } of asked) assert.match(stdout, /^Usage: node \S+ keys create/);
});

test('an unknown command names itself and the known ones', async () => {
  for (const [words, said] of [
    [['sevre'], 'there is no command "sevre"; did you mean serve?'],
    [['keys', 'crate', '--plan', 'pro'], 'there is no command "keys crate"; did you mean keys create?'],
    [['exprot', 'x'], 'there is no command "exprot x"; did you mean export?'],
    [['key'], 'there is no command "key"; did you mean keys?'],
    [['keys'], 'a command is missing'],
    [['keys', 'make'], 'there is no command "keys make"'],
    [['help', 'frob'], 'there is no command "frob"'],
    [['frob', '--data', 'x'], 'there is no command "frob"'],
    [['--frob'], 'there is no command "--frob"'],
    [['\u001b[2J'], 'there is no command "\\u{1b}[2J"'],
  ] as const) {
    const { exit, stdout, stderr } = await program([...words]);
    assert.deepEqual([exit, stdout], [2, ''], words.join(' '));
    assert.ok(stderr.endsWith(`\n\npetstore: ${said}\n`), `what is read last is what was wrong: ${stderr}`);
    assert.ok(stderr.includes('  keys create'), stderr);
  }
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
    corsOrigin: [
      'shop.example',
      'https://shop.example/',
      'ftp://shop.example',
      'https://*.example',
      'https:shop.example',
    ],
    trustProxy: ['11', 'yes'],
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

function refusal(name: string, words: string[], environment: Record<string, string> = {}): string {
  const command = COMMANDS.find((found) => found.name === name)!;
  let message = '';
  assert.throws(
    () => read(command, words, environment),
    (error: CommandError) => {
      message = error.message;
      return error.exit === 2;
    },
    `${name} ${words} ${JSON.stringify(environment)}`,
  );
  return message;
}

test('a value out of range names itself and says what is allowed, as an option and as a variable', () => {
  for (const { name, options } of COMMANDS) {
    for (const [key, value] of Object.entries(BAD_VALUES[name] ?? {}).flatMap(([key, all]) =>
      all.map((one) => [key, one]),
    )) {
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

test('a refused option ends the program with exit 2, before it touches anything', async (t) => {
  const cwd = await temporary(t);
  const { exit, stdout, stderr } = await program(['serve'], { cwd, env: { PETSTORE_PORT: '65536' } });
  assert.deepEqual([exit, stdout, await readdir(cwd)], [2, '', []]);
  assert.match(stderr, /PETSTORE_PORT cannot be "65536": give [\s\S]+\nSee node \S+ serve --help\n$/);
});

test('unknown options, missing and doubled ones, and what does not fit together say so', () => {
  for (const [name, line, said] of [
    ['serve', '--prot 1', /there is no option "--prot"; did you mean --port\?/],
    ['serve', '-p 1', /there is no option "-p"/],
    ['serve', '-port 8080', /there is no option "-port"/],
    ['serve', '--port 1 -ab', /there is no option "-ab"/],
    ['serve', '-p=1', /there is no option "-p=1"/],
    ['serve', '--prot=1', /there is no option "--prot"/],
    ['serve', '--port', /--port needs a value: give a whole number, 0 to 65535/],
    ['serve', '--port --host x', /--port needs a value/],
    ['serve', '--port 1 --port=2', /--port is given twice/],
    ['serve', 'now', /"now" is one argument too many/],
    ['serve', '-- --port', /"--port" is one argument too many/],
    ['keys create', '', /--plan is missing: give free \(60 .*\), pro \(.*\), business \(.*\) or enterprise \(.*\)\n/],
    ['keys create', '--plan enterprise --per-minute 5', /the enterprise plan needs --per-minute N and --per-day N/],
    ['keys create', '--plan pro --per-day 5', /only the enterprise plan takes/],
    ['keys create', '--plan enterprise --per-minute 9 --per-day 8', /--per-minute 9 is more than --per-day 8 allows/],
    ['keys list', '--data x --store postgres://h/d', /--data and --store both say where the store is/],
    ['serve', '--lab', /--lab needs --environment staging/],
    ['grade', 'k1 --at-least E', /--at-least cannot be "E": give A, B, C or D/],
    ['keys revoke', '', /ID is missing/],
    ['keys revoke', '1', /ID cannot be "1": give the id of a key, such as k1/],
    ['keys revoke', 'k0', /ID cannot be "k0"/],
    ['keys plan', 'k1 enterprise', /the enterprise plan needs/],
    ['keys plan', 'k1', /PLAN is missing/],
    ['backup', '', /FILE is missing/],
    ['version', '--data x', /there is no option "--data"/],
    ['verify', '--help=false', /: --help takes no value\n/],
  ] as const) {
    assert.match(refusal(name, line === '' ? [] : line.split(' ')), said);
  }
});

test('what does not fit together is named as it was given', () => {
  const message = refusal('keys create', ['--plan', 'pro', '--per-day', '5'], { PETSTORE_PER_MINUTE: '5' });
  assert.match(message, /: only the enterprise plan takes PETSTORE_PER_MINUTE and --per-day\n/);
});

test('an option wins over its variable, and an empty variable counts as not set', async () => {
  const env = { PETSTORE_BASE_URL: 'https://of.variable/v1', PETSTORE_STAGING_BASE_URL: '' };
  const servers = async (args: string[]) => JSON.parse((await program(['openapi', ...args], { env })).stdout).servers;
  assert.equal((await servers([]))[0].url, 'https://of.variable/v1');
  assert.equal((await servers(['--base-url', 'https://of.option/v1']))[0].url, 'https://of.option/v1');
  assert.match((await servers([]))[1].url, /^https:\/\/staging/);
});

test('a variable that is nearly one of ours is told', () => {
  const variables = { PETSTORE_PROT: '1', PETSTORE_PORT: '1', PETSTORE_SERVICE_HOST: 'x', HOME: 'x' };
  assert.deepEqual(mistyped(SERVE_OPTIONS, variables), [
    'there is no variable PETSTORE_PROT; did you mean PETSTORE_PORT?',
  ]);
});

test('version tells version, commit and runtime', async () => {
  const { stdout } = await program(['version', '--json']);
  const { version, commit, runtime } = JSON.parse(stdout);
  assert.match(version, /^\d+\.\d+\.\d+$/);
  assert.match(commit, /\S/);
  assert.match(runtime, /^Node v\d+/);
  assert.equal((await program(['--version'])).stdout, (await program(['version'])).stdout);
});
