/**
 * The floor: plain node:net that answers each head with the bytes of one captured reply. `node floor.mjs REPLIES.json`
 * A head ends where a chunk ends with an empty line, and nothing of it is read: what remains is what the kernel and
 * Node's sockets cost. So it is for requests without bodies that wait for each reply.
 */
import { readFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import net from 'node:net';
import { listen } from './common.mjs';

const [{ status, rawHeaders, body }] = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const lines = rawHeaders.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
const reply = Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`);
const END_OF_HEAD = 0x0d0a0d0a;

const server = net.createServer({ noDelay: true }, (socket) => {
  socket.on('data', (chunk) => {
    if (chunk.length >= 4 && chunk.readUInt32BE(chunk.length - 4) === END_OF_HEAD) socket.write(reply);
  });
  socket.on('error', () => socket.destroy());
});
listen(server);
