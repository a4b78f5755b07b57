/** The console: a page at `/` to try the service by hand, in a browser. */
import type { Extra } from '../../src/extra.ts';
import { flag } from '../../src/operator/options.ts';
import { PROGRAM } from '../../src/operator/version.ts';
import { staticEndpoint } from '../../src/service/public.ts';
import { CONSOLE_HEADERS, consolePage } from './console.ts';

export const console: Extra = {
  options: { noConsole: flag('serve no console at /') },
  serve({ settings, origin, url }) {
    if (settings.noConsole) return undefined;
    const { host, trustProxy, data, store } = settings;
    const isPublic = trustProxy > 0 || !isLoopback(host);
    const html = () => consolePage({ url, program: PROGRAM, data: store ? undefined : data, isPublic });
    return {
      endpoints: [staticEndpoint('/', 'text/html; charset=utf-8', html, CONSOLE_HEADERS)],
      lines: [`The console: ${origin}/`],
    };
  },
};

/** Whether only this machine reaches a listener there. */
const isLoopback = (host: string): boolean => /^(?:127(?:\.\d+)+|::1|(?:.+\.)?localhost\.?)$/i.test(host);
