/** Everything on the console, done in a real browser on a live server. The tests go on from one another. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { page as pageFromSource } from '../assets.ts';
import { PHONE, skip, stage, type Watched } from './browser.ts';

const live = stage();
const MARKUP = '<img src=x onerror=alert(1)>';
const BIG = '9007199254740993';
type Item = { id: number; name: string };
/** What a line prints that was copied from the page. */
const shell = (line: string | null, env: Record<string, string> = {}) =>
  execFileSync('sh', ['-c', line ?? ''], { cwd: tmpdir(), env: { PATH: process.env.PATH, ...env }, encoding: 'utf8' });

/** Run in the page: scripts and frames that are not its own. Returns what came of it. */
const TRESPASS = `new Promise((resolve) => {
  const breaches = [];
  addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
    breaches.push(effectiveDirective);
    if (effectiveDirective === 'frame-src') resolve(['ran' in window ? 'ran' : 'stopped', ...breaches]);
  });
  const script = document.createElement('script');
  try { script.textContent = 'window.ran = true'; } catch {}
  document.body.append(script);
  try { document.body.insertAdjacentHTML('beforeend', '<i></i>'); } catch {}
  const frame = document.createElement('iframe');
  frame.src = 'data:text/html,x';
  document.body.append(frame);
})`;

describe('the console', { skip }, () => {
  let ui: Watched;
  let page: Page;
  before(async () => {
    ui = await live.open();
    page = ui.page;
  });
  after(() => ui?.close());

  it('says where the key is, and sends nothing without one', async () => {
    await ui.see('#welcome', 'stands in the terminal below the address');
    assert.equal(await ui.at('#limits').isVisible(), false, 'no limits are known');
    await ui.press('Use key');
    await ui.see('#key-refusal', 'Paste a key here first.');
    assert.equal(await ui.exchanges().count(), 0, 'nothing is sent without a key');
    await ui.isAccessible('welcome');
  });

  it('says why a key is refused; keeps an accepted one for this tab alone, and forgets it', async () => {
    const stored = () =>
      page.evaluate('[JSON.stringify(sessionStorage), Object.values(localStorage), document.cookie]');
    await ui.useKey(`${live.key.slice(0, -1)}${live.key.endsWith('a') ? 'b' : 'a'}`);
    await ui.see('#key', /Refused[\s\S]*The API key is mistyped/);
    await ui.see('#animals .state', /^Enter a valid key/);
    await ui.see('#gauges', 'Left for your address');
    await ui.useKey(`ID k1\n${live.key}`); // pasted with what was printed around it
    await ui.see('#key-standing', 'Accepted');
    const [session, ...others] = (await stored()) as [string, string[], string];
    assert.ok(session.includes(live.key));
    assert.deepEqual(others, [[], '']);
    await page.reload();
    await ui.see('#key-standing', 'Accepted');
    await ui.at('#key summary').click();
    await ui.press('Forget');
    await ui.at('#welcome').waitFor();
    assert.deepEqual(await stored(), ['{}', [], '']);
    assert.equal(await ui.exchanges().count(), 0);
    await ui.useKey(live.key);
    await ui.see(ui.rowOf('Bello'), /^1\s+Bello\s+Dogs 1\s+available\s+Order\s*Edit$/);
    await ui.shoot('wide-light');
  });

  it('keeps filter and page in the address: turned, gone back, reloaded', async () => {
    const animals = ui.at('#animals');
    const status = animals.locator('.toolbar').getByLabel('Status');
    const next = '?after=20';
    const turns: [turn: () => Promise<unknown>, hash: string, ids: string][] = [
      [() => ui.press('Next page', animals), next, '21 to 30'],
      [() => page.reload(), next, '21 to 30'],
      [() => ui.press('First page', animals), '', '1 to 20'],
      [() => page.goBack(), next, '21 to 30'],
      [() => status.selectOption('sold'), '?status=sold', '9 to '],
      [() => page.goBack(), next, '21 to 30'],
    ];
    for (const [turn, hash, ids] of turns) {
      await turn();
      await ui.see(animals.locator('.position'), `Ids ${ids}`);
      assert.equal(new URL(page.url()).hash, `#animals${hash}`);
    }
  });

  it('shows a page from its beginning, also where its button stood far below', async () => {
    const size = page.viewportSize()!;
    await page.setViewportSize({ ...size, height: 400 });
    for (const [button, name] of Object.entries({ 'First page': 'Bello', 'Next page': 'Goldie' })) {
      await page.evaluate('scrollTo(0, document.body.scrollHeight)');
      await ui.press(button, '#animals');
      await ui.rowOf(name).waitFor();
      const { y } = (await ui.rowOf(name).boundingBox())!;
      assert.ok(y > 0 && y < 400, `${button}: the list begins at ${y} px`);
    }
    await page.setViewportSize(size);
  });

  it('shows the first view at an address that names none', async () => {
    for (const hash of ['toString', 'reference/getPet', '%']) {
      await ui.go(hash);
      await ui.see('main > section:visible', 'Bello');
      assert.equal(await page.title(), 'Animals · petstore console');
    }
    await ui.go('animals?after=a');
    await ui.see('#animals .state.bad', 'after');
    await ui.view('Animals');
  });

  it('shows the messages of the service at the fields; adds an animal of a category by its exact id', async () => {
    const form = await ui.drawer('Add an animal');
    const before = await ui.exchanges().first().textContent();
    await ui.press('Add', form);
    await ui.see(form.locator('.field-error').nth(0), /^Enter a name\.$/);
    await ui.see(form.locator('.field-error').nth(1), /^Enter the id of a category\.$/);
    assert.equal(await ui.exchanges().first().textContent(), before, 'an empty form costs no request');
    assert.equal(await form.getByLabel('Name').and(ui.at(':focus[aria-invalid=true]')).count(), 1);
    assert.equal(await page.locator('datalist option[value="3"]').textContent(), 'Birds');
    await ui.send(form, { Name: 'First', Category: '3' }, 'Add');
    await ui.see(form.locator('.note'), 'First was added');
    await ui.send(form, { Name: MARKUP, Category: 'abc' }, 'Add');
    await ui.see(form.locator('.field-error').nth(1), /whole number/);
    assert.equal(await form.getByLabel('Category').and(ui.at(':focus[aria-invalid=true]')).count(), 1);
    assert.equal(await form.locator('[aria-invalid=true]').count(), 1);
    await ui.send(form, { Category: BIG }, 'Add');
    await form.getByRole('link', { name: 'Show it' }).click(); // it is on the next page
    await ui.see(ui.rows(), MARKUP);
    await ui.see(ui.rows(), BIG);
    assert.equal(await ui.at('img').count(), 0);
    await ui.view('Animals');
  });

  it('edits an animal by a request that its row fills in, and removes one', async () => {
    await ui.press('Next page', '#animals');
    await page.getByRole('link', { name: /^Edit: First/ }).click();
    const form = page.getByRole('form', { name: 'Try a request' });
    const reply = ui.at('#try .reply');
    const body = form.getByLabel('Body');
    assert.equal(await body.inputValue(), '{"name":"First","categoryId":3}');
    await body.fill('{"name":" "}');
    await ui.press('Send', form);
    await ui.see(reply, /white space[\s\S]*400 Bad Request/);
    await body.fill(`{"name":"Renamed","categoryId":${BIG}}`);
    await ui.press('Send', form);
    await ui.see(reply, new RegExp(`"name": "Renamed",\\s+"categoryId": ${BIG}`));
    await ui.isAccessible('a reply');
    const path = await form.getByLabel('Path').inputValue();
    await ui.view('Animals');
    await ui.press('Next page', '#animals');
    await ui.see(ui.rowOf('Renamed'), BIG);
    await ui.view('Try');
    assert.equal(await form.getByLabel('Path').inputValue(), path, 'what was typed stays');
    const order = await live.send<Item>('POST /v1/store/orders', { petId: Number(path.split('/').pop()) });
    await form.getByLabel('Method').selectOption('DELETE');
    assert.equal(await body.isVisible(), false);
    await ui.press('Send', form);
    await ui.see(reply, 'has a placed order');
    await live.send(`PATCH /v1/store/orders/${order.id}`, { status: 'cancelled' });
    await ui.press('Send', form);
    await ui.see(reply, '204 No Content');
    await ui.view('Animals');
    await ui.press('Next page', '#animals');
    await ui.see('#animals .position', 'no more');
    assert.equal(await ui.rowOf('Renamed').count(), 0);
    await ui.press('First page', '#animals');
    await ui.rowOf('Bello').waitFor();
  });

  it('places an order from the row of an animal, which leads to the open orders: to deliver or cancel it there', async () => {
    for (const [name, button, status, ofAnimal] of [
      ['Bello', /^Deliver order/, 'delivered', 'sold'],
      ['Mimi', /^Cancel order/, 'cancelled', 'available'],
    ] as const) {
      await ui.press(`Order ${name}`);
      await ui.see(ui.note(), new RegExp(`^Order \\d+ was placed for ${name}, animal \\d+\\.$`));
      await ui.see(ui.rowOf(name), 'pending');
      await page.getByRole('link', { name: `Its order: ${name}` }).click();
      await ui.see(ui.rowOf(name), /placed[\s\S]*Deliver\s*Cancel/);
      await ui.press(button, ui.rowOf(name));
      await ui.see(ui.note(), new RegExp(`is ${status}; animal \\d+ is ${ofAnimal}\\.`));
      await ui.see(ui.rowOf(name), status);
      await ui.view('Animals');
      await ui.see(ui.rowOf(name), ofAnimal);
    }
  });

  it('shows beside a refusal what the animal and the order are by now', async () => {
    await ui.view('Animals');
    await ui.see(ui.rowOf('Kiwi'), 'available');
    const { id } = await live.send<Item>('POST /v1/store/orders', { petId: 3 }); // behind the page's back
    await ui.press('Order Kiwi');
    await ui.see(ui.rowOf('Kiwi'), /pending\s+Its order/);
    await ui.see('#animals .note.bad', 'available');
    await ui.view('Orders');
    await ui.see(ui.rowOf('Kiwi'), 'placed');
    await live.send(`PATCH /v1/store/orders/${id}`, { status: 'delivered' });
    await ui.press(`Cancel order ${id}`, '#orders');
    await ui.see('#orders .note.bad', 'already delivered');
    await ui.see(ui.rowOf('Kiwi'), /delivered\s*$/);
    await ui.view('Animals');
    await ui.see(ui.rowOf('Kiwi'), 'sold');
  });

  it('lists orders with the names of their animals, places one, and leads to its animal', async () => {
    await ui.view('Orders');
    await ui.see(ui.rowOf('Bello'), /Bello 1[\s\S]*delivered/);
    const form = await ui.drawer('Place an order');
    await ui.press('Place', form);
    await ui.see(form.locator('.field-error'), 'Enter an id.');
    await ui.send(form, { Animal: '1' }, 'Place');
    await ui.see(form.locator('.note'), 'sold');
    await ui.send(form, { Animal: '4711' }, 'Place');
    await ui.see(form.locator('.field-error'), '4711');
    await ui.send(form, { Animal: '2' }, 'Place');
    await ui.see(ui.rows().last(), /Mimi 2[\s\S]*placed/);
    await ui.rows().last().getByRole('link', { name: '2' }).click();
    await ui.see(ui.rows().first(), /Mimi[\s\S]*pending/);
  });

  it('keeps each request: its reply, the headers folded, and a line for the shell with the key hidden', async () => {
    await ui.see(await ui.try('PUT', `/v1/categories/${BIG}`, `{"name":"It's <b>"}`), BIG);
    const put = ui.exchanges().filter({ hasText: 'PUT ' });
    await put.locator('summary').first().click();
    assert.match((await put.locator('.exchange pre').first().textContent()) ?? '', /^\{\s+"id": 9007199254740993,/);
    const headers = put.getByLabel('Reply, its headers');
    assert.equal(await headers.isVisible(), false);
    await put.locator('summary').filter({ hasText: '201 Created · headers' }).click();
    await ui.see(headers, /x-request-id: /);
    const line = (await put.getByLabel('As a curl line').textContent()) ?? '';
    assert.match(line, /-H "Authorization: Bearer \$PETSTORE_KEY" .* --data-raw '\{"name":"It'\\''s <b>"\}'$/);
    const printed = shell(`${line} -sS`, { PETSTORE_KEY: live.key });
    assert.match(printed, new RegExp(`^HTTP/1.1 200 OK[\\s\\S]*\\{"id":${BIG},"name":"It's <b>"\\}$`));
    assert.ok(!(await ui.at('body').textContent())?.includes(live.key));
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await ui.press('Copy', put);
    await ui.see(put, 'Copied');
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), line);
    await ui.see(put, 'First, with your key: export PETSTORE_KEY=');
  });

  it('tries any operation, beside a list that shows what came of it', async () => {
    await ui.see(await ui.try('GET', '/v1/store/orders/1'), '"status": "cancelled"');
    await ui.see(await ui.try('GET', '/v1/pets/1'), '"name": "Bello"');
    await ui.see(await ui.try('GET', '/v1/none'), /"code": "not_found"[\s\S]*404 Not Found/);
    await ui.see(await ui.try('POST', '/v1/pets', '{"name":"Tried"'), '"code": "invalid_json"');
    await ui.see(await ui.try('PUT', '/v1/categories/1', '{"name":"Hounds"}'), '"name": "Hounds"');
    const form = page.getByRole('form', { name: 'Try a request' });
    await ui.send(form, { Path: '' }, 'Send');
    await ui.see(form.locator('.field-error').nth(1), 'Enter a path.');
    await ui.view('Animals');
    await ui.see(ui.rowOf('Bello'), 'Hounds 1');
  });

  it('says of a key that only reads what it may not do, and goes on reading', async () => {
    const key = (await live.operate('keys', 'create', '--plan', 'free', '--read-only')).split('\n').at(-1) ?? '';
    await ui.useKey(key);
    await ui.see('#key-standing', /^Accepted$/);
    await ui.press('Order Luna');
    await ui.see('#animals .note.bad', 'this key may only read');
    await ui.see('#key-standing', 'Accepted, only reads');
    const form = page.getByRole('form', { name: 'Add an animal' });
    await ui.send(form, { Name: 'Nobody', Category: '1' }, 'Add');
    await ui.see(form.locator('.note.bad'), 'this key may only read');
    await ui.press('Reload', '#animals');
    await ui.see(ui.rowOf('Luna'), 'available');
    await ui.see('#key-standing', 'Accepted, only reads');
    await ui.isAccessible('a key that only reads', '#key');
    await ui.useKey(live.key);
    await ui.see('#key-standing', /^Accepted$/);
  });

  it('runs nothing that is not its own, and may not be framed', async () => {
    const refused = (await page.evaluate(TRESPASS)) as string[];
    assert.equal(refused[0], 'stopped');
    assert.ok(refused.includes('require-trusted-types-for') && refused.includes('frame-src'), String(refused));
    ui.forgive(/Content Security Policy|TrustedHTML|TrustedScript/);
    const reply = await fetch(live.origin);
    assert.match(reply.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
    const html = await reply.text(); // of a bundle; the policy has the hashes of its style and script
    const policyOf = (text: string) => /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(text)?.[1];
    assert.equal(policyOf(html), policyOf(pageFromSource()), 'the page from source is the same');
    assert.ok(html.length <= 65_000 && gzipSync(html).length <= 25_000, `${html.length} characters`);
  });

  it('is used by keyboard alone', async () => {
    await page.goto('about:blank');
    await page.goto(live.origin);
    await ui.rowOf('Luna').waitFor();
    await page.keyboard.press('Tab');
    await ui.focusComesTo('Skip to the content');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate('document.activeElement.id'), 'main');
    await ui.button('Order Luna').focus();
    await page.keyboard.press('Enter');
    await ui.focusComesTo(/^Its order: Luna/);
    await page.keyboard.press('Enter');
    await ui.focusComesTo('Orders');
    await ui.see(ui.rowOf('Luna'), 'placed');
    await ui.button(/^Deliver order/, ui.rowOf('Luna')).focus();
    await page.keyboard.press('Enter');
    await ui.see('#live', /is delivered; animal 10 is sold/);
    const row = ui.rowOf('Luna').and(ui.at(':focus, :focus-within'));
    assert.equal(await row.count(), 1, 'the focus stays in the row');
    await page.getByRole('link', { name: 'Try' }).focus();
    await page.keyboard.press('Enter');
    await ui.focusComesTo('Try');
    const form = page.getByRole('form', { name: 'Try a request' });
    await form.getByLabel('Method').selectOption('GET');
    await form.getByLabel('Path').fill('/v1/pets/10');
    await page.keyboard.press('Enter');
    await ui.see('#try .reply', '"name": "Luna"');
    await ui.see('#live', 'The reply is 200.');
  });

  it('says without JavaScript what to do instead, and shows no dead form', async () => {
    const ui = await live.open({ javaScriptEnabled: false });
    await ui.see('.plain', 'This page needs JavaScript');
    assert.equal(await ui.at(':is(form, button, nav):visible').count(), 0);
    assert.equal(await ui.at('.plain a').getAttribute('href'), '/openapi.json');
    await ui.close();
  });

  it('shows on a phone the requests above the list, as one line', async () => {
    await page.setViewportSize(PHONE);
    await ui.view('Animals');
    await page.reload();
    await ui.rowOf('Berta').waitFor();
    const top = async (where: string) => (await ui.at(where).boundingBox())!.y;
    assert.ok((await top('#requests')) < (await top('#animals')), 'the requests come first');
    assert.ok((await top('#animals tbody tr:first-child')) < (PHONE.height * 2) / 3, 'the list is in sight');
    assert.equal(await ui.exchanges().first().isVisible(), false, 'as one line');
    await ui.at('#requests > summary').click();
    await ui.see(ui.exchanges().first(), 'GET /v1/');
  });

  it('breaks long names and ids within their columns', async () => {
    const name = 'W'.repeat(255);
    const low = '-9223372036854775808';
    await live.send(`PUT /v1/categories/${low}`, { name });
    const { id } = await live.send<Item>('POST /v1/pets', { name, categoryId: Number.MIN_SAFE_INTEGER });
    await live.send('POST /v1/store/orders', { petId: id });
    await page.reload(); // it has read neither orders nor categories yet
    for (const hash of [`animals?after=${id - 1}`, 'orders']) {
      await ui.go(hash);
      await ui.see(ui.rowOf('WWWW').first(), 'WWWW');
      await ui.fits(hash);
      await page.setViewportSize(PHONE);
      const { height } = (await ui.rowOf('WWWW').first().boundingBox())!;
      assert.ok(height < 260, `${hash}: a row of ${height} px`);
    }
  });

  it('is without fault to axe-core, wide in light and on a phone in dark', async () => {
    for (const hash of ['animals', 'orders']) {
      await ui.go(hash);
      await ui.at('main > section:visible td').first().waitFor();
      await ui.isAccessible(hash);
    }
    const release = await ui.hold('**/v1/store/orders*');
    await ui.press('Reload', '#orders');
    await ui.at('#orders [aria-busy=true] td').first().waitFor();
    await ui.isAccessibleNow('orders, while a reply is awaited');
    release();
  });
});
