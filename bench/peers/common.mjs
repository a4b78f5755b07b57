/** What peers share. */

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

/** The reply to a request that has added this animal. */
export function sendCreated(response, animal) {
  const body = JSON.stringify(animal);
  const type = 'application/json; charset=utf-8';
  const length = Buffer.byteLength(body);
  response.writeHead(201, { 'Content-Type': type, 'Content-Length': length, Location: `/v1/pets/${animal.id}` });
  response.end(body);
}
