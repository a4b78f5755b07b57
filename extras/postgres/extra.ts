/** PostgreSQL in place of a directory, for several replicas of the service on one store. */
import type { Extra } from '../../src/extra.ts';

/** All of it, with the driver, is loaded only where `--store` names a database. */
export const postgres: Extra = {
  storage: {
    schemes: /^postgres(?:ql)?$/,
    form: 'postgres://USER:PASSWORD@HOST/DATABASE',
    check: async (url) => void (await import('./address.ts')).addressOf(url),
    open: async (url, options) => (await import('./open.ts')).openPostgres(url, options),
    restore: async (url, bytes) => (await import('./commands.ts')).restoreIntoPostgres(url, bytes),
  },
};
