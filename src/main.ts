#!/usr/bin/env node
/** The command line: one row per command. */
import * as config from './config.ts';
import { asksForHelp, helpOf, overview, parseArguments } from './operator/arguments.ts';
import * as data from './operator/data-commands.ts';
import { CommandError, EXIT } from './operator/exit.ts';
import { exportAnimals } from './operator/export.ts';
import { importAnimals } from './operator/import.ts';
import * as keys from './operator/key-commands.ts';
import { compactChild } from './operator/opening.ts';
import type { Options, Spec, Values } from './operator/options.ts';
import { print } from './operator/output.ts';
import { openapi } from './operator/pages.ts';
import { serve } from './operator/serve.ts';
import { version } from './operator/version.ts';

interface Command {
  spec: Spec<Options>;
  run(words: readonly string[]): Promise<void>;
}

function row<O extends Options>(spec: Spec<O>, run: (values: Values<O>) => Promise<void>): Command {
  return { spec, run: (words) => run(parseArguments(spec, words, process.env)) };
}

const COMMANDS: readonly Command[] = [
  row(config.SERVE, serve),
  row(config.KEYS_CREATE, keys.keysCreate),
  row(config.KEYS_LIST, keys.keysList),
  row(config.KEYS_SHOW, keys.keysShow),
  row(config.KEYS_REVOKE, keys.keysRevoke),
  row(config.KEYS_ROTATE, keys.keysRotate),
  row(config.KEYS_LIFT, keys.keysLift),
  row(config.KEYS_PLAN, keys.keysPlan),
  row(config.VERIFY, data.verifyStore),
  row(config.REPAIR, data.repairStore),
  row(config.COMPACT, data.compactStore),
  row(config.BACKUP, data.backupStore),
  row(config.RESTORE, data.restoreStore),
  row(config.EXPORT, exportAnimals),
  row(config.IMPORT, importAnimals),
  row(config.OPENAPI, openapi),
  row(config.VERSION, version),
  row(config.COMPACT_CHILD, compactChild),
];

const EXITS = ['0 done', '1 failed', '2 wrong usage', '3 damaged data', '4 in use by another'];

async function main(words: string[]): Promise<void> {
  if (words[0] === '--version') words[0] = 'version';
  if (words[0] === 'help') words = [...words.slice(1), '--help'];
  const found = find(words);
  if (found !== undefined) {
    const [command, rest] = found;
    if (asksForHelp(rest)) print(helpOf(command.spec).trimEnd());
    else await command.run(rest);
    return;
  }
  const group = COMMANDS.filter(({ spec }) => spec.name.startsWith(`${words[0]} `));
  const usage = overview(
    (group.length > 0 ? group : COMMANDS).map(({ spec }) => spec),
    EXITS,
  );
  const rest = group.length > 0 ? words.slice(1) : words;
  if (asksForHelp(rest.slice(0, 1))) return print(usage.trimEnd());
  const known =
    rest.length === 0 ? 'a command is missing' : `there is no command ${JSON.stringify(words.slice(0, 2).join(' '))}`;
  throw new CommandError(EXIT.usage, `petstore: ${known}\n\n${usage.trimEnd()}`);
}

function find(words: string[]): [Command, string[]] | undefined {
  for (const command of COMMANDS) {
    const name = command.spec.name.split(' ');
    if (name.every((word, at) => words[at] === word)) return [command, words.slice(name.length)];
  }
  return undefined;
}

/** Whoever reads our output may stop, as `petstore export | head` does. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.done : EXIT.failed);
});

/** Whoever reads our messages may stop as well; what was asked for is still done. */
process.stderr.on('error', () => {});

/** What we make is nobody else's to read: the store, its socket, backups. */
process.umask(0o077);

/** A pipe takes what is printed when its reader does; to exit before would cut it off. */
function end(status: number): void {
  if (process.stdout.writableLength === 0) process.exit(status);
  process.stdout.write('', () => process.exit(status));
}

main(process.argv.slice(2)).then(
  () => end(EXIT.done),
  (error: Error) => {
    const known = error instanceof CommandError;
    process.stderr.write(known ? `${error.message}\n` : `petstore: ${error.stack}\n`, () => {
      end(known ? error.exit : EXIT.failed);
    });
  },
);
