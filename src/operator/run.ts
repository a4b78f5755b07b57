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
  ENDING_SIGNALS,
  EXIT,
  inWords,
  isBody,
  note,
  PROGRAM,
  print,
  printLine,
  UNREAD,
  usage,
} from './program.ts';
import { askServer } from './socket.ts';

async function main(words: string[], extras: readonly Extra[]): Promise<void> {
  const commands = commandsWith(extras);
  if (['--version', '-v'].includes(words[0])) words[0] = 'version';
  if (words[0] === 'help') words = [...words.slice(1), '--help'];
  const command = commands.find(({ name }) => `${words.join(' ')} `.startsWith(`${name} `));
  if (command === undefined) return withoutCommand(words, commands);
  const rest = words.slice(command.name.split(' ').length);
  if (rest.some(isHelp)) await show(HELP, helpOf(command));
  else await runCommand(command, rest, commands, extras);
}

const isHelp = (word = ''): boolean => word === '--help' || word === '-h';
const HELP = { name: 'help' };

/** Prints which commands there are, or says what is wrong. `keys` alone is a group of commands. */
async function withoutCommand(words: readonly string[], all: readonly Command[]): Promise<void> {
  const members = all.filter(({ name }) => name.startsWith(`${words[0]} `));
  const [commands, group] = members.length > 0 ? [members, `${words[0]} `] : [all, ''];
  const typed = words.slice(0, group === '' ? 1 : 2);
  if (isHelp(typed.at(-1))) return show(HELP, overview(commands));
  const known = commands.map(({ name }) => name.split(' ').slice(0, typed.length).join(' '));
  const name = typed.join(' ');
  const unknown = `there is no command ${quoted(name)}${suggestion(name, known)}`;
  const missing = name === '' ? 'a command is missing' : `give one of: ${members.map(({ name }) => name).join(', ')}`;
  const isMissing = name === group.trim();
  throw usage(`petstore: ${isMissing ? missing : unknown}\nSee ${PROGRAM} ${group}--help`);
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
  const ask: Tools['ask'] = (texts, input = []) =>
    retryWhileInUse(async () => {
      const reply = store === undefined ? await askServer(data, name, texts, input) : undefined;
      if (reply !== undefined) return reply;
      engine = await openForCommand(values, access, extras);
      return perform(command, { engine, clock: systemClock }, texts, flagOf, input);
    });
  const interrupted = () => {
    void note(`petstore ${name} was interrupted`);
    process.exit(EXIT.failed); // at once: what is not complete must not become so
  };
  if (access !== undefined) for (const signal of ENDING_SIGNALS) process.on(signal, interrupted);
  const own = Object.fromEntries(Object.entries(texts).filter(([name]) => name in takes));
  const tools = { commands, extras, texts, ask };
  try {
    await show(command, await (run ? run(values, tools) : work && ask(own)), json);
    await engine?.close();
  } catch (error) {
    await engine?.close().catch(() => {}); // the first failure is reported, not this one
    throw asCommandError(error, storeName(values)) ?? error;
  }
}

/** Prints the result. The store is closed later, so that a new key is printed even if closing fails. */
async function show({ name, access = 'read' }: Pick<Command, 'name' | 'access'>, result: unknown, isJson = false) {
  if (result === undefined) return;
  const { id }: { id?: string } = Object(result);
  try {
    if (isBody(result)) for await (const chunk of result) await print(chunk);
    else if (typeof result === 'string') await printLine(result);
    else await printLine(isJson ? JSON.stringify(result, null, 2) : inWords(Object(result)));
  } catch (error) {
    const { message } = error as Error;
    if (access !== 'read') throw new Error(`${name} was done${id ? ` (${id})` : ''}, but ${message}`);
    if (error !== UNREAD) throw error; // as in `petstore export | head`
  }
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
