#!/usr/bin/env node
/** The command line: which command is meant, and how the program ends. */
import { didYouMean } from './operator/arguments.ts';
import { perform } from './operator/command.ts';
import { COMMANDS } from './operator/commands.ts';
import { COMPACT_CHILD, compactChild } from './operator/compacting.ts';
import { CommandError, EXIT } from './operator/exit.ts';
import { helpOf, overview } from './operator/help.ts';
import { columnsOf, print, told } from './operator/output.ts';
import { excerpt, withoutSecrets } from './quoting.ts';

async function main(words: string[]): Promise<void> {
  if (words[0] === COMPACT_CHILD) return compactChild(words.slice(1));
  if (['--version', '-v', '-V'].includes(words[0])) words[0] = 'version';
  if (words[0] === 'help') words = [...words.slice(1), '--help'];
  const command = COMMANDS.find(({ name }) => name.split(' ').every((word, at) => words[at] === word));
  if (command !== undefined) {
    const rest = words.slice(command.name.split(' ').length);
    return asksForHelp(rest) ? print(helpOf(command, columnsOf(process.stdout))) : perform(command, rest, process.env);
  }
  const group = COMMANDS.filter(({ name }) => name.startsWith(`${words[0]} `));
  const [named, rest] = group.length > 0 ? [group, words.slice(1)] : [COMMANDS, words];
  if (asksForHelp(rest.slice(0, 1))) return print(overview(named, columnsOf(process.stdout)));
  const wrong = rest.length === 0 ? 'a command is missing' : unknown(words, rest[0]);
  throw new CommandError(EXIT.usage, `${overview(named, columnsOf(process.stderr))}\n\npetstore: ${wrong}`);
}

function asksForHelp(words: string[]): boolean {
  const [options] = words.includes('--') ? [words.slice(0, words.indexOf('--'))] : [words];
  return options.includes('--help') || options.includes('-h');
}

/**
 * The message if no command is named. The words before the first option, two at most, are quoted as the name typed.
 * `next`: the word in the place of the command, or behind its group's (`keys`).
 */
function unknown(words: string[], next: string): string {
  if (next.startsWith('-')) return `a command is missing before ${excerpt(withoutSecrets(next))}`;
  const typed = words.slice(0, words[1]?.startsWith('-') ? 1 : 2).join(' ');
  const names = COMMANDS.map(({ name }) => name);
  const firsts = names.map((name) => name.split(' ')[0]).filter((word) => word !== words[0]);
  return `there is no command ${excerpt(withoutSecrets(typed))}${didYouMean(typed, names) || didYouMean(words[0], firsts)}`;
}

/** Errors of writing output are handled where it is written; without a listener they would end the process here. */
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});

/** Files that we make (store, socket, backups) are readable by their owner alone. */
process.umask(0o077);

/** Without a listener Node would open a debugger's port at SIGUSR1, to which every user of the machine can connect. */
process.on('SIGUSR1', () => {});

main(process.argv.slice(2)).then(
  () => process.exit(EXIT.done),
  async (error: Error) => {
    const known = error instanceof CommandError;
    const words = known ? error.message : `petstore: ${error.stack}`;
    if (words !== '') await told(`${words}\n`);
    process.exit(known ? error.exit : EXIT.failed);
  },
);
