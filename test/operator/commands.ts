/** What holds for the commands of every program, with extras or without. */
import assert from 'node:assert/strict';
import { flagOf, readArguments } from '../../src/operator/arguments.ts';
import type { AnyCommand } from '../../src/operator/command.ts';
import type { CommandError } from '../../src/operator/failures.ts';
import { helpOf, overview } from '../../src/operator/help.ts';
import type { Option } from '../../src/operator/options.ts';

/** Help names every command, option, range and default, in lines of at most 80 characters. */
export function checkHelp(commands: readonly AnyCommand[]): void {
  const linesOf = (page: string) => {
    const [usage, ...lines] = page.split('\n');
    for (const line of lines) assert.ok(line.length <= 80, line);
    return [usage, ...lines];
  };
  const all = linesOf(overview(commands)).join('\n');
  assert.match(all, /\nExit status: 0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use by\nanother/);
  for (const command of commands) {
    assert.ok(all.includes(`\n  ${command.name}`), command.name);
    const [usage, ...lines] = linesOf(helpOf(command));
    assert.equal(usage.endsWith(' [options]'), Object.keys(command.options).length > 0, usage);
    const text = lines.join(' ').replace(/ +/g, ' ');
    const rows = Object.entries(command.options as Record<string, Option>);
    for (const [key, { kind, value, allowed, fallback }] of rows) {
      const start = `\n  ${flagOf(key)} ${value}`.trimEnd();
      assert.ok(`\n${lines.join('\n')}`.includes(start), start);
      if (kind === 'switch') continue;
      assert.ok(text.includes(allowed) || allowed === 'a path', allowed);
      assert.ok(fallback === undefined || text.includes(`(default ${fallback})`), key);
    }
  }
}

/** The message that refuses these words. */
export function refusalOf(command: AnyCommand, words: readonly string[], env: Record<string, string> = {}): string {
  try {
    readArguments(command, words, env);
  } catch (error) {
    assert.equal((error as CommandError).exit, 2);
    return (error as CommandError).message;
  }
  assert.fail(`${command.name} ${words} is accepted`);
}
