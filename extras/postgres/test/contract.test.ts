/** What holds for every engine, of the one on PostgreSQL: the contract of stores, and what a client of the API sees. */
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { systemClock } from '../../../src/clock.ts';
import { tryGroup } from '../../../test/api/row.ts';
import { GROUPS } from '../../../test/api/table.ts';
import { RunningClock } from '../../../test/clock.ts';
import { serviceFor } from '../../../test/service.ts';
import { storeContract } from '../../../test/store/contract.ts';
import { restoreIntoPostgres } from '../commands.ts';
import { openPostgres } from '../open.ts';
import { onDatabase } from './database.ts';

/** A request with another status is refused before the engine is involved. */
const OF_ENGINE = [200, 201, 204, 304, 404, 409, 412, 429];
const log = { info: () => {}, warn: () => {}, error: () => {} };

onDatabase('the engine on PostgreSQL', (database) => {
  const newUrl = () => database().url(`s${randomBytes(8).toString('hex')}`);

  storeContract({
    name: 'PostgreSQL',
    hasReplicas: true,
    newPlace() {
      const url = newUrl();
      return {
        open: (options) => openPostgres(url, { clock: systemClock, log, ...options }),
        restore: (lines) => restoreIntoPostgres(url, lines),
      };
    },
  });

  for (const group of GROUPS) {
    test(`the API: ${group.name}`, async (t) => {
      const { banAfter } = group.settings;
      const clock = new RunningClock();
      const engine = await openPostgres(newUrl(), { clock, log, banAfter });
      const rows = group.rows.filter(({ status, method }) => OF_ENGINE.includes(status) && method !== 'OPTIONS');
      await tryGroup(t, await serviceFor(t, { ...group.settings, clock, engine }), { ...group, rows });
    });
  }
});
