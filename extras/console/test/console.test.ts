/** The console in a real browser, which is one for all of these, each with a server of its own; and the client in it. */
import './console/use.ts';
import './console/focus.ts';
import './console/limits.ts';
import './console/lab.ts';
import './console/client.ts';
