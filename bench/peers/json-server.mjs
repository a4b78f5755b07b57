/**
 * json-server over a file, as its own command line sets it up, without its request log and its gzip.
 * Its page is asked for with `_limit`, not `limit`.
 *
 * Left out: keys, limits, validation (it takes any body). A create writes the whole file anew, without fsync.
 */
import { createServer } from 'node:http';
import jsonServer from 'json-server';
import { listen } from './common.mjs';

const app = jsonServer.create();
app.use(jsonServer.defaults({ logger: false, noGzip: true }));
app.use('/v1', jsonServer.router(process.argv[2]));
listen(createServer(app));
