#!/usr/bin/env node
/** The command line: which command is meant, and how the program ends. */
import { asksForHelp, didYouMean } from './operator/arguments.ts';
import { COMMANDS } from './operator/commands.ts';
import { COMPACT_CHILD, compactChild } from './operator/compacting.ts';
import { CommandError, EXIT } from './operator/exit.ts';
import { helpOf, overview } from './operator/help.ts';
import { print, told } from './operator/output.ts';

async function main(words: string[]): Promise<void> {
  if (words[0] === COMPACT_CHILD) return compactChild(words.slice(1));
  if (words[0] === '--version') words[0] = 'version';
  if (words[0] === 'help') words = [...words.slice(1), '--help'];
  for (const { spec, prepare } of COMMANDS) {
    const name = spec.name.split(' ');
    if (name.some((word, at) => words[at] !== word)) continue;
    const rest = words.slice(name.length);
    return asksForHelp(rest) ? print(helpOf(spec)) : prepare(rest, process.env)();
  }
  const specs = COMMANDS.map(({ spec }) => spec);
  const group = specs.filter(({ name }) => name.startsWith(`${words[0]} `));
  const usage = overview(group.length > 0 ? group : specs);
  const rest = group.length > 0 ? words.slice(1) : words;
  if (asksForHelp(rest.slice(0, 1))) return print(usage);
  const wrong = rest.length === 0 ? 'a command is missing' : unknown(words, specs);
  throw new CommandError(EXIT.usage, `petstore: ${wrong}\n\n${usage}`);
}

/** Of what was typed, the name is what stands before the first option. */
function unknown(words: string[], specs: { name: string }[]): string {
  const typed = words.slice(0, words[1]?.startsWith('-') ? 1 : 2).join(' ');
  const names = specs.map(({ name }) => name);
  return `there is no command ${JSON.stringify(typed)}${didYouMean(typed, names) || didYouMean(words[0], names)}`;
}

/** What is not taken of our output and our messages is told where it is written. */
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});

/** What we make is nobody else's to read: the store, its socket, backups. */
process.umask(0o077);

main(process.argv.slice(2)).then(
  () => process.exit(EXIT.done),
  async (error: Error) => {
    const known = error instanceof CommandError;
    const words = known ? error.message : `petstore: ${error.stack}`;
    if (words !== '') await told(`${words}\n`);
    process.exit(known ? error.exit : EXIT.failed);
  },
);
