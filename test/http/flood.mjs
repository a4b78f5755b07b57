// Floods a server from a process of its own: `node flood.mjs '{"port", "connections", "bytes", "requests", "reads"}'`.
// Each connection sends a chunk full of one of the requests; once the server ends it, another takes its place at once.
// With `head` that is sent before, and with `total` no connection sends more than so many bytes.
// Ends with its standard input, and then prints how often it connected.
import net from 'node:net';
import { setPriority } from 'node:os';

const { port, connections, bytes, requests, reads, head = '', total = Infinity } = JSON.parse(process.argv[2]);
const chunks = requests.map((request) => Buffer.from(request.repeat(Math.ceil(bytes / request.length))));
setPriority(19); // who floods has machines of its own
let connected = 0;
let isOver = false;

function flood(chunk) {
  if (isOver) return;
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let left = total;
  const send = () => {
    if (socket.destroyed || left <= 0) return;
    const part = chunk.subarray(0, left);
    left -= part.length;
    socket.write(part, () => reads && setImmediate(send));
  };
  socket.on('connect', () => {
    connected++;
    socket.write(head);
    send();
  });
  if (reads) socket.resume();
  else socket.pause();
  socket.on('end', () => socket.destroy());
  socket.on('error', () => {});
  socket.on('close', () => setImmediate(flood, chunk));
}

for (let i = 0; i < connections; i++) flood(chunks[i % chunks.length]);
process.stdout.write('ready\n');
process.stdin.resume().on('end', () => {
  isOver = true;
  process.stdout.write(`${connected}\n`, () => process.exit());
});
