// Floods a server from a process of its own: `node flood.mjs '{"port", "connections", "bytes", "requests", "reads"}'`.
// Each connection sends `head` and a chunk full of one of the requests. Once the server ends it, or it was not read for a
// second or so, another takes its place.
// Ends with its standard input.
import net from 'node:net';
import { setPriority } from 'node:os';

const { port, connections, bytes, requests, reads, head = '' } = JSON.parse(process.argv[2]);
const chunks = requests.map((request) => Buffer.from(request.repeat(Math.ceil(bytes / request.length))));
setPriority(19); // who floods has machines of its own

function flood(chunk, i) {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const send = () => {
    if (!socket.destroyed) socket.write(chunk, () => reads && setImmediate(send));
  };
  socket.on('connect', () => {
    socket.write(head);
    send();
  });
  if (reads) socket.resume();
  else {
    socket.pause();
    setTimeout(() => socket.destroy(), 500 + 100 * (i % 10));
  }
  socket.on('end', () => socket.destroy());
  socket.on('error', () => {});
  socket.on('close', () => setImmediate(flood, chunk, i));
}

for (let i = 0; i < connections; i++) flood(chunks[i % chunks.length], i);
process.stdout.write('ready\n');
process.stdin.resume().on('end', () => process.exit());
