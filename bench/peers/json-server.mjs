/**
 * json-server as its documentation shows it as a module: `node json-server.mjs ANIMALS.json`. Its router alone, without
 * its log, its compression and its headers for caches; the animals are in memory.
 */
import { readFileSync } from 'node:fs';
import jsonServer from 'json-server';
import { announce } from './common.mjs';

const app = jsonServer.create();
app.use(jsonServer.router({ pets: JSON.parse(readFileSync(process.argv[2], 'utf8')) }));
const server = app.listen(0, '127.0.0.1', () => announce(server.address().port));
