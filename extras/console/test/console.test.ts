/** The console in a real browser, which is one for all of these, each with a server of its own. */
import './use.ts';
import './focus.ts';
import './limits.ts';
