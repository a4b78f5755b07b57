/** The lab on the console, against a small server that remembers what it was asked. */
import assert from 'node:assert/strict';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { OPERATIONS } from '../../src/routes.ts';
import { consolePage } from '../../src/web/console.ts';
import { openapiDocument } from '../../src/web/openapi.ts';
import { assertAccessible, button, expectText, open, skip, startBrowser, view, type Watched } from './browser.ts';
import { checkValue, resolve } from './schema.ts';

const DOCUMENT = openapiDocument({ baseUrl: 'http://x/v1', stagingBaseUrl: 'http://y/v1' });
const LIMITS = {
  RateLimit: '"minute";r=9;t=60, "day";r=99;t=86400',
  'RateLimit-Policy': '"minute";q=10;w=60, "day";q=100;w=86400',
};
const REQUEST = {
  at: '2026-01-01T12:00:00.000Z',
  method: 'POST',
  target: '/v1/store/orders',
  operation: 'createOrder',
};
const CHECK = { id: 'idempotency', weight: 25, verdict: 'fail', count: 1, requestIds: ['a'], why: '1 of 2 retries' };

/** What each call is answered with: state of one key. */
class FakeLab {
  readonly asked: string[] = [];
  ahead = 0;
  isBanned = false;
  faults: object[] = [];
  grade: object = {
    grade: null,
    score: 0,
    seen: 0,
    checks: [{ ...CHECK, verdict: 'unseen', count: 0, why: 'not seen' }],
  };

  answer(call: string, body: string): [status: number, value?: unknown] {
    this.asked.push(`${call} ${body}`.trim());
    const recorded = {
      ...REQUEST,
      status: null,
      requestId: 'a',
      connection: 3,
      idempotencyKey: true,
      fault: 'drop_after',
    };
    if (call === 'GET /lab/clock') return [200, { ahead: this.ahead }];
    if (call === 'POST /lab/clock') return this.#advance(JSON.parse(body).advance);
    if (call === 'GET /lab/faults') return [200, this.faults];
    if (call === 'POST /lab/faults') return this.#arm(JSON.parse(body));
    if (call === 'DELETE /lab/faults') this.faults = [];
    if (call.startsWith('GET /lab/requests')) return [200, [recorded]];
    if (call === 'GET /lab/grade') return [200, this.grade];
    if (call === 'POST /lab/drill')
      return [201, { script: ['The second list is refused.', 'The first order is lost.'] }];
    if (this.isBanned) return [429, { code: 'key_banned', message: 'this key is banned', status: 429 }];
    return call.startsWith('GET /v1/') ? [200, []] : [204];
  }

  #advance(by: string): [number, unknown] {
    const seconds = { '90s': 90, '24h': 86_400 }[by];
    if (seconds === undefined) return refusal('advance: must be a time to let pass');
    return [200, { ahead: (this.ahead += seconds) }];
  }

  #arm(fault: { kind: string; ms?: number }): [number, unknown] {
    if (fault.ms === 99_999) return refusal('ms: must be at most 30000');
    const armed = { id: this.faults.length + 1, times: 1, skip: 0, ...fault };
    this.faults.push(armed);
    return [201, armed];
  }
}

const refusal = (message: string): [number, unknown] => [400, { code: 'invalid_body', message, status: 400 }];

describe('the lab on the console', { skip, concurrency: false }, () => {
  const lab = new FakeLab();
  let server: Server;
  let browser: Browser;
  let watched: Watched;

  before(async () => {
    const running = { url: 'http://x/v1', program: 'petstore', data: 'data', isPublic: false, lab: true };
    const { html, headers } = consolePage(running);
    server = createServer(async (req, res: ServerResponse) => {
      const path = req.url as string;
      const type = { 'Content-Type': path === '/' ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8' };
      if (path === '/') return res.writeHead(200, [...headers, ...Object.entries(type)].flat()).end(html);
      if (path === '/openapi.json') return res.writeHead(200, type).end(JSON.stringify(DOCUMENT));
      const [status, value] = lab.answer(`${req.method} ${path}`, await text(req));
      const wait = status === 429 && { 'Retry-After': '120' };
      res.writeHead(status, { ...type, ...(path.startsWith('/v1') && LIMITS), ...wait });
      return res.end(value === undefined ? '' : JSON.stringify(value));
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    browser = await startBrowser();
    watched = await open(browser, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await watched.useKey('ps_test_any');
    await expectText(watched.page.locator('#gauges'), '9 of 10');
    await view(watched.page, 'Lab');
  });
  after(async () => {
    await watched?.close();
    await browser?.close();
    server?.close();
    server?.closeAllConnections();
  });
  const part = (name: string) => watched.page.getByRole('region', { name, exact: true });

  it('has answers of the form that the document tells, and so has what is built on them', () => {
    const paths = (DOCUMENT as { paths: Record<string, Record<string, { responses: object }>> }).paths;
    for (const [call, path, status, body] of [
      ['GET /lab/clock', '/lab/clock', '200', ''],
      ['POST /lab/faults', '/lab/faults', '201', '{"kind":"drip","ms":5}'],
      ['GET /lab/faults', '/lab/faults', '200', ''],
      ['GET /lab/requests', '/lab/requests', '200', ''],
      ['GET /lab/grade', '/lab/grade', '200', ''],
      ['POST /lab/drill', '/lab/drill', '201', ''],
    ]) {
      const [method] = call.split(' ');
      const told = resolve(DOCUMENT, (paths[path][method.toLowerCase()].responses as Record<string, object>)[status]);
      const [, value] = new FakeLab().answer(call, body);
      assert.deepEqual(checkValue(DOCUMENT, told.content['application/json'].schema, value as never), [], call);
    }
  });

  it('lets time pass, and forgets what was told of the limits', async () => {
    await expectText(part('Clock'), 'not at all ahead');
    await button(part('Clock'), 'Advance').click();
    await expectText(part('Clock'), /1 m 30 s ahead/);
    await expectText(watched.page.locator('#gauges'), 'Shown with the first reply');
    await button(part('Clock'), '+ 24h').click();
    await expectText(part('Clock'), /1 d 1 m 30 s ahead/);
    await part('Clock').getByLabel('By').fill('-5');
    await button(part('Clock'), 'Advance').click();
    await expectText(part('Clock').locator('.field-error'), 'must be a time');
  });

  it('injects faults, says what is wrong with one, and removes them', async () => {
    await expectText(part('Faults'), 'No faults wait');
    await part('Faults').locator('summary').click();
    const form = part('Faults').getByRole('form');
    await form.getByLabel('Kind').selectOption('delay');
    await form.getByLabel('Milliseconds').fill('99999');
    await button(form, 'Inject').click();
    await expectText(form.locator('.field-error'), 'must be at most 30000');
    await form.getByLabel('Milliseconds').fill('500');
    const operations = await form.getByLabel('Operation').locator('option').allTextContents();
    assert.deepEqual(operations.slice(1).sort(), OPERATIONS.map(({ name }) => name).sort());
    await form.getByLabel('Operation').selectOption('createOrder');
    await button(form, 'Inject').click();
    await expectText(part('Faults').locator('tbody'), /delay 500 ms\s+createOrder, 1 ×/);
    assert.ok(lab.asked.includes('POST /lab/faults {"kind":"delay","operation":"createOrder","ms":500}'));
    await button(form, 'Remove all').click();
    await expectText(part('Faults'), 'No faults wait');
  });

  it('shows the record and the grade, arms the drill, and starts again', async () => {
    await expectText(part('Record'), /failed\s+POST \/v1\/store\/orders\s+Idempotency-Key[\s\S]*# 3\s+drop_after/);
    await expectText(part('Grade'), /–\s+No grade yet; 0 % of all weight was seen/);
    await button(part('Grade'), 'Arm the drill').click();
    await expectText(part('Grade'), 'The second list is refused. The first order is lost.');
    lab.grade = { grade: 'B', score: 87, seen: 75, checks: [CHECK] };
    await button(watched.page.locator('#lab'), 'Reload').click();
    await expectText(part('Grade'), /B\s+Score 87 of 100; 75 % of all weight was seen/);
    await expectText(part('Grade'), /fail\s+idempotency\s+1 of 2 retries\s+25/);
    await assertAccessible(watched.page, 'lab');
    await button(part('Grade'), 'Reset').click();
    await expectText(part('Grade'), 'as the seed makes them');
    assert.ok(lab.asked.includes('POST /lab/reset'));
  });

  it('ends a wait that the service asked for by letting time pass', async () => {
    lab.isBanned = true;
    await view(watched.page, 'Animals');
    await button(watched.page.locator('#animals'), 'Reload').click();
    await expectText(watched.page.locator('#banner'), /banned/i);
    await view(watched.page, 'Lab');
    lab.isBanned = false;
    await button(part('Clock'), '+ 24h').click();
    await expectText(part('Clock'), '24h passed.');
    await watched.page.locator('#banner').waitFor({ state: 'hidden' });
  });

  it('has its operations in the reference', async () => {
    await view(watched.page, 'Reference');
    await watched.page.locator('#operation-getLabGrade summary').click();
    await button(watched.page.locator('#operation-getLabGrade'), 'Send').click();
    await expectText(watched.page.locator('#operation-getLabGrade .reply'), '"grade": "B"');
  });
});
