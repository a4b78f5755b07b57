/** Everything on the console, done in a real browser on a live server. The tests go on from one another. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { ENDPOINTS } from '../../src/routes.ts';
import { openapiDocument } from '../../src/web/openapi.ts';
import { PATIENT } from '../program.ts';
import { skip, stage, type Watched } from './browser.ts';

const live = stage();
const MARKUP = '<img src=x onerror=alert(1)>';
const BIG = '9007199254740993';
/** What a line prints that was copied from the page. */
const shell = (line: string | null, env: Record<string, string> = {}) =>
  execFileSync('sh', ['-c', line ?? ''], { cwd: tmpdir(), env: { PATH: process.env.PATH, ...env }, encoding: 'utf8' });

/** Run in the page: what others may try there. Tells what came of it. */
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

  it('tells at first how to get a key, by a command that works', async () => {
    assert.match(shell(await ui.at('#welcome pre').textContent(), PATIENT), /^ps_live_\w+$/m);
    assert.equal(await ui.exchanges().count(), 0, 'nothing is asked without a key');
  });

  it('says that a key is refused, and why; takes one, keeps it for this tab alone, and forgets it', async () => {
    const kept = () => page.evaluate('[JSON.stringify(sessionStorage), Object.values(localStorage), document.cookie]');
    await ui.useKey(`${live.key.slice(0, -1)}${live.key.endsWith('a') ? 'b' : 'a'}`);
    await ui.see('#key', /Refused[\s\S]*The API key is mistyped/);
    await ui.see('#gauges', 'Left for your address');
    await ui.useKey(live.key);
    await ui.see('#key-standing', 'Accepted');
    const [session, ...others] = (await kept()) as [string, string[], string];
    assert.ok(session.includes(live.key));
    assert.deepEqual(others, [[], '']);
    await page.reload();
    await ui.see('#key-standing', 'Accepted');
    await ui.at('#key summary').click();
    await ui.press('Forget');
    await ui.at('#welcome').waitFor();
    assert.deepEqual(await kept(), ['{}', [], '']);
    assert.equal(await ui.exchanges().count(), 0);
    await ui.useKey(live.key);
    await ui.see(ui.rowOf('Bello'), /^1\s+Bello\s+Dogs 1\s+available\s+Order$/);
    await ui.shoot('wide-light');
  });

  it('keeps filter and page in the address: turned, gone back, reloaded', async () => {
    const animals = ui.at('#animals');
    const status = animals.locator('.toolbar').getByLabel('Status');
    const next = '&after=5';
    const turns: [turn: () => Promise<unknown>, hash: string, ids: string][] = [
      [() => animals.getByLabel('Page size').selectOption('5'), '', '1 to 5'],
      [() => ui.press('Next page', animals), next, '6 to 10'],
      [() => page.reload(), next, '6 to 10'],
      [() => ui.press('Previous page', animals), '', '1 to 5'],
      [() => page.goBack(), next, '6 to 10'],
      [() => ui.press('First page', animals), '', '1 to 5'],
      [() => status.selectOption('sold'), '', '9 to '],
      [() => page.goBack(), '', '1 to 5'],
    ];
    for (const [turn, hash, ids] of turns) {
      await turn();
      await ui.see(animals.locator('.position'), `Ids ${ids}`);
      const filter = ids === '9 to ' ? 'status=sold&' : '';
      assert.equal(new URL(page.url()).hash, `#animals?${filter}limit=5${hash}`);
    }
    assert.equal(await ui.button('Previous page', animals).count(), 0);
    assert.equal(await status.inputValue(), '');
  });

  it('shows one animal by its id, and says when there is none', async () => {
    await ui.view('Animals');
    await ui.send('.find', { 'Id of one animal': '7' }, 'Show');
    await ui.see('#animals pre', '"name": "Pip"');
    await page.getByRole('link', { name: '← All animals' }).click();
    await ui.go('animals/9223372036854775807');
    await ui.see('#animals .state', 'There is no animal 9223372036854775807.');
    await ui.view('Animals');
  });

  it('shows the messages of the service at the fields; adds an animal: its name is text, its category exact', async () => {
    const form = await ui.drawer('Add an animal');
    await ui.send(form, { Category: 'abc' }, 'Add');
    await ui.see(form.locator('.field-error').nth(0), /255/);
    await ui.see(form.locator('.field-error').nth(1), /whole number/);
    assert.equal(await form.getByLabel('Name').and(ui.at(':focus[aria-invalid=true]')).count(), 1);
    await ui.send(form, { Name: MARKUP, Category: BIG }, 'Add');
    await ui.see(ui.rowOf(MARKUP), BIG);
    assert.equal(await ui.at('img').count(), 0);
    await ui.at('#animals .toolbar').getByLabel('Status').selectOption('sold');
    await ui.see(ui.rows().first(), 'Waldi');
    await ui.send(form, { Name: 'Not sold', Category: BIG }, 'Add');
    await form.getByRole('link', { name: 'Show it' }).click(); // where the filter leaves it out
    await ui.see('#animals pre', '"name": "Not sold"');
    await ui.view('Animals');
  });

  it('places, finds, delivers and cancels orders from the rows', async () => {
    const headers = { Authorization: `Bearer ${live.key}`, 'Content-Type': 'application/json' };
    const post = (path: string, body: object) =>
      fetch(`${live.origin}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    await post('store/orders', { petId: 1 });
    await post('pets', { name: 'Nobody ordered me', categoryId: 4, status: 'pending' });
    await ui.press('Reload', '#animals');
    await ui.see(ui.rowOf('Bello'), 'pending');
    await ui.press(/^Find its order/, ui.rowOf('Bello'));
    await ui.press(/^Deliver order/, ui.rowOf('Bello'));
    await ui.press(/Yes, deliver$/, ui.rowOf('Bello'));
    await ui.see(ui.rowOf('Bello'), 'sold');
    await ui.press('Order Mimi', ui.rowOf('Mimi'));
    await ui.press(/^Cancel order/, ui.rowOf('Mimi'));
    await ui.press(/Yes, cancel$/, ui.rowOf('Mimi'));
    await ui.see(ui.rowOf('Mimi'), 'available');
    const pending = ui.rowOf('Nobody ordered me');
    await ui.press('Next page', '#animals');
    await ui.press(/^Find its order/, pending);
    await ui.see(pending, 'no open order');
  });

  it('lists orders, places one, shows it by its id, and changes it there', async () => {
    await ui.view('Orders');
    await ui.see(ui.rows().nth(0), /Bello 1[\s\S]*delivered/);
    await ui.see(ui.rows().nth(1), /Mimi 2[\s\S]*cancelled/);
    const form = await ui.drawer('Place an order');
    await ui.send(form, { Animal: '1' }, 'Place');
    await ui.see(form.locator('.note'), 'sold');
    await ui.send(form, { Animal: '4711' }, 'Place');
    await ui.see(form.locator('.field-error'), '4711');
    await ui.send(form, { Animal: '2' }, 'Place');
    await ui.see(ui.rows().last(), /Mimi 2[\s\S]*placed/);
    await ui.rows().last().getByRole('link', { name: '3', exact: true }).click();
    await ui.see('#orders pre', '"status": "placed"');
    await ui.press(/^Deliver order/, ui.rows());
    await ui.press(/Yes, deliver$/, ui.rows());
    await ui.see(ui.rows(), 'delivered');
    await ui.go('orders/99');
    await ui.see('#orders .state', /no such order/i);
  });

  it('names a category beyond 2^53, and keeps each request as a line for the shell, the key hidden', async () => {
    await ui.view('Categories');
    await ui.send(await ui.drawer('Name a category'), { Id: BIG, Name: "It's <b>" }, 'Save');
    await ui.see(ui.rowOf("It's <b>"), BIG);
    const put = ui.exchanges().first();
    await put.locator('summary').click();
    const line = (await put.getByLabel('As a curl line').textContent()) ?? '';
    assert.match(line, /-H "Authorization: Bearer \$PETSTORE_KEY" .* --data-raw '\{"name":"It'\\''s <b>"\}'$/);
    const printed = shell(`${line} -sS`, { PETSTORE_KEY: live.key });
    assert.match(printed, new RegExp(`^HTTP/1.1 200 OK[\\s\\S]*\\{"id":${BIG},"name":"It's <b>"\\}$`));
    assert.ok(!(await ui.at('body').textContent())?.includes(live.key));
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await ui.press('Copy', put);
    await ui.see(put, 'Copied');
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), line);
    await page.getByLabel('Show the key').check();
    await ui.see(put.getByLabel('As a curl line'), live.key);
    await page.getByLabel('Show the key').uncheck();
  });

  it('says when there is no reply, and tries again', async () => {
    await ui.view('Animals');
    await page.route('**/v1/pets?*', (route) => route.abort());
    await ui.at('#animals .toolbar').getByLabel('Status').selectOption('sold');
    await ui.see('#animals .state', 'No reply from the service');
    await page.unroute('**/v1/pets?*');
    await ui.press('Try again', '#animals');
    await ui.see(ui.rows().first(), 'sold');
    ui.forgive(/net::ERR_FAILED/);
  });

  it('has every operation in the reference, tried there, and followed by its links', async () => {
    await ui.view('Reference');
    const operations = ui.at('.operation');
    await operations.first().waitFor();
    assert.equal(await operations.count(), ENDPOINTS.length, 'the lab is not served here');
    const document = openapiDocument({ baseUrl: `${live.origin}/v1` });
    assert.deepEqual(await (await fetch(`${live.origin}/openapi.json`)).json(), document);
    await ui.see('#operation-getPet', 'deprecated, ends 2030-12-05');
    const card = (id: string) => ui.at(`#operation-${id}`);
    for (const operation of await operations.all()) {
      await operation.locator('summary').click();
      await ui.press('Send', operation);
      await ui.see(operation.locator('.reply'), /^HTTP\/1\.1 (20[01]|400|409) /);
    }
    await ui.send(card('putCategory'), { categoryId: '9007199254740995' }, 'Send');
    await ui.press('Add an animal of this category', card('putCategory'));
    assert.match(await card('createPet').getByLabel('Body, as JSON').inputValue(), /"categoryId": 9007199254740995\n/);
    await ui.press('Send', card('createPet'));
    await ui.press('Order the animal, if it is available', card('createPet'));
    await ui.press('Send', card('createOrder'));
    await ui.press('Cancel the order', card('createOrder'));
    await ui.press('Send', card('updateOrder'));
    await ui.see(card('updateOrder').locator('.reply'), '"status": "cancelled"');
  });

  it('shows a request that was sent without a key as one without', async () => {
    const ui = await live.open();
    await ui.go('reference/listPets');
    await ui.press('Send', '#operation-listPets');
    await ui.see('#operation-listPets .reply', /^HTTP\/1\.1 401 /);
    const sent = ui.exchanges().first();
    await sent.locator('summary').click();
    await ui.see(sent.getByLabel('Request', { exact: true }), /^GET \/v1\/pets\S* HTTP\/1\.1$/);
    const line = (await sent.getByLabel('As a curl line').textContent()) ?? '';
    assert.match(shell(`${line} -sS`, {}), /^HTTP\/1\.1 401 [\s\S]*"missing_api_key"/);
    await ui.close();
  });

  it('lets nothing run that is not its own', async () => {
    const refused = (await page.evaluate(TRESPASS)) as string[];
    assert.equal(refused[0], 'stopped');
    assert.ok(refused.includes('require-trusted-types-for') && refused.includes('frame-src'), String(refused));
    ui.forgive(/Content Security Policy|TrustedHTML|TrustedScript/);
  });

  it('is used by keyboard alone', async () => {
    await page.goto('about:blank');
    await page.goto(live.origin);
    await ui.rowOf('Luna').waitFor();
    const focused = ui.at(':focus');
    await page.keyboard.press('Tab');
    await ui.see(focused, 'Skip to the content');
    await page.keyboard.press('Enter');
    assert.equal(await focused.getAttribute('id'), 'main');
    await ui.button('Order Luna').focus();
    await page.keyboard.press('Enter');
    await ui.see(ui.rowOf('Luna'), 'pending');
    assert.match((await focused.getAttribute('aria-label')) ?? '', /^Deliver order/, 'the focus stays in the row');
    await page.keyboard.press('Enter');
    assert.match((await focused.getAttribute('aria-label')) ?? '', /^Deliver order \d+ for Luna\? No$/);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await ui.see('#live', /is delivered; animal 10 is sold/);
    assert.equal(await focused.getAttribute('data-id'), '10', 'the focus stays, though no button is left');
  });

  it('says without JavaScript what to do instead, and shows no dead form', async () => {
    const ui = await live.open({ javaScriptEnabled: false });
    await ui.see('.plain', 'This page needs JavaScript');
    assert.equal(await ui.at(':is(form, button, nav):visible').count(), 0);
    const line = await ui.at('.plain pre').nth(1).textContent();
    assert.match(shell(`${line} -sS`, { PETSTORE_KEY: live.key }), /^HTTP\/1\.1 200 OK/);
    await ui.close();
  });

  it('is without fault to axe-core, wide and on a phone', async () => {
    await ui.isAccessible('animals');
    const views = { 'orders/1': 'pre', categories: 'td', 'reference/createPet': 'form' };
    for (const [hash, wanted] of Object.entries(views)) {
      await ui.go(hash);
      await ui.at(`main > section:visible ${wanted}`).first().waitFor();
      await ui.isAccessible(hash);
    }
  });
});
