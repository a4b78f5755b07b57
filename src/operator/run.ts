/** The command line: which command is meant, and how the program ends. */
import type { Extra } from '../extra.ts';
import { excerpt, withoutSecrets } from '../text.ts';
import { helpOf, overview, suggestion } from './arguments.ts';
import { type Command, type Program, perform } from './command.ts';
import { commandsWith } from './commands.ts';
import { CommandError, EXIT, note, printLine } from './output.ts';
import { PROGRAM } from './version.ts';

async function main(words: string[], program: Program): Promise<void> {
  const { commands: all } = program;
  if (['--version', '-v', '-V'].includes(words[0])) words[0] = 'version';
  if (words[0] === 'help') words = [...words.slice(1), '--help'];
  const command = all.find(({ name }) => name.split(' ').every((word, at) => words[at] === word));
  if (command !== undefined) {
    const rest = words.slice(command.name.split(' ').length);
    return isHelpWanted(rest) ? void (await printLine(helpOf(command))) : perform(command, rest, process.env, program);
  }
  const group = all.filter(({ name }) => name.startsWith(`${words[0]} `));
  const [commands, rest] = group.length > 0 ? [group, words.slice(1)] : [all, words];
  if (isHelpWanted(rest.slice(0, 1))) return void (await printLine(overview(commands)));
  const isGroup = group.length > 0;
  const fault = rest.length > 0 ? unknownCommand(words, isGroup, all) : isGroup ? oneOf(group) : 'a command is missing';
  const help = isGroup ? `${words[0]} --help` : '--help';
  throw new CommandError(EXIT.usage, `petstore: ${fault}\nSee ${PROGRAM} ${help}`);
}

function isHelpWanted(words: string[]): boolean {
  const options = words.includes('--') ? words.slice(0, words.indexOf('--')) : words;
  return options.includes('--help') || options.includes('-h');
}

/** `keys needs one of: create, list`: of a group that was typed alone. */
function oneOf(group: readonly { name: string }[]): string {
  const pairs = group.map(({ name }) => name.split(' '));
  return `${pairs[0][0]} needs one of: ${pairs.map(([, second]) => second).join(', ')}`;
}

/** `isGroup`: the first word is the name of a group (`keys`), and the second is the unknown one. */
function unknownCommand(words: string[], isGroup: boolean, commands: readonly Command[]): string {
  const next = words[isGroup ? 1 : 0];
  if (next.startsWith('-')) return `a command is missing before ${excerpt(withoutSecrets(next))}`;
  const typed = words.slice(0, isGroup ? 2 : 1).join(' ');
  const names = commands.map(({ name }) => name);
  const firsts = names.map((name) => name.split(' ')[0]).filter((word) => word !== words[0]);
  return `there is no command ${excerpt(withoutSecrets(typed))}${suggestion(typed, names) || suggestion(words[0], firsts)}`;
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
    () => process.exit(EXIT.done),
    async (error: Error) => {
      const isKnown = error instanceof CommandError;
      await note(isKnown ? error.message : `petstore: ${error.stack}`);
      process.exit(isKnown ? error.exit : EXIT.failed);
    },
  );
}
