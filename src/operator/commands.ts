/** The table of commands, in the order of `--help`. */
import type { Extra } from '../extra.ts';
import { addAnimals, exportAnimals, importAnimals } from './animals.ts';
import { type Command, command } from './command.ts';
import { backup, compact, restore, verify, writeBackup } from './data.ts';
import * as keys from './keys.ts';
import { askReady } from './listen.ts';
import * as o from './options.ts';
import { COMMIT, RUNTIME, VERSION } from './program.ts';
import { serve } from './serve.ts';

const COMMANDS: readonly Command[] = [
  command('keys create', 'create an API key and print it, once', o.NEW_KEY, {
    more: 'The key stands alone on the last line. Only its digest is kept: it cannot be shown again.',
    access: 'create',
    misfit: keys.misfitOfLimits,
    work: keys.createKey,
  }),
  command(
    'keys find',
    'read a key from stdin; say whose it is, if it works',
    {},
    {
      more: `For a key that leaked. Only its digest leaves this process. It works as long as it is not revoked, not replaced \
longer ago than its grace, and of the environment of the running server; a ban, which ends by itself, stands beside. Exit 1 \
if the key is nobody’s.`,
      access: 'read',
      takes: o.DIGEST,
      work: keys.findKey,
      run: keys.findBySecret,
    },
  ),
  command(
    'keys list',
    'list keys, what is used of both windows, and bans',
    {},
    {
      access: 'read',
      work: keys.listKeys,
      run: keys.printKeys,
    },
  ),
  command('keys revoke', 'end a key at once, for good', o.KEY_ID, { access: 'write', work: keys.revokeKey }),
  command(
    'keys rotate',
    'give a key a new secret and print it, once',
    { ...o.KEY_ID, ...o.GRACE },
    {
      more: `The id, the plan and the used requests stay. Each older secret works until its grace ends: the one given \
now or an earlier one, whichever is sooner; 0s ends it at once. At most ${keys.MAX_SECRETS} secrets work at a time.`,
      access: 'write',
      work: keys.rotateKey,
    },
  ),
  command('keys lift', 'end a ban; forget strikes and earlier bans', o.KEY_ID, { access: 'write', work: keys.liftBan }),
  command('keys plan', 'change the plan; used requests stay used', o.NEW_PLAN, {
    access: 'write',
    misfit: keys.misfitOfLimits,
    work: keys.setPlan,
  }),
  command(
    'verify',
    'read and check all of the store; print a digest',
    {},
    {
      more: 'Changes nothing. Two stores with the same digest hold the same.',
      access: 'read',
      run: verify,
    },
  ),
  command('compact', 'write the store anew, without what was replaced', {}, { access: 'write', work: compact }),
  command(
    'backup',
    'copy the store into a file, also while it is served',
    {
      ...o.fileOption('the file to write, which must not exist; - is stdout'),
    },
    { access: 'read', takes: {}, work: backup, run: writeBackup },
  ),
  command(
    'restore',
    'fill an empty directory or database from a backup',
    {
      ...o.fileOption('a file that backup wrote; - is standard input'),
    },
    { access: 'create', run: restore },
  ),
  command('export', 'print all animals as JSON lines', o.STATUS, { access: 'read', work: exportAnimals }),
  command('import', 'add animals from JSON lines', o.fileOption('the file to read; - is standard input'), {
    more: `A line is {"name","categoryId","status"?}; an "id", as export writes it, is ignored, and a new one is given. \
All lines are checked first; if one is bad, or they do not fit, nothing is imported. An import that was interrupted is \
completed by the same command: for 24 hours the same input adds nothing twice.`,
    access: 'create',
    takes: o.INPUT,
    work: addAnimals,
    run: importAnimals,
  }),
  command(
    'health',
    'ask the local service whether it serves; exit 1 if not',
    { ...o.LISTENING, ...o.JSON_SWITCH },
    {
      more: 'For the health check of a container.',
      run: askReady,
    },
  ),
  command('version', 'print version, commit and runtime', o.JSON_SWITCH, {
    run: () => ({ version: VERSION, commit: COMMIT, runtime: RUNTIME }),
  }),
];

/** All commands of a program with these extras. */
export function commandsWith(extras: readonly Extra[]): readonly Command[] {
  const added: o.Options = Object.assign({}, ...extras.map(({ options }) => options));
  return [
    command('serve', 'run the service until SIGTERM, SIGINT or SIGHUP', { ...o.SERVE, ...added }, { run: serve }),
    ...COMMANDS,
  ];
}
