/** What holds for the commands of every program, with extras or without. */
import assert from 'node:assert/strict';
import type { Command } from '../../src/operator/commands.ts';
import { flagOf, helpOf, overview, prepare } from '../../src/operator/options.ts';
import type { CommandError } from '../../src/operator/program.ts';

/** Help names every command, option, range and default, in lines of at most 80 characters. */
export function checkHelp(commands: readonly Command[]): void {
  const linesOf = (page: string) => {
    const [usage, ...lines] = page.split('\n');
    for (const line of lines) assert.ok(line.length <= 80, line);
    return [usage, ...lines];
  };
  const all = linesOf(overview(commands)).join('\n');
  assert.match(all, /\nExit status: 0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use\./);
  for (const command of commands) {
    assert.ok(all.includes(`\n  ${command.name}`), command.name);
    const [usage, ...lines] = linesOf(helpOf(command));
    const isNamed = Object.values(command.options).some(({ isArgument }) => !isArgument);
    assert.equal(usage.endsWith(' [options]'), isNamed, usage);
    const text = lines.join(' ').replace(/ +/g, ' ');
    for (const [name, option] of Object.entries(command.options)) {
      const start = `\n  ${option.isArgument ? '' : `${flagOf(name)} `}${option.value}`.trimEnd();
      assert.ok(`\n${lines.join('\n')}`.includes(start), start);
      if (option.value === '') continue;
      const { help, range, otherwise } = option;
      const [, facts = ''] = text.split(help)[1]?.match(/^ \((.*?)\)(?= {2}-|$| --)/) ?? [];
      for (const fact of [range, otherwise && `default ${otherwise}`])
        assert.ok(fact === undefined || facts.includes(fact), `${name}: ${facts} is not ${fact}`);
    }
  }
}

/** The message that refuses these words. */
export function refusalOf(
  command: Command,
  words: string[],
  env: Record<string, string> = {},
  commands: readonly Command[] = [command],
): string {
  try {
    prepare(command, words, env, commands);
  } catch (error) {
    assert.equal((error as CommandError).exit, 2);
    return (error as CommandError).message;
  }
  assert.fail(`${command.name} ${words} is accepted`);
}
