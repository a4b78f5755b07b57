/** Everything on the console, done in a real browser on a live server. */
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
  ids,
  open,
  PHONE,
  rowOf,
  rows,
  shoot,
  skip,
  startBrowser,
  view,
  type Watched,
} from './browser.ts';
import { type Live, startLive } from './server.ts';

const SEED = new URL('../../data/seed.json', import.meta.url).pathname;
const MARKUP = '<img src=x onerror=alert(1)>';
const BIG = '9007199254740993';
const shell = promisify(execFile);

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
  const api = (path: string, body?: object, method = body ? 'POST' : 'GET') => {
    const headers = { Authorization: `Bearer ${live.key}`, 'Content-Type': 'application/json' };
    return fetch(`${live.origin}${path}`, { method, headers, body: body && JSON.stringify(body) });
  };

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
    const line = await page.locator('#welcome pre').textContent();
    const { stdout } = await shell('sh', ['-c', line ?? ''], { cwd: tmpdir() }); // where the server was started
    assert.match(stdout, /^ps_live_\w+$/m);
    assert.equal(await exchanges(page).count(), 0, 'nothing is asked without a key');
  });

  it('says that a key is refused, and why', async () => {
    await watched.useKey(`${live.key.slice(0, -1)}${live.key.endsWith('a') ? 'b' : 'a'}`);
    await expectText(page.locator('#key'), /Refused[\s\S]*The API key is mistyped/);
    await expectText(page.locator('#animals'), 'The API key is mistyped');
    await expectText(page.locator('#gauges'), 'Left for your address');
  });

  it('takes a key, keeps it for this tab alone, and forgets it', async () => {
    const kept = () => page.evaluate('[JSON.stringify(sessionStorage), Object.values(localStorage), document.cookie]');
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

  it('keeps filter and page in the address: turned, gone back, reloaded, sent to others', async () => {
    const animals = page.locator('#animals');
    const at = async (hash: string, wanted: string[]) => {
      await expectText(animals.locator('.position'), `Ids ${wanted[0]} to ${wanted.at(-1)} `);
      assert.deepEqual(await ids(page), wanted);
      assert.equal(new URL(page.url()).hash, hash);
    };
    const pages = [
      ['1', '2', '3', '4', '5'],
      ['6', '7', '8', '9', '10'],
      ['11', '12', '13', '14', '15'],
    ];
    const hashes = ['#animals?limit=5', '#animals?limit=5&after=5', '#animals?limit=5&after=10'];
    await animals.getByLabel('Page size').selectOption('5');
    await at(hashes[0], pages[0]);
    for (const next of [1, 2]) {
      await button(animals, 'Next page').click();
      await at(hashes[next], pages[next]);
    }
    await page.reload();
    await at(hashes[2], pages[2]);
    await button(animals, 'Previous page').click();
    await at(hashes[1], pages[1]);
    await page.goBack();
    await at(hashes[2], pages[2]);
    await page.goForward();
    await at(hashes[1], pages[1]);
    await button(animals, 'First page').click();
    await at(hashes[0], pages[0]);
    assert.equal(await button(animals, 'Previous page').count(), 0);
    await animals.locator('.toolbar').getByLabel('Status').selectOption('sold');
    await expectText(rows(page).first(), 'sold');
    assert.match(page.url(), /#animals\?status=sold&limit=5$/);
    await page.goBack();
    await at(hashes[0], pages[0]);
    assert.equal(await animals.locator('.toolbar').getByLabel('Status').inputValue(), '');
    await view(page, 'Animals');
    await rowOf(page, 'Luna').waitFor();
  });

  it('shows one animal by its id, and says when there is none', async () => {
    await page.getByLabel('Id of one animal').fill('7');
    await button(page.locator('.find'), 'Show').click();
    await expectText(page.locator('#animals pre'), '"name": "Pip"');
    assert.deepEqual(await ids(page), ['7']);
    await page.getByRole('link', { name: '← All animals' }).click();
    for (const id of ['4711', '0', '9223372036854775807']) {
      await page.evaluate(`location.hash = '#animals/${id}'`);
      await expectText(page.locator('#animals .state'), `There is no animal ${id}.`);
    }
    await page.evaluate("location.hash = '#animals/x'");
    await expectText(page.locator('#animals .state'), /after/i);
    await view(page, 'Animals');
  });

  it('shows the messages of the service at the fields', async () => {
    await page.locator('#animals .drawer summary').click();
    const form = page.getByRole('form', { name: 'Add an animal' });
    await form.getByLabel('Category').fill('abc');
    await button(form, 'Add').click();
    const messages = form.locator('.field-error');
    await expectText(messages.nth(0), /255/);
    await expectText(messages.nth(1), /integer/);
    assert.equal(await form.getByLabel('Name').getAttribute('aria-invalid'), 'true');
    assert.equal(await form.getByLabel('Status').getAttribute('aria-invalid'), 'false');
    assert.equal(await form.getByLabel('Name').and(page.locator(':focus')).count(), 1);
  });

  it('adds an animal: its name is text, its category exact', async () => {
    const form = page.getByRole('form', { name: 'Add an animal' });
    await form.getByLabel('Name').fill(MARKUP);
    await form.getByLabel('Category').fill(BIG);
    await button(form, 'Add').click();
    await form.getByRole('link', { name: 'Show it' }).click();
    await expectText(rowOf(page, MARKUP), BIG);
    assert.equal(await page.locator('img').count(), 0);
    assert.match(await (await api('/v1/pets?limit=100')).text(), new RegExp(`"categoryId":${BIG},`));
    await view(page, 'Animals');
  });

  it('places, delivers and cancels orders from the rows', async () => {
    await button(rowOf(page, 'Bello'), 'Order Bello').click();
    await expectText(rowOf(page, 'Bello'), 'pending');
    await button(rowOf(page, 'Bello'), /^Deliver order/).click();
    await expectText(rowOf(page, 'Bello'), 'sold');
    await button(rowOf(page, 'Mimi'), 'Order Mimi').click();
    await button(rowOf(page, 'Mimi'), /^Cancel order/).click();
    await expectText(rowOf(page, 'Mimi'), 'available');
    assert.equal((await api('/v1/store/orders', { petId: 3 })).status, 201);
    await button(page.locator('#animals'), 'Reload').click();
    await button(rowOf(page, 'Kiwi'), /^Find its order/).click();
    await button(rowOf(page, 'Kiwi'), /^Deliver order/).click();
    await expectText(rowOf(page, 'Kiwi'), 'sold');
    await button(rowOf(page, 'Flocke'), /^Find its order/).click();
    await expectText(rowOf(page, 'Flocke'), 'no open order');
  });

  it('lists orders, shows one, and changes them there', async () => {
    await view(page, 'Orders');
    await expectText(rows(page).nth(0), /Bello 1[\s\S]*delivered/);
    await expectText(rows(page).nth(1), /Mimi 2[\s\S]*cancelled/);
    await page.locator('#orders .drawer summary').click();
    const form = page.getByRole('form', { name: 'Place an order' });
    await form.getByLabel('Animal').fill('1');
    await button(form, 'Place').click();
    await expectText(form.locator('.note'), 'sold');
    await form.getByLabel('Animal').fill('4711');
    await button(form, 'Place').click();
    await expectText(form.locator('.field-error'), '4711');
    await form.getByLabel('Animal').fill('2');
    await button(form, 'Place').click();
    await expectText(rows(page).last(), /Mimi 2[\s\S]*placed/);
    await rows(page).last().getByRole('link', { name: '4', exact: true }).click();
    await expectText(page.locator('#orders pre'), '"status": "placed"');
    await button(rows(page), /^Deliver order/).click();
    await expectText(rows(page), 'delivered');
    await page.evaluate("location.hash = '#orders/99'");
    await expectText(page.locator('#orders .state'), /no such order/i);
    await view(page, 'Animals');
    await expectText(rowOf(page, 'Mimi'), 'sold');
  });

  it('names a category beyond 2^53', async () => {
    await view(page, 'Categories');
    await page.locator('#categories .drawer summary').click();
    const form = page.getByRole('form', { name: 'Name a category' });
    await form.getByLabel('Id').fill(BIG);
    await form.getByLabel('Name').fill("It's big");
    await button(form, 'Save').click();
    await expectText(rowOf(page, "It's big"), BIG);
    await button(rowOf(page, "It's big"), /^Rename/).click();
    await form.getByLabel('Name').fill("It's <b>");
    await button(form, 'Save').click();
    await expectText(rowOf(page, "It's <b>"), BIG);
  });

  it('keeps the last 20 requests, each as a line for the shell that works, the key hidden', async () => {
    const put = exchanges(page).first();
    await put.locator('summary').click();
    const line = await put.getByLabel('As a curl line').textContent();
    assert.match(line ?? '', /-H "Authorization: Bearer \$PETSTORE_KEY" .* --data-raw '\{"name":"It'\\''s <b>"\}'$/);
    const env = { PATH: process.env.PATH, PETSTORE_KEY: live.key };
    const { stdout } = await shell('sh', ['-c', `${line} -sS`], { env });
    assert.match(stdout, new RegExp(`^HTTP/1.1 200 OK[\\s\\S]*\\{"id":${BIG},"name":"It's <b>"\\}$`));
    assert.ok(!(await page.locator('body').textContent())?.includes(live.key));
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await button(put, 'Copy').click();
    await expectText(put, 'Copied');
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), line);
    await page.getByLabel('Show the key').check();
    await expectText(put.getByLabel('As a curl line'), live.key);
    await page.getByLabel('Show the key').uncheck();
    await view(page, 'Animals');
    for (let i = 0; i < 20; i++) {
      await button(page.locator('#animals'), 'Reload').click();
      await page.locator('#animals [aria-busy]').waitFor({ state: 'detached' });
    }
    assert.equal(await exchanges(page).count(), 20);
  });

  it('says when there is no reply, and tries again', async () => {
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
    await expectText(page.locator('#description'), 'outcome_unknown');
    const card = (id: string) => page.locator(`#operation-${id}`);
    for (const operation of await operations.all()) {
      await operation.locator('summary').click();
      await button(operation, 'Send').click();
      await expectText(operation.locator('.reply'), /^HTTP\/1\.1 (20[01]|400|409) /);
    }
    await button(card('createPet'), 'Send').click();
    await button(card('createPet'), 'Order the animal, if it is available').click();
    await button(card('createOrder'), 'Send').click();
    await expectText(card('createOrder').locator('.reply'), '"status": "placed"');
    await button(card('createOrder'), 'Cancel the order').click();
    await button(card('updateOrder'), 'Send').click();
    await expectText(card('updateOrder').locator('.reply'), '"status": "cancelled"');
    await card('putCategory').getByLabel('categoryId').fill('9007199254740995');
    await button(card('putCategory'), 'Send').click();
    await button(card('putCategory'), 'Add an animal of this category').click();
    assert.match(await card('createPet').getByLabel('Body, as JSON').inputValue(), /"categoryId": 9007199254740995\n/);
    await page.evaluate("location.hash = '#animals'");
    await rowOf(page, 'Bello').waitFor();
    await page.goto(`${live.origin}/#reference/putCategory`);
    await page.reload();
    await expectText(card('putCategory'), 'Try it');
  });

  it('lets nothing run that is not its own', async () => {
    const refused = (await page.evaluate(TRESPASS)) as string[];
    assert.equal(refused[0], 'stopped');
    assert.ok(refused.includes('require-trusted-types-for') && refused.includes('frame-src'), String(refused));
    watched.forgive(/Content Security Policy|TrustedHTML|TrustedScript/);
  });

  it('is used by keyboard alone', async () => {
    const watched = await open(browser, live.origin);
    const { page } = watched;
    const focused = page.locator(':focus');
    const press = async (key: string, times = 1) => {
      for (let i = 0; i < times; i++) await page.keyboard.press(key);
    };
    await press('Tab');
    await expectText(focused, 'Skip to the content');
    assert.equal(await focused.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'solid');
    await press('Tab', 6);
    assert.equal(await focused.getAttribute('id'), 'key-input', 'after the four views and the summary');
    await page.keyboard.insertText(live.key);
    await press('Enter');
    await rowOf(page, 'Luna').waitFor();
    await page.locator('.skip').focus();
    await press('Enter');
    assert.equal(await focused.getAttribute('id'), 'main');
    await button(page, 'Order Luna').focus();
    await press('Enter');
    await expectText(rowOf(page, 'Luna'), 'pending');
    assert.match((await focused.getAttribute('aria-label')) ?? '', /^Deliver order/, 'the focus stays in the row');
    await press('Enter');
    await expectText(rowOf(page, 'Luna'), 'sold');
    assert.equal(await focused.getAttribute('data-id'), '10', 'the focus stays, though no button is left');
    await expectText(page.locator('#live'), /is delivered; animal 10 is sold/);
    await watched.close();
  });

  it('says without JavaScript what to do instead, and shows no dead form', async () => {
    const watched = await open(browser, live.origin, { javaScriptEnabled: false });
    await expectText(watched.page.locator('.plain'), 'This page needs JavaScript');
    assert.equal(await watched.page.locator(':is(form, button, nav):visible').count(), 0);
    const line = await watched.page.locator('.plain pre').nth(1).textContent();
    const { stdout } = await shell('sh', ['-c', `${line} -sS`], { env: { ...process.env, PETSTORE_KEY: live.key } });
    assert.match(stdout, /^HTTP\/1\.1 200 OK/);
    await watched.close();
  });

  for (const [name, viewport] of Object.entries({ wide: undefined, phone: PHONE })) {
    it(`is without fault to axe-core in light and dark: ${name}`, async () => {
      const watched = await open(browser, live.origin, viewport && { viewport });
      const { page } = watched;
      await assertAccessible(page, `welcome, ${name}`);
      await watched.useKey(live.key);
      await rowOf(page, 'Mimi').waitFor();
      await page.locator('#animals .drawer summary').click();
      await button(page, 'Add').click();
      await expectText(page.locator('.fields .field-error').first(), /\w/);
      await page.locator('#exchange-list summary').first().click();
      await assertAccessible(page, `animals, ${name}`);
      for (const [hash, wanted] of [
        ['orders/1', 'pre'],
        ['categories', 'tbody tr'],
        ['reference/createPet', 'form'],
      ]) {
        await page.evaluate(`location.hash = '#${hash}'`);
        await page.locator(`main > section:visible ${wanted}`).first().waitFor();
        await assertAccessible(page, `${hash}, ${name}`);
      }
      await watched.close();
    });
  }
});
