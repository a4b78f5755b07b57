/** The completion scripts, in the shells that they are for. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { workplace } from './workplace.ts';

/** What is typed, the last word unfinished; and what must be offered, or must not. */
const TYPED: [words: string[], offered: string[], not: string[]][] = [
  [['ke'], ['keys'], ['serve']],
  [
    ['keys', ''],
    ['create', 'list', 'rotate'],
    ['serve', '--plan'],
  ],
  [['--'], ['--help', '--version'], ['--plan']],
  [['keys', '--'], ['--help'], ['--version']],
  [['keys', 'create', '--pl'], ['--plan'], ['--grace', 'list']],
  [
    ['keys', 'create', '--plan', ''],
    ['free', 'enterprise'],
    ['--name', 'staging'],
  ],
  [['serve', '--environment', 's'], ['staging'], ['production', '--port']],
  [['probe', ''], ['gateway', 'service'], []],
  [['completion', ''], ['bash', 'zsh', 'fish'], ['keys']],
  [['import', 'anim'], ['animals.jsonl'], ['keys']],
  [['serve', '--data', 'anim'], ['animals.jsonl'], ['--port']],
  [['import', 'two'], ['two words.jsonl'], ['two']],
];

/** Each prints what it offers, a line each. */
const ASKED: Record<string, (script: string, words: string[]) => string[]> = {
  bash: (script, words) => {
    const set = `COMP_WORDS=(petstore ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}`;
    return ['-c', `source ${script}; ${set}; _petstore; printf '%s\\n' "\${COMPREPLY[@]}"`];
  },
  fish: (script, words) => ['-c', `source ${script}; complete -C 'petstore ${words.join(' ')}' | string split -f1 \\t`],
};

for (const [shell, args] of Object.entries(ASKED)) {
  const missing = spawnSync(shell, ['--version']).error ? `there is no ${shell} on this machine` : false;
  test(`${shell} completes commands, options, values and files`, { skip: missing }, async (t) => {
    const { cwd, at, done } = await workplace(t);
    await writeFile(at('script'), await done(`completion ${shell}`));
    for (const name of ['animals.jsonl', 'two words.jsonl']) await writeFile(at(name), '');
    for (const [words, offered, not] of TYPED) {
      const { stdout, stderr } = spawnSync(shell, args(at('script'), words), { cwd, encoding: 'utf8' });
      assert.equal(stderr, '', words.join(' '));
      const found = stdout.split('\n');
      for (const word of offered) assert.ok(found.includes(word), `${words.join(' ')}: ${word} of ${found}`);
      for (const word of not) assert.ok(!found.includes(word), `${words.join(' ')}: not ${word}`);
    }
  });
}

/** What is typed at a prompt before a tab, beside a directory called `backup`, and the words that the program gets. */
const PROMPTED = {
  'petstore back': '<backup>',
  'petstore --vers': '<--version>',
  'petstore keys --h': '<keys><--help>',
  'petstore keys create --plan=fr': '<keys><create><--plan=free>',
  'petstore serve --environment s': '<serve><--environment><staging>',
  'petstore serve --seed=an': '<serve><--seed=animals.json>',
};
/** Interactive shells that read no files of the user. */
const PROMPTS = { bash: 'bash --norc --noprofile -i', zsh: 'zsh -f -i' };

for (const [shell, prompt] of Object.entries(PROMPTS)) {
  const missing = [shell, 'script'].find((name) => spawnSync(name, ['--version']).error);
  const skip = missing ? `there is no ${missing} on this machine` : false;
  test(`at the prompt of ${shell} a tab gives the words that the program takes`, { skip }, async (t) => {
    const { cwd, at, done } = await workplace(t);
    await writeFile(at('completion'), await done(`completion ${shell}`));
    await mkdir(at('backup'));
    await writeFile(at('animals.json'), '');
    const begin = shell === 'zsh' ? 'autoload -Uz compinit; compinit -D -u; ' : '';
    const typed = Object.keys(PROMPTED).map((line) => `${line}\t\n`);
    const program = `petstore() { printf '<%s>' "$@"; echo; }`;
    const input = [`${begin}${program}; source ./completion\n`, ...typed, 'exit\n'].join('');
    const env = { ...process.env, TERM: 'xterm' };
    const { stdout } = spawnSync('script', ['-qec', prompt, '/dev/null'], { cwd, env, input, encoding: 'utf8' });
    assert.deepEqual(stdout.match(/^<.*>(?=\r?$)/gm), Object.values(PROMPTED), stdout);
  });
}

const noZsh = spawnSync('zsh', ['--version']).error ? 'there is no zsh on this machine' : false;
test('zsh reads its script', { skip: noZsh }, async (t) => {
  const { at, done } = await workplace(t);
  await writeFile(at('script'), await done('completion zsh'));
  const asked = `autoload -Uz compinit; compinit -D -u; source ${at('script')}; print -r -- $_comps[petstore]`;
  const { stdout, stderr } = spawnSync('zsh', ['-f', '-c', asked], { encoding: 'utf8' });
  assert.deepEqual([stdout, stderr], ['_petstore\n', '']);
  const early = spawnSync('zsh', ['-f', '-c', `source ${at('script')}`], { encoding: 'utf8' });
  assert.match(early.stderr, /^petstore: zsh completes nothing before this: autoload -Uz compinit; compinit\n$/);
});
