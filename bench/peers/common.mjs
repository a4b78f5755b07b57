/** What all peers share: printing where they listen, and the end at SIGTERM. */
export function announce(port) {
  console.log(`listening on http://127.0.0.1:${port}/v1`);
  process.on('SIGTERM', () => process.exit(0));
}

export const listen = (server) => server.listen(0, '127.0.0.1', () => announce(server.address().port));
