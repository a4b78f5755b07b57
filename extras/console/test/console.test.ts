/** The console in a real browser, which is one for all of these, each with a server of its own; and the client in it. */
import './use.ts';
import './focus.ts';
import './limits.ts';
import './lab.ts';
import './client.ts';
