/** The console in a real browser: one for all of these, each with a server of its own. */
import './console/use.ts';
import './console/focus.ts';
import './console/limits.ts';
import './console/lab.ts';
