import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { flagOf, variableOf } from '../../src/operator/arguments.ts';
import { COMMANDS } from '../../src/operator/commands.ts';
import type { CommandError } from '../../src/operator/exit.ts';
import { program, temporary } from '../program.ts';

const SPECS = COMMANDS.map(({ spec }) => spec);

test('every command tells its options, ranges and defaults in lines of at most 80 characters, on stdout', async () => {
  for (const spec of SPECS) {
    const { exit, stdout, stderr } = await program([...spec.name.split(' '), '--help']);
    assert.equal(exit, 0, spec.name);
    assert.equal(stderr, '');
    assert.match(stdout, new RegExp(`^Usage: node \\S+ ${spec.name}( |\n)`));
    const [, ...lines] = stdout.split('\n');
    const text = lines.join(' ').replace(/ +/g, ' ');
    for (const [key, option] of Object.entries(spec.options)) {
      assert.match(stdout, new RegExp(option.is === 'placed' ? `^  ${option.shown} ` : `^  ${flagOf(key)}( |$)`, 'm'));
      if (option.is !== 'switch' && option.allowed !== 'a path')
        assert.ok(text.includes(option.allowed), option.allowed);
      if (option.is !== 'switch' && option.fallback) assert.ok(text.includes(`(default ${option.fallback})`), key);
    }
    for (const line of lines) assert.ok(line.length <= 80, line);
  }
});

test('without a command the usage is on stderr, with exit 2; asked for, it is on stdout', async () => {
  const missing = await program([]);
  assert.equal(missing.exit, 2);
  assert.equal(missing.stdout, '');
  assert.match(missing.stderr, /a command is missing[\s\S]*Usage: node \S+ COMMAND/);
  for (const words of [['--help'], ['-h'], ['help']]) {
    const asked = await program(words);
    assert.equal(asked.exit, 0);
    assert.equal(asked.stderr, '');
    for (const spec of SPECS) assert.ok(asked.stdout.includes(`  ${spec.name}`), spec.name);
    assert.ok(!asked.stdout.includes('compact-child'));
    for (const line of asked.stdout.split('\n').slice(1)) assert.ok(line.length <= 80, line);
  }
  assert.match((await program(['help', 'keys', 'create'])).stdout, /^Usage: node \S+ keys create/);
});

test('an unknown command names itself and the known ones', async () => {
  for (const [words, said] of [
    [['sevre'], '"sevre"; did you mean serve?\n'],
    [['keys', 'crate', '--plan', 'pro'], '"keys crate"; did you mean keys create?\n'],
    [['exprot', 'x'], '"exprot x"; did you mean export?\n'],
    [['keys'], 'a command is missing'],
    [['keys', 'make'], '"keys make"'],
    [['help', 'frob'], 'there is no command "frob"\n'],
    [['frob', '--data', 'x'], 'there is no command "frob"\n'],
    [['--frob'], 'there is no command "--frob"\n'],
  ] as const) {
    const { exit, stdout, stderr } = await program([...words]);
    assert.equal(exit, 2, words.join(' '));
    assert.equal(stdout, '');
    assert.ok(stderr.includes(said), stderr);
    assert.match(stderr, /keys create/);
  }
});

const BAD_VALUES: [command: string, option: string, value: string][] = [
  ['serve', 'host', 'not a host'],
  ['serve', 'host', ''],
  ['serve', 'port', '65536'],
  ['serve', 'port', '-1'],
  ['serve', 'port', '80.5'],
  ['serve', 'port', '0x50'],
  ['serve', 'port', 'http'],
  ['serve', 'data', ''],
  ['serve', 'data', `${'d'.repeat(4_097)}`],
  ['serve', 'seed', ''],
  ['serve', 'firstKey', 'gold'],
  ['serve', 'firstKey', 'enterprise'],
  ['serve', 'environment', 'live'],
  ['serve', 'categories', 'some'],
  ['serve', 'corsOrigin', 'shop.example'],
  ['serve', 'corsOrigin', 'https://shop.example/'],
  ['serve', 'corsOrigin', 'ftp://shop.example'],
  ['serve', 'corsOrigin', 'https://*.example'],
  ['serve', 'corsOrigin', 'https:shop.example'],
  ['serve', 'trustProxy', '11'],
  ['serve', 'trustProxy', 'yes'],
  ['serve', 'banAfter', '-1'],
  ['serve', 'banAfter', '1000001'],
  ['serve', 'accessLog', 'maybe'],
  ['serve', 'metrics', '9100'],
  ['serve', 'metrics', '::1:9100'],
  ['serve', 'metrics', '127.0.0.1:65536'],
  ['serve', 'metrics', '[zz]:9100'],
  ['serve', 'baseUrl', 'https://api.example'],
  ['serve', 'baseUrl', 'https://api.example/v1?x'],
  ['serve', 'baseUrl', 'mailto:a@b.example/v1'],
  ['serve', 'baseUrl', 'https:api.example/v1'],
  ['serve', 'baseUrl', 'https://*.example/v1'],
  ['serve', 'baseUrl', 'https://user@api.example/v1'],
  ['serve', 'baseUrl', 'https://api.example/v1 '],
  ['serve', 'stagingBaseUrl', 'staging'],
  ['keys create', 'plan', 'gold'],
  ['keys create', 'name', ''],
  ['keys create', 'name', 'n'.repeat(101)],
  ['keys create', 'name', 'two\nlines'],
  ['keys create', 'name', 'red\u001b[31m'],
  ['keys create', 'perMinute', '0'],
  ['keys create', 'perMinute', '1000000001'],
  ['keys create', 'perDay', '1e3'],
  ['keys create', 'environment', 'test'],
  ['keys create', 'json', 'yes'],
  ['keys rotate', 'grace', '24'],
  ['keys rotate', 'grace', '31d'],
  ['keys rotate', 'grace', '-1h'],
  ['export', 'status', 'lost'],
  ['import', 'skipBad', 'no'],
];

function refusal(name: string, words: string[], environment: Record<string, string> = {}): string {
  const { prepare } = COMMANDS.find(({ spec }) => spec.name === name)!;
  let message = '';
  assert.throws(
    () => prepare(words, environment),
    (error: CommandError) => {
      message = error.message;
      return error.exit === 2;
    },
    `${name} ${words} ${JSON.stringify(environment)}`,
  );
  return message;
}

test('a value out of range names itself and says what is allowed, as an option and as a variable', () => {
  for (const [name, key, value] of BAD_VALUES) {
    const spec = SPECS.find((found) => found.name === name)!;
    const places = Object.values(spec.options).flatMap((option) => (option.is === 'placed' ? ['k1'] : []));
    if (name === 'keys create' && key !== 'plan') places.push('--plan', 'free');
    const said = [[flagOf(key), refusal(name, [...places, `${flagOf(key)}=${value}`])]];
    if (value !== '') said.push([variableOf(key), refusal(name, places, { [variableOf(key)]: value })]);
    for (const [as, message] of said) {
      assert.ok(message.startsWith(`petstore ${name}: ${as} cannot be `), message);
      assert.ok(message.includes(spec.options[key].allowed), message);
    }
  }
});

test('a refused option ends the program with exit 2, before it touches anything', async (t) => {
  const cwd = await temporary(t);
  for (const [words, env] of [
    [['serve', '--port', '65536'], {}],
    [['serve'], { PETSTORE_PORT: '65536' }],
    [['keys', 'create', '--plan', 'gold'], {}],
  ] as const) {
    const { exit, stdout, stderr } = await program([...words], { cwd, env });
    assert.equal(exit, 2);
    assert.equal(stdout, '');
    assert.match(stderr, /cannot be "(65536|gold)": give [\s\S]+\nSee node \S+ [a-z ]+ --help\n$/);
  }
  assert.deepEqual(await readdir(cwd), []);
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
    ['keys create', '', /--plan is missing: give free, pro, business or enterprise/],
    ['keys create', '--plan enterprise --per-minute 5', /the enterprise plan needs --per-minute N and --per-day N/],
    ['keys create', '--plan pro --per-day 5', /only the enterprise plan takes/],
    ['keys create', '--plan enterprise --per-minute 9 --per-day 8', /--per-minute 9 is more than --per-day 8 allows/],
    ['keys list', '--data x --store postgres://h/d', /--data and --store both say where the store is/],
    ['keys list', '--store mysql://h/d', /--store cannot be "mysql:\/\/h\/d"/],
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
  const pro = ['--plan', 'pro'];
  for (const [words, env, said] of [
    [pro, { PETSTORE_PER_MINUTE: '5' }, 'PETSTORE_PER_MINUTE'],
    [[...pro, '--per-day', '5'], { PETSTORE_PER_MINUTE: '5' }, 'PETSTORE_PER_MINUTE and --per-day'],
    [[...pro, '--per-minute', '5'], { PETSTORE_PER_MINUTE: '5' }, '--per-minute'],
  ] as const) {
    assert.match(refusal('keys create', [...words], env), new RegExp(`: only the enterprise plan takes ${said}\n`));
  }
});

test('an option wins over its variable, and an empty variable counts as not set', async () => {
  const env = { PETSTORE_BASE_URL: 'https://of.variable/v1', PETSTORE_STAGING_BASE_URL: '' };
  const servers = async (args: string[]) => JSON.parse((await program(['openapi', ...args], { env })).stdout).servers;
  assert.equal((await servers([]))[0].url, 'https://of.variable/v1');
  assert.equal((await servers(['--base-url', 'https://of.option/v1']))[0].url, 'https://of.option/v1');
  assert.match((await servers([]))[1].url, /^https:\/\/staging/);
});

test('version tells version, commit and runtime', async () => {
  const { stdout } = await program(['version', '--json']);
  const { version, commit, runtime } = JSON.parse(stdout);
  assert.match(version, /^\d+\.\d+\.\d+$/);
  assert.match(commit, /\S/);
  assert.match(runtime, /^Node v\d+/);
  assert.equal((await program(['--version'])).stdout, (await program(['version'])).stdout);
});
