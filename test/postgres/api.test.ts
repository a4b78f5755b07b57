/** The API is the same: what a client sees does not tell the engine. */
import { test } from 'node:test';
import { openPostgres } from '../../src/postgres/engine.ts';
import { tryGroup } from '../api/row.ts';
import { GROUPS } from '../api/table.ts';
import { RunningClock } from '../clock.ts';
import { serviceFor } from '../service.ts';
import { onDatabase } from './database.ts';

const log = { info: () => {}, warn: () => {}, error: () => {} };

onDatabase('the API on PostgreSQL', (database) => {
  for (const [at, group] of GROUPS.entries()) {
    test(group.name, async (t) => {
      const { banAfter } = group.settings;
      const clock = new RunningClock();
      const engine = await openPostgres(database().url(`api_${at}`), { clock, log, banAfter });
      await tryGroup(t, await serviceFor(t, { ...group.settings, clock, engine }), group);
    });
  }
});
