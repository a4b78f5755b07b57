/** A gateway that asks in HTTP/1.0, as nginx does by default: it knows neither 1xx nor chunks, and reads to the end. */
import assert from 'node:assert/strict';
import net, { type AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { CASES, probeGateway } from '../../src/probe/probe.ts';
import { readMessage } from '../../src/probe/wire.ts';
import { freePort } from '../program.ts';

const own = (status: string) => `HTTP/1.0 ${status}\r\nContent-Length: 0\r\n\r\n`;

/** One request for each connection, read to its end, and so is the reply. */
async function oldGateway(t: TestContext, origin: number): Promise<string> {
  const sockets = new Set<net.Socket>();
  const kept = (socket: net.Socket) => {
    sockets.add(socket.on('error', () => {}).setEncoding('latin1'));
    return socket;
  };
  const server = net.createServer({ allowHalfOpen: true }, (client) => {
    let [asked, answered] = ['', ''];
    let isAsked = false;
    kept(client).on('data', (part) => {
      asked += part;
      const request = readMessage(asked);
      if (isAsked || !(request?.isWhole || request?.faults.length)) return;
      isAsked = true;
      if (request.faults.length > 0) return client.end(own('400 Bad Request'));
      const named = /^connection: *(.*)$/im.exec(request.head)?.[1].toLowerCase() ?? '';
      const isForHop = (line: string) =>
        ['connection', 'expect', 'te', named].includes(line.split(':')[0].toLowerCase());
      const isFraming = (line: string) => /^(?:content-length|transfer-encoding|trailer):/i.test(line);
      const hasBody = request.framing !== 'none';
      const [first, ...lines] = request.head.split('\r\n').filter((line) => !isForHop(line) && !isFraming(line));
      const length = hasBody ? [`Content-Length: ${request.body.length}`] : [];
      const head = [first.replace('HTTP/1.1', 'HTTP/1.0'), ...lines, ...length, '', ''].join('\r\n');
      const upstream = kept(net.connect(origin, '127.0.0.1'));
      upstream.write(head + request.body, 'latin1');
      upstream.on('data', (bytes) => (answered += bytes));
      upstream.on('close', () => {
        const isOfLater = /^HTTP\/1\.1 1/.test(answered) || /^transfer-encoding:/im.test(answered.split('\r\n\r\n')[0]);
        const told = answered === '' || isOfLater ? own('502 Bad Gateway') : answered.replace('HTTP/1.1', 'HTTP/1.0');
        if (client.writable) client.end(told, 'latin1');
      });
    });
    client.on('end', () => isAsked || client.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What comes of reading each request and each reply to its end, and of leaving `Host` alone. */
const BREAKING = ['continue-passed', 'continue-refused', 'early-401', 'early-413', 'host-against-target'];

test('to a gateway that asks in HTTP/1.0 the origin sends neither 1xx nor chunks, and it ends each connection', async (t) => {
  const port = await freePort();
  const through = await oldGateway(t, port);
  const only = CASES.filter((id) => !/^(?:idle-.*|reply-after-25|drip)$/.test(id));
  const { cases } = await probeGateway({ listen: { host: '127.0.0.1', port }, through, only, slow: false }, () => {});
  const told = cases
    .filter(({ verdict }) => verdict !== 'same')
    .map(({ id, verdict, why }) => `${id} ${verdict}: ${why}`);
  assert.deepEqual(
    told
      .filter((one) => / breaks: /.test(one))
      .map((one) => one.split(' ')[0])
      .sort(),
    BREAKING,
  );
  for (const [id, rule] of [
    ['reply-103', 'RFC 9110 15.2'],
    ['reply-trailers', 'RFC 9112 6.1'],
    ['cut-chunk', 'RFC 9112 8'],
  ]) {
    const found = cases.find((one) => one.id === id)!;
    assert.match(found.came, /Connection: close/, 'else a gateway may keep the connection that ends');
    assert.match(`${found.verdict}: ${found.why}`, /^allowed: the gateway asks in HTTP\/1\.0/, id);
    assert.equal(found.rule, rule);
  }
});
