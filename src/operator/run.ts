/** The command line: which command is meant, who does its work, how its result is printed, and how the program ends. */
import { systemClock } from '../clock.ts';
import type { Extra } from '../extra.ts';
import type { Engine } from '../store/engine.ts';
import { type Command, commandsWith, type Place, type Tools } from './commands.ts';
import { openForCommand, retryWhileInUse, storageOf, storeName } from './data.ts';
import { flagOf, helpOf, misused, overview, perform, prepare, quoted, suggestion } from './options.ts';
import {
  asCommandError,
  CommandError,
  EXIT,
  inWords,
  isBody,
  note,
  PROGRAM,
  print,
  printLine,
  usage,
} from './program.ts';
import { askServer } from './socket.ts';

async function main(words: string[], extras: readonly Extra[]): Promise<void> {
  const commands = commandsWith(extras);
  if (['--version', '-v', '-V'].includes(words[0])) words[0] = 'version';
  if (words[0] === 'help') words = [...words.slice(1), '--help'];
  const command = commands.find(({ name }) => name.split(' ').every((word, index) => words[index] === word));
  if (command === undefined) return withoutCommand(words, commands);
  const rest = words.slice(command.name.split(' ').length);
  if (rest.some(isHelp)) await printLine(helpOf(command));
  else await runCommand(command, rest, commands, extras);
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
  throw usage(`petstore: ${next === undefined ? missing : unknown}\nSee ${[PROGRAM, ...group, '--help'].join(' ')}`);
}

async function runCommand(
  command: Command,
  words: string[],
  commands: readonly Command[],
  extras: readonly Extra[],
): Promise<void> {
  const { name, access, takes, run, work } = command;
  const { texts, labelOf, values: all } = prepare(command, words, process.env, commands);
  const values = all as Place;
  const { data, store, json } = values;
  try {
    // What reads the URL is loaded only where there is one.
    if (store !== undefined) await storageOf(store, extras).check(store);
  } catch (error) {
    throw misused(command, new Error((error as Error).message.replace('--store', labelOf('store'))));
  }
  let engine: Engine | undefined;
  const ask: Tools['ask'] = (texts, input) =>
    retryWhileInUse(async () => {
      const reply = store === undefined ? await askServer(data, name, texts, input ?? []) : undefined;
      if (reply !== undefined) return reply;
      engine = await openForCommand(values, access, extras);
      return perform(command, { engine, clock: systemClock }, texts, flagOf, input ?? []);
    });
  if (access !== undefined) exitOnSignals(name);
  const own = Object.fromEntries(Object.entries(texts).filter(([name]) => name in takes));
  const tools = { commands, extras, texts, labelOf, ask };
  try {
    await show(command, await (run ? run(values, tools) : work && ask(own)), json);
    await engine?.close();
  } catch (error) {
    await engine?.close().catch(() => {}); // the first failure is reported, not this one
    throw asCommandError(error, storeName(values)) ?? error;
  }
}

/** Prints the result. The store is closed later, so that a new key is printed even if closing fails. */
async function show({ name, access = 'read' }: Command, result: unknown, isJson: boolean): Promise<void> {
  if (result === undefined) return;
  if (isBody(result)) {
    for await (const chunk of result) if (!(await print(chunk))) return;
    return;
  }
  const { id }: { id?: string } = Object(result);
  const doneBut = (why: string) => new CommandError(EXIT.failed, `${name} was done${id ? ` (${id})` : ''}, but ${why}`);
  const text = typeof result === 'string' ? result : isJson ? JSON.stringify(result, null, 2) : inWords(Object(result));
  const isRead = await printLine(text).catch((error) => {
    throw access === 'read' ? error : doneBut(error.message);
  });
  if (!isRead && access !== 'read') throw doneBut('nobody read the result');
}

function exitOnSignals(name: string): void {
  const exit = () => {
    void note(`petstore ${name} was interrupted`);
    process.exit(EXIT.failed); // at once: what is not complete must not become so
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, exit);
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

  main(process.argv.slice(2), extras).then(
    () => end(EXIT.done),
    async (error: Error) => {
      const isKnown = error instanceof CommandError;
      await note(isKnown ? error.message : `petstore: ${error.stack}`);
      end(isKnown ? error.exit : EXIT.failed);
    },
  );
}
