/** What every engine promises of a store, of the engine on PostgreSQL. */
import { randomBytes } from 'node:crypto';
import { systemClock as clock } from '../../src/clock.ts';
import { restoreIntoPostgres } from '../../src/postgres/commands.ts';
import { openPostgres } from '../../src/postgres/engine.ts';
import { storeContract } from '../store/contract.ts';
import { onDatabase } from './database.ts';

const log = { info: () => {}, warn: () => {}, error: () => {} };

onDatabase('the contract of stores', (database) => {
  storeContract({
    name: 'PostgreSQL',
    hasReplicas: true,
    newPlace() {
      const url = database().url(`s${randomBytes(8).toString('hex')}`);
      return {
        open: (options) => openPostgres(url, { clock, log, ...options }),
        restore: (lines) => restoreIntoPostgres(url, lines),
      };
    },
  });
});
