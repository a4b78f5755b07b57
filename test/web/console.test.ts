/** Everything on the console, done in a real browser on a live server. The tests go on from one another. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import {
  assertAccessible,
  button,
  exchanges,
  expectText,
  open,
  rowOf,
  rows,
  shoot,
  skip,
  startBrowser,
  view,
  type Watched,
} from './browser.ts';
import { type Live, SEED, startLive } from './server.ts';

const MARKUP = '<img src=x onerror=alert(1)>';
const BIG = '9007199254740993';
const shell = (line: string, env: Record<string, string> = {}, cwd = tmpdir()) =>
  promisify(execFile)('sh', ['-c', line], { cwd, env: { PATH: process.env.PATH, ...env } });

/** Run in the page: what others may try there. Tells what came of it. */
const TRESPASS = `new Promise((resolve) => {
  const breaches = [];
  addEventListener('securitypolicyviolation', (event) => breaches.push(event.effectiveDirective));
  const script = document.createElement('script');
  try { script.textContent = 'window.ran = true'; } catch {}
  document.body.append(script);
  try { document.body.insertAdjacentHTML('beforeend', '<i></i>'); } catch {}
  const frame = document.createElement('iframe');
  frame.src = 'data:text/html,x';
  document.body.append(frame);
  const wait = () => breaches.includes('frame-src') ? resolve(['ran' in window ? 'ran' : 'stopped', ...breaches]) : setTimeout(wait, 10);
  wait();
})`;

describe('the console', { skip, concurrency: false }, () => {
  let live: Live;
  let browser: Browser;
  let watched: Watched;
  let page: Page;
  const go = (hash: string) => page.evaluate(`location.hash = '#${hash}'`);

  before(async () => {
    live = await startLive('--seed', SEED);
    browser = await startBrowser();
    watched = await open(browser, live.origin);
    page = watched.page;
  });
  after(async () => {
    await watched?.close();
    await browser?.close();
    await live?.stop();
  });

  it('tells at first how to get a key, by a command that works', async () => {
    const { stdout } = await shell((await page.locator('#welcome pre').textContent()) ?? '');
    assert.match(stdout, /^ps_live_\w+$/m);
    assert.equal(await exchanges(page).count(), 0, 'nothing is asked without a key');
  });

  it('says that a key is refused, and why; takes one, keeps it for this tab alone, and forgets it', async () => {
    const kept = () => page.evaluate('[JSON.stringify(sessionStorage), Object.values(localStorage), document.cookie]');
    await watched.useKey(`${live.key.slice(0, -1)}${live.key.endsWith('a') ? 'b' : 'a'}`);
    await expectText(page.locator('#key'), /Refused[\s\S]*The API key is mistyped/);
    await expectText(page.locator('#gauges'), 'Left for your address');
    await watched.useKey(live.key);
    await expectText(page.locator('#key-standing'), 'Accepted');
    const [session, ...others] = (await kept()) as [string, string[], string];
    assert.ok(session.includes(live.key));
    assert.deepEqual(others, [[], '']);
    await page.reload();
    await expectText(page.locator('#key-standing'), 'Accepted');
    await page.locator('#key summary').click();
    await button(page, 'Forget').click();
    await page.locator('#welcome').waitFor();
    assert.deepEqual(await kept(), ['{}', [], '']);
    assert.equal(await exchanges(page).count(), 0);
    await watched.useKey(live.key);
    await expectText(rowOf(page, 'Bello'), /^1\s+Bello\s+Dogs 1\s+available\s+Order$/);
    await shoot(page, 'wide-light');
  });

  it('keeps filter and page in the address: turned, gone back, reloaded', async () => {
    const animals = page.locator('#animals');
    const status = animals.locator('.toolbar').getByLabel('Status');
    const at = async (hash: string, ids: string) => {
      await expectText(animals.locator('.position'), `Ids ${ids} `);
      assert.equal(new URL(page.url()).hash, `#animals?limit=5${hash}`);
    };
    await animals.getByLabel('Page size').selectOption('5');
    await at('', '1 to 5');
    await button(animals, 'Next page').click();
    await at('&after=5', '6 to 10');
    await page.reload();
    await at('&after=5', '6 to 10');
    await button(animals, 'Previous page').click();
    await at('', '1 to 5');
    assert.equal(await button(animals, 'Previous page').count(), 0);
    await page.goBack();
    await at('&after=5', '6 to 10');
    await button(animals, 'First page').click();
    await at('', '1 to 5');
    await status.selectOption('sold');
    await expectText(rows(page).first(), 'sold');
    assert.match(page.url(), /#animals\?status=sold&limit=5$/);
    await page.goBack();
    await at('', '1 to 5');
    assert.equal(await status.inputValue(), '');
  });

  it('shows one animal by its id, and says when there is none', async () => {
    await view(page, 'Animals');
    await page.getByLabel('Id of one animal').fill('7');
    await button(page.locator('.find'), 'Show').click();
    await expectText(page.locator('#animals pre'), '"name": "Pip"');
    await page.getByRole('link', { name: '← All animals' }).click();
    await go('animals/9223372036854775807');
    await expectText(page.locator('#animals .state'), 'There is no animal 9223372036854775807.');
    await view(page, 'Animals');
  });

  it('shows the messages of the service at the fields; adds an animal: its name is text, its category exact', async () => {
    await page.locator('#animals .drawer summary').click();
    const form = page.getByRole('form', { name: 'Add an animal' });
    await form.getByLabel('Category').fill('abc');
    await button(form, 'Add').click();
    await expectText(form.locator('.field-error').nth(0), /255/);
    await expectText(form.locator('.field-error').nth(1), /integer/);
    assert.equal(await form.getByLabel('Name').getAttribute('aria-invalid'), 'true');
    assert.equal(await form.getByLabel('Name').and(page.locator(':focus')).count(), 1);
    await form.getByLabel('Name').fill(MARKUP);
    await form.getByLabel('Category').fill(BIG);
    await button(form, 'Add').click();
    await form.getByRole('link', { name: 'Show it' }).click();
    await expectText(rowOf(page, MARKUP), BIG);
    assert.equal(await page.locator('img').count(), 0);
    await view(page, 'Animals');
  });

  it('places, finds, delivers and cancels orders from the rows', async () => {
    const headers = { Authorization: `Bearer ${live.key}`, 'Content-Type': 'application/json' };
    await fetch(`${live.origin}/v1/store/orders`, { method: 'POST', headers, body: '{"petId":1}' });
    await button(page.locator('#animals'), 'Reload').click();
    await expectText(rowOf(page, 'Bello'), 'pending');
    await button(rowOf(page, 'Bello'), /^Find its order/).click();
    await button(rowOf(page, 'Bello'), /^Deliver order/).click();
    await expectText(rowOf(page, 'Bello'), 'sold');
    await button(rowOf(page, 'Mimi'), 'Order Mimi').click();
    await button(rowOf(page, 'Mimi'), /^Cancel order/).click();
    await expectText(rowOf(page, 'Mimi'), 'available');
    await button(rowOf(page, 'Flocke'), /^Find its order/).click();
    await expectText(rowOf(page, 'Flocke'), 'no open order');
  });

  it('lists orders, places one, shows it by its id, and changes it there', async () => {
    await view(page, 'Orders');
    await expectText(rows(page).nth(0), /Bello 1[\s\S]*delivered/);
    await expectText(rows(page).nth(1), /Mimi 2[\s\S]*cancelled/);
    await page.locator('#orders .drawer summary').click();
    const form = page.getByRole('form', { name: 'Place an order' });
    for (const [animal, where, told] of [
      ['1', form.locator('.note'), 'sold'],
      ['4711', form.locator('.field-error'), '4711'],
      ['2', rows(page).last(), /Mimi 2[\s\S]*placed/],
    ] as const) {
      await form.getByLabel('Animal').fill(animal);
      await button(form, 'Place').click();
      await expectText(where, told);
    }
    await rows(page).last().getByRole('link', { name: '3', exact: true }).click();
    await expectText(page.locator('#orders pre'), '"status": "placed"');
    await button(rows(page), /^Deliver order/).click();
    await expectText(rows(page), 'delivered');
    await go('orders/99');
    await expectText(page.locator('#orders .state'), /no such order/i);
  });

  it('names a category beyond 2^53, and keeps each request as a line for the shell, the key hidden', async () => {
    await view(page, 'Categories');
    await page.locator('#categories .drawer summary').click();
    const form = page.getByRole('form', { name: 'Name a category' });
    await form.getByLabel('Id').fill(BIG);
    await form.getByLabel('Name').fill("It's <b>");
    await button(form, 'Save').click();
    await expectText(rowOf(page, "It's <b>"), BIG);
    const put = exchanges(page).first();
    await put.locator('summary').click();
    const line = (await put.getByLabel('As a curl line').textContent()) ?? '';
    assert.match(line, /-H "Authorization: Bearer \$PETSTORE_KEY" .* --data-raw '\{"name":"It'\\''s <b>"\}'$/);
    const { stdout } = await shell(`${line} -sS`, { PETSTORE_KEY: live.key });
    assert.match(stdout, new RegExp(`^HTTP/1.1 200 OK[\\s\\S]*\\{"id":${BIG},"name":"It's <b>"\\}$`));
    assert.ok(!(await page.locator('body').textContent())?.includes(live.key));
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await button(put, 'Copy').click();
    await expectText(put, 'Copied');
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), line);
    await page.getByLabel('Show the key').check();
    await expectText(put.getByLabel('As a curl line'), live.key);
    await page.getByLabel('Show the key').uncheck();
  });

  it('says when there is no reply, and tries again', async () => {
    await view(page, 'Animals');
    await page.route('**/v1/pets?*', (route) => route.abort());
    await page.locator('#animals .toolbar').getByLabel('Status').selectOption('sold');
    await expectText(page.locator('#animals .state'), 'No reply from the service');
    await page.unroute('**/v1/pets?*');
    await button(page.locator('#animals'), 'Try again').click();
    await expectText(rows(page).first(), 'sold');
    watched.forgive(/net::ERR_FAILED/);
  });

  it('has every operation in the reference, tried there, and followed by its links', async () => {
    await view(page, 'Reference');
    const operations = page.locator('.operation');
    await operations.first().waitFor();
    assert.equal(await operations.count(), 9, 'the lab is not served here');
    await expectText(page.locator('#operation-getPet'), 'deprecated, ends 2030-12-05');
    const card = (id: string) => page.locator(`#operation-${id}`);
    for (const operation of await operations.all()) {
      await operation.locator('summary').click();
      await button(operation, 'Send').click();
      await expectText(operation.locator('.reply'), /^HTTP\/1\.1 (20[01]|400|409) /);
    }
    await card('putCategory').getByLabel('categoryId').fill('9007199254740995');
    await button(card('putCategory'), 'Send').click();
    await button(card('putCategory'), 'Add an animal of this category').click();
    assert.match(await card('createPet').getByLabel('Body, as JSON').inputValue(), /"categoryId": 9007199254740995\n/);
    await button(card('createPet'), 'Send').click();
    await button(card('createPet'), 'Order the animal, if it is available').click();
    await button(card('createOrder'), 'Send').click();
    await button(card('createOrder'), 'Cancel the order').click();
    await button(card('updateOrder'), 'Send').click();
    await expectText(card('updateOrder').locator('.reply'), '"status": "cancelled"');
  });

  it('lets nothing run that is not its own', async () => {
    const refused = (await page.evaluate(TRESPASS)) as string[];
    assert.equal(refused[0], 'stopped');
    assert.ok(refused.includes('require-trusted-types-for') && refused.includes('frame-src'), String(refused));
    watched.forgive(/Content Security Policy|TrustedHTML|TrustedScript/);
  });

  it('is used by keyboard alone', async () => {
    await page.goto('about:blank');
    await page.goto(live.origin);
    await rowOf(page, 'Luna').waitFor();
    const focused = page.locator(':focus');
    await page.keyboard.press('Tab');
    await expectText(focused, 'Skip to the content');
    await page.keyboard.press('Enter');
    assert.equal(await focused.getAttribute('id'), 'main');
    await button(page, 'Order Luna').focus();
    await page.keyboard.press('Enter');
    await expectText(rowOf(page, 'Luna'), 'pending');
    assert.match((await focused.getAttribute('aria-label')) ?? '', /^Deliver order/, 'the focus stays in the row');
    await page.keyboard.press('Enter');
    await expectText(page.locator('#live'), /is delivered; animal 10 is sold/);
    assert.equal(await focused.getAttribute('data-id'), '10', 'the focus stays, though no button is left');
  });

  it('says without JavaScript what to do instead, and shows no dead form', async () => {
    const watched = await open(browser, live.origin, { javaScriptEnabled: false });
    await expectText(watched.page.locator('.plain'), 'This page needs JavaScript');
    assert.equal(await watched.page.locator(':is(form, button, nav):visible').count(), 0);
    const line = await watched.page.locator('.plain pre').nth(1).textContent();
    const { stdout } = await shell(`${line} -sS`, { PETSTORE_KEY: live.key });
    assert.match(stdout, /^HTTP\/1\.1 200 OK/);
    await watched.close();
  });

  it('is without fault to axe-core, wide and on a phone', async () => {
    await assertAccessible(page, 'animals');
    for (const [hash, wanted] of [
      ['orders/1', 'pre'],
      ['categories', 'tbody tr'],
      ['reference/createPet', 'form'],
    ]) {
      await go(hash);
      await page.locator(`main > section:visible ${wanted}`).first().waitFor();
      await assertAccessible(page, hash);
    }
  });
});
