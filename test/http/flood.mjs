// Floods a server from a process of its own: `node flood.mjs '{"port", "connections", "bytes", "request", "reads"}'`.
// Each connection sends a chunk full of requests; once the server ends it, another takes its place at once.
// Ends with its standard input, and then prints how often it connected and how many bytes it read.
import net from 'node:net';
import { setPriority } from 'node:os';

const { port, connections, bytes, request, reads } = JSON.parse(process.argv[2]);
const chunk = Buffer.from(request.repeat(Math.ceil(bytes / request.length)));
setPriority(19); // who floods has machines of its own
let connected = 0;
let received = 0;
let isOver = false;

function flood() {
  if (isOver) return;
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const send = () => !socket.destroyed && socket.write(chunk, () => reads && setImmediate(send));
  socket.on('connect', () => {
    connected++;
    send();
  });
  if (reads) socket.on('data', (part) => (received += part.length));
  else socket.pause();
  socket.on('end', () => socket.destroy());
  socket.on('error', () => {});
  socket.on('close', () => setImmediate(flood));
}

for (let i = 0; i < connections; i++) flood();
process.stdout.write('ready\n');
process.stdin.resume().on('end', () => {
  isOver = true;
  process.stdout.write(`${JSON.stringify({ connected, received })}\n`, () => process.exit());
});
