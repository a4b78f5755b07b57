/** The table of commands. */
import type { AllSettings, Extra } from '../extra.ts';
import { openapiDocument } from '../web/openapi.ts';
import { type AnyCommand, command } from './command.ts';
import { backup, compact, exportAnimals, restore, verify, writeBackup } from './data.ts';
import { addBatch, importAnimals, importedInWords, isFirstBatch } from './import.ts';
import {
  createKey,
  liftBan,
  limitsFitPlan,
  listKeys,
  MAX_SECRETS,
  revokeKey,
  rotateKey,
  setPlan,
  showKey,
} from './keys.ts';
import { type Options, pick, SERVE, STORE } from './options.ts';
import { serve } from './serve.ts';
import { COMMIT, RUNTIME, VERSION } from './version.ts';

const { id, plan } = pick('id', 'plan');
const file = (help: string) => ({ file: { ...pick('file').file, help } });
const STORE_AND_JSON = { ...STORE, ...pick('json') };

/** `serve`, with the options of the extras. */
const serveWith = (extras: readonly Extra[]): AnyCommand =>
  command({
    name: 'serve',
    summary: 'run the service until SIGTERM, SIGINT or SIGHUP',
    options: Object.assign({}, SERVE, ...extras.map(({ options }) => options)) as Options,
    check: (settings, given) =>
      extras.map((extra) => extra.check?.(settings as AllSettings, given)).find((fault) => fault !== undefined),
    isServer: true,
    run: (settings, _, program) => serve(settings as AllSettings, program),
  });

/** All commands of a program with these extras, in the order of `--help`. */
export function commandsWith(extras: readonly Extra[]): readonly AnyCommand[] {
  const commands = [serveWith(extras), ...COMMANDS, ...extras.flatMap(({ commands }) => commands ?? [])];
  const forms = extras.flatMap(({ storage }) => storage?.form ?? []);
  return forms.length === 0 ? commands : commands.map((one) => withForms(one, forms.join(' or ')));
}

/** The same command, whose `--store` tells what it takes. */
function withForms(command: AnyCommand, forms: string): AnyCommand {
  const { store }: Options = command.options;
  return store === undefined
    ? command
    : { ...command, options: { ...command.options, store: { ...store, allowed: forms } } };
}

const COMMANDS: readonly AnyCommand[] = [
  command({
    name: 'keys create',
    summary: 'create an API key and print it, once',
    details: 'The key stands alone on the last line. Only its digest is kept: it cannot be shown again.',
    options: {
      ...pick('plan', 'name', 'perMinute', 'perDay'),
      environment: pick('keyEnvironment').keyEnvironment,
      ...pick('data', 'store', 'maxStoreMb', 'json'),
    },
    check: limitsFitPlan,
    access: 'create',
    work: (context, values) => createKey(context, values),
  }),
  command({
    name: 'keys list',
    summary: 'list all keys, with the used part of both windows, and bans',
    options: STORE_AND_JSON,
    access: 'read',
    work: listKeys,
  }),
  command({
    name: 'keys show',
    summary: 'show the requests left to a key, its strikes and its ban; that spends no request',
    args: { id },
    options: STORE_AND_JSON,
    access: 'read',
    work: showKey,
  }),
  command({
    name: 'keys revoke',
    summary: 'end a key at once, for good',
    args: { id },
    options: STORE_AND_JSON,
    access: 'write',
    work: revokeKey,
  }),
  command({
    name: 'keys rotate',
    summary: 'give a key a new secret and print it, once',
    details: `The id, the plan and the used requests stay. Each older secret works until its grace ends: the one given \
now or an earlier one, whichever is sooner. At most ${MAX_SECRETS} secrets work at a time.`,
    args: { id },
    options: { ...pick('grace'), ...STORE_AND_JSON },
    access: 'write',
    work: rotateKey,
  }),
  command({
    name: 'keys lift',
    summary: 'end the ban of a key, and forget its strikes and earlier bans',
    args: { id },
    options: STORE_AND_JSON,
    access: 'write',
    work: liftBan,
  }),
  command({
    name: 'keys plan',
    summary: 'put a key on another plan; its used requests stay used',
    args: { id, plan: { ...plan, help: 'the new plan' } },
    options: { ...pick('perMinute', 'perDay'), ...STORE_AND_JSON },
    check: limitsFitPlan,
    access: 'write',
    work: setPlan,
  }),
  command({
    name: 'verify',
    summary: 'read and check everything in the store; print counts and a digest',
    details: 'Changes nothing. Two stores with the same digest hold the same.',
    options: STORE_AND_JSON,
    access: 'read',
    isAlone: true,
    work: verify,
  }),
  command({
    name: 'compact',
    summary: 'write the store anew, without changes that later ones have replaced',
    options: STORE_AND_JSON,
    access: 'write',
    work: compact,
  }),
  command({
    name: 'backup',
    summary: 'copy the store into one file, also while the service runs',
    args: file('the file to write, which must not exist; - is standard output'),
    options: STORE_AND_JSON,
    access: 'read',
    work: backup,
    run: writeBackup,
  }),
  command({
    name: 'restore',
    summary: 'fill an empty data directory or database from a backup; print its counts and its digest',
    args: file('a file that backup wrote; - is standard input'),
    options: STORE_AND_JSON,
    access: 'create',
    run: restore,
  }),
  command({
    name: 'export',
    summary: 'print all animals as JSON lines',
    options: { ...pick('status'), ...STORE },
    access: 'read',
    work: exportAnimals,
  }),
  command({
    name: 'import',
    summary: 'add animals from a file of JSON lines, or from standard input',
    details: `A line is {"name","categoryId","status"?}; an "id", as export writes it, is ignored, and a new one is given. \
All lines are checked first; if one is bad, nothing is imported. An import that was interrupted is completed by the same \
command: for 24 hours the same input adds nothing twice.`,
    args: file('the file to read; - is standard input'),
    options: pick('skipBad', 'data', 'store', 'maxStoreMb', 'json'),
    access: 'create',
    work: addBatch,
    isLogged: isFirstBatch, // one line for an import
    run: importAnimals,
    words: importedInWords,
  }),
  command({
    name: 'openapi',
    summary: 'print the OpenAPI document',
    options: pick('baseUrl', 'stagingBaseUrl'),
    run: (addresses) => openapiDocument(addresses),
    words: (document) => JSON.stringify(document, null, 2),
  }),
  command({
    name: 'version',
    summary: 'print version, commit and runtime',
    options: pick('json'),
    run: () => ({ version: VERSION, commit: COMMIT, runtime: RUNTIME }),
  }),
];
