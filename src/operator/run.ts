/** The command line: which command is meant, and how the program ends. */
import type { Extra } from '../extra.ts';
import { helpOf, overview, quoted, suggestion } from './arguments.ts';
import { type Command, type Program, perform } from './command.ts';
import { commandsWith } from './commands.ts';
import { CommandError, EXIT, note, printLine } from './output.ts';
import { PROGRAM } from './version.ts';

async function main(words: string[], program: Program): Promise<void> {
  if (['--version', '-v', '-V'].includes(words[0])) words[0] = 'version';
  if (words[0] === 'help') words = [...words.slice(1), '--help'];
  const command = program.commands.find(({ name }) => name.split(' ').every((word, index) => words[index] === word));
  if (command === undefined) return withoutCommand(words, program.commands);
  const rest = words.slice(command.name.split(' ').length);
  if (rest.some(isHelp)) await printLine(helpOf(command));
  else await perform(command, rest, process.env, program);
}

const isHelp = (word: string): boolean => word === '--help' || word === '-h';

/** Prints which commands there are, or says what is wrong. `keys` alone is a group of commands. */
async function withoutCommand(words: readonly string[], all: readonly Command[]): Promise<void> {
  const members = all.filter(({ name }) => name.startsWith(`${words[0]} `));
  const [group, commands] = members.length > 0 ? [[words[0]], members] : [[], all];
  const next = words[group.length];
  if (isHelp(next)) return void (await printLine(overview(commands)));
  const start = (words: readonly string[]) => words.slice(0, group.length + 1).join(' ');
  const known = commands.map(({ name }) => start(name.split(' ')));
  const missing = group.length > 0 ? `give one of: ${known.join(', ')}` : 'a command is missing';
  const unknown = `there is no command ${quoted(start(words))}${suggestion(start(words), known)}`;
  const fault = next === undefined ? missing : unknown;
  throw new CommandError(EXIT.usage, `petstore: ${fault}\nSee ${[PROGRAM, ...group, '--help'].join(' ')}`);
}

/** For what may still be open: a pipe that nobody reads. */
const MAX_END_MS = 500;

/**
 * Lets Node end by itself, at once if nothing is open. `process.exit` would wait for the threads that compile, and one of
 * them may wait until this thread collects garbage.
 */
function end(status: number): void {
  process.exitCode = status;
  setTimeout(() => process.exit(), MAX_END_MS).unref();
}

/** Runs the command line of this process to its end. */
export function run(extras: readonly Extra[]): void {
  // Errors of writing output are handled where it is written; without a listener they would end the process here.
  process.stdout.on('error', () => {});
  process.stderr.on('error', () => {});

  // Files that the program makes (store, socket, backups) are readable by their owner alone.
  process.umask(0o077);

  // Without a listener Node would open a debugger's port at SIGUSR1, to which every user of the machine can connect.
  process.on('SIGUSR1', () => {});

  // For an event loop that runs dry before `main` has come to its end.
  process.exitCode = EXIT.failed;

  main(process.argv.slice(2), { commands: commandsWith(extras), extras }).then(
    () => end(EXIT.done),
    async (error: Error) => {
      const isKnown = error instanceof CommandError;
      await note(isKnown ? error.message : `petstore: ${error.stack}`);
      end(isKnown ? error.exit : EXIT.failed);
    },
  );
}
