/** The table of commands, in the order of `--help`. */
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
import { gradeOf, printGrade, serveLab } from './lab.ts';
import { pick, SERVE, STORE } from './options.ts';
import { serve } from './serve.ts';
import { COMMIT, RUNTIME, VERSION } from './version.ts';

const { id, plan } = pick('id', 'plan');
const file = (help: string) => ({ file: { ...pick('file').file, help } });
const STORE_AND_JSON = { ...STORE, ...pick('json') };

export const COMMANDS: readonly AnyCommand[] = [
  command({
    name: 'serve',
    summary: 'run the service until SIGTERM, SIGINT or SIGHUP',
    options: SERVE,
    check: ({ lab, environment }, given) =>
      lab && environment !== 'staging' ? `${given('lab')} needs --environment staging` : undefined,
    isServer: true,
    run: (settings) => serve(settings, COMMANDS),
  }),
  command({
    name: 'lab',
    summary: 'try a client: the service with its lab, the built-in example and a key',
    details:
      'Its store is in a directory of its own, removed at the end. It prints the key and the lines to type next.',
    options: pick('port'),
    isServer: true,
    run: (values) => serveLab(values, COMMANDS),
  }),
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
    name: 'grade',
    summary: 'grade the client of a key; exit 1 if the grade is lower than wanted',
    details: `Asks the server that runs with --lab. If a failed POST may still come again, the command waits for it, 2 \
minutes at most. Exit 5 if too little was seen for a grade.`,
    args: { id },
    options: { ...pick('atLeast'), ...STORE_AND_JSON },
    access: 'read',
    work: gradeOf,
    run: printGrade,
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
