/** What peers share. */
import { readFileSync } from 'node:fs';

const WRITTEN_BY_NODE = /^(date|connection|keep-alive)$/i;

/** A function that sends the bytes of the replies in a file, one after the other, of those that are wanted. */
export function capturedReplies(file, isWanted = () => true) {
  const replies = JSON.parse(readFileSync(file, 'utf8'))
    .filter(isWanted)
    .map(({ status, rawHeaders, body }) => ({
      status,
      headers: rawHeaders.filter((_, i) => !WRITTEN_BY_NODE.test(rawHeaders[i & ~1])),
      body: Buffer.from(body).toString('latin1'),
    }));
  let next = 0;
  return (response) => {
    const { status, headers, body } = replies[next];
    next = (next + 1) % replies.length;
    response.writeHead(status, headers);
    response.end(body, 'latin1');
  };
}

/** Prints where it listens, and ends at SIGTERM. */
export function announce(port) {
  console.log(`listening on http://127.0.0.1:${port}/v1`);
  process.on('SIGTERM', () => process.exit(0));
}

export const listen = (server) => server.listen(0, '127.0.0.1', () => announce(server.address().port));

/** Reads the body of a request, and gives what it has as JSON. */
export function readJson(request, give) {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => give(JSON.parse(Buffer.concat(chunks).toString())));
}
