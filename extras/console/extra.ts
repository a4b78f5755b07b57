/** The console: a page at `/` to try the service by hand, in a browser. */
import type { Extra } from '../../src/extra.ts';
import { flag } from '../../src/operator/options.ts';
import { staticEndpoint } from '../../src/service/public.ts';
import { page } from './assets.ts';

/** What the policy in the page cannot say of itself. */
const HEADERS = ['Content-Security-Policy', "frame-ancestors 'none'", 'Referrer-Policy', 'no-referrer'];

export const console: Extra = {
  options: { noConsole: flag('serve no console at /') },
  serve({ settings, origin }) {
    if (settings.noConsole) return undefined;
    return {
      endpoints: [staticEndpoint('/', 'text/html; charset=utf-8', page, HEADERS)],
      lines: [`The console: ${origin}/`],
    };
  },
};
