/** The command line: which command is meant, who does its work, how its result is printed, and how the program ends. */
import { systemClock } from '../clock.ts';
import type { Extra } from '../extra.ts';
import type { Engine } from '../store/engine.ts';
import { type Command, commandsWith, type Tools } from './commands.ts';
import { openForCommand, retryWhileInUse, storageOf, storeName } from './data.ts';
import { helpOf, misused, overview, perform, prepare, quoted, suggestion } from './options.ts';
import { asCommandError, ENDING_SIGNALS, EXIT, note, PROGRAM, printResult, UNREAD, usage } from './program.ts';
import { askServer } from './socket.ts';

async function main(words: string[], extras: readonly Extra[]): Promise<void> {
  const commands = commandsWith(extras);
  if (['--version', '-v'].includes(words[0])) words[0] = 'version';
  if (words[0] === 'help') words = [...words.slice(1), '--help'];
  const command = commands.find(({ name }) => `${words.join(' ')} `.startsWith(`${name} `));
  if (command === undefined) return withoutCommand(words, commands);
  const rest = words.slice(command.name.split(' ').length);
  if (rest.some(isHelp)) await printResult(helpOf(command));
  else await runCommand(command, rest, { commands, extras });
}

const isHelp = (word: string): boolean => word === '--help' || word === '-h';

/** Prints which commands there are, or says what is wrong. `keys` alone is a group of commands. */
async function withoutCommand([first = '', second = '']: string[], all: readonly Command[]): Promise<void> {
  const members = all.filter(({ name }) => name.startsWith(`${first} `));
  const isGroup = members.length > 0;
  const [commands, last, group] = isGroup ? [members, second, `${first} `] : [all, first, ''];
  if (isHelp(last)) return printResult(overview(commands));
  const known = commands.map(({ name }) => (isGroup ? name : name.split(' ')[0]));
  const missing = isGroup ? `give one of: ${known.join(', ')}` : 'a command is missing';
  const unknown = `there is no command ${quoted(group + last)}${suggestion(group + last, known)}`;
  throw usage(`petstore: ${last === '' ? missing : unknown}\nSee ${PROGRAM} ${group}--help`);
}

async function runCommand(command: Command, words: string[], program: Pick<Tools, 'commands' | 'extras'>) {
  const { name, access, takes, run } = command;
  const { texts, values } = prepare(command, words, process.env, program.commands);
  const { data, store, json } = values;
  try {
    // What reads the URL is loaded only where there is one.
    if (store !== undefined) await storageOf(store, program.extras).check(store);
  } catch (error) {
    throw misused(command, error as Error);
  }
  let engine: Engine | undefined;
  const ask: Tools['ask'] = (texts, input = []) =>
    retryWhileInUse(async () => {
      const reply = store === undefined ? await askServer(data, name, texts, input) : undefined;
      if (reply !== undefined) return reply;
      const how = { readOnly: access === 'read', mustExist: access !== 'create' };
      engine = await openForCommand(values, program.extras, how);
      return perform(command, { engine, clock: systemClock }, texts, input);
    });
  const interrupted = () => {
    note(`petstore ${name} was interrupted`);
    process.exit(EXIT.failed); // at once: what is not complete must not become so
  };
  if (access !== undefined) for (const signal of ENDING_SIGNALS) process.on(signal, interrupted);
  const own = Object.fromEntries(Object.entries(texts).filter(([name]) => name in takes));
  try {
    await show(command, await (run ? run(values, { ...program, texts, ask }) : ask(own)), json);
    await engine?.close();
  } catch (error) {
    await engine?.close().catch(() => {}); // the first failure is reported, not this one
    throw asCommandError(error, storeName(values)) ?? error;
  }
}

/** Prints the result. The store is closed later, so that a new key is printed even if closing fails. */
async function show({ name, access = 'read' }: Command, result: unknown, isJson: boolean): Promise<void> {
  try {
    await printResult(result, isJson);
  } catch (error) {
    const { id }: { id?: string } = Object(result);
    if (access !== 'read') throw new Error(`${name} was done${id ? ` (${id})` : ''}, but ${(error as Error).message}`);
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
    (error: Error) => {
      const known = asCommandError(error, 'petstore');
      note(known?.message ?? `petstore: ${error.stack}`);
      end(known?.exit ?? EXIT.failed);
    },
  );
}
