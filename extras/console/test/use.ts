/** Everything on the console, done in a real browser on a live server. The tests go on from one another. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { missing } from '../../../test/operator/workplace.ts';
import { PATIENT } from '../../program.ts';
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

  it('says where the key is, or how to make one, by a command that works', async () => {
    await ui.see('#welcome', 'stands in the terminal below the address');
    assert.equal(await ui.at('#limits').isVisible(), false, 'no limits are known');
    assert.match(shell(await ui.at('#welcome pre').textContent(), PATIENT), /^ps_live_\w+$/m);
    await ui.press('Use key');
    await ui.see('#key-refusal', 'Paste a key here first.');
    assert.equal(await ui.exchanges().count(), 0, 'nothing is sent without a key');
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

  it('shows one animal by its id, says when there is none, and names the view', async () => {
    for (const [hash, words, title] of [
      ['animals/7', '"name": "Pip"', 'Animals 7'],
      ['animals/%', 'There is no animal %: its id is a 64-bit integer.', 'Animals %'],
      ['animals/a%20b', 'There is no animal a b: its id is a 64-bit integer.', 'Animals a b'],
      ['animals/9223372036854775807', 'There is no animal 9223372036854775807.', 'Animals 9223372036854775807'],
      ['orders/99', 'there is no such order', 'Orders 99'],
      ['toString', 'Bello', 'Animals'],
    ]) {
      await ui.go(hash);
      await ui.see('main > section:visible', words);
      assert.equal(await page.title(), `${title} · petstore console`);
    }
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
    await ui.see(ui.rows(), `${MARKUP}\t\n${BIG}`.split('\t')[0]);
    await ui.see('#animals pre', `"categoryId": ${BIG}`);
    assert.equal(await ui.at('img').count(), 0);
    await ui.view('Animals');
  });

  it('edits an animal, and shows it so in the list', async () => {
    await ui.press('Next page', '#animals');
    await ui.page.getByRole('link', { name: /^Edit: First/ }).click();
    const form = page.getByRole('form', { name: 'Edit this animal' });
    assert.equal(await form.getByLabel('Name').inputValue(), 'First');
    assert.equal(await form.getByLabel('Category').inputValue(), '3');
    await ui.send(form, { Name: ' ' }, 'Save');
    await ui.see(form.locator('.field-error').first(), /255|white space/);
    await ui.send(form, { Name: 'Renamed', Category: BIG }, 'Save');
    await ui.see(form.locator('.note'), 'is saved.');
    await ui.see(ui.rows(), 'Renamed');
    await ui.see('#animals pre', new RegExp(`"name": "Renamed",\\s+"categoryId": ${BIG}`));
    await ui.isAccessible('one animal', '#animals');
    await page.getByRole('link', { name: 'All animals' }).click(); // to the page that one came from
    await ui.rowOf('Renamed').waitFor();
    await ui.press('First page', '#animals');
    await ui.rowOf('Bello').waitFor();
  });

  it('removes an animal when that is confirmed, and says why where it cannot be', async () => {
    const { id } = await live.send<Item>('POST /v1/pets', { name: 'Wanted', categoryId: 1 });
    const order = await live.send<Item>('POST /v1/store/orders', { petId: id });
    await ui.go(`animals/${id}`);
    const form = page.getByRole('form', { name: 'Edit this animal' });
    await ui.press('Save', form);
    await ui.see(form.locator('.note'), 'is saved.');
    await ui.press('Remove this animal', '#animals');
    await ui.press('Remove this animal? No', '#animals');
    await ui.press('Remove this animal', '#animals');
    await ui.press('Remove this animal? Yes, remove', '#animals');
    await ui.see(form.locator('.note.bad'), /^animal \d+ has a placed order/);
    await live.send(`PATCH /v1/store/orders/${order.id}`, { status: 'cancelled' });
    await ui.press('Remove this animal', '#animals');
    await ui.press('Remove this animal? Yes, remove', '#animals');
    await ui.see('#animals .state', `Animal ${id}, Wanted, was removed.`);
    assert.equal(await ui.rows().count(), 0);
    assert.equal(await form.isVisible(), false);
    await ui.focusComesTo('Animals');
    await ui.view('Animals');
    await ui.press('Next page', '#animals');
    await ui.rowOf('Renamed').waitFor();
    assert.equal(await ui.rowOf('Wanted').count(), 0);
    await ui.view('Animals');
  });

  it('places an order from the row of an animal, which leads to the open orders: to deliver or cancel it there', async () => {
    for (const [name, button, status, ofAnimal] of [
      ['Bello', /^Deliver order/, 'delivered', 'sold'],
      ['Mimi', /^Cancel order/, 'cancelled', 'available'],
    ] as const) {
      await ui.press(`Order ${name}`);
      await ui.see(ui.rowOf(name), /Order \d+ was placed\.[\s\S]*pending/);
      await page.getByRole('link', { name: `Its order: ${name}` }).click();
      await ui.see(ui.rowOf(name), /placed[\s\S]*Deliver\s*Cancel/);
      await ui.press(button, ui.rowOf(name));
      await ui.see(ui.rowOf(name), new RegExp(`is ${status}; animal \\d+ is ${ofAnimal}\\.[\\s\\S]*${status}`));
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
    assert.match((await ui.rowOf('Kiwi').locator('.result.bad').textContent()) ?? '', /available/);
    await ui.view('Orders');
    await ui.see(ui.rowOf('Kiwi'), 'placed');
    await live.send(`PATCH /v1/store/orders/${id}`, { status: 'delivered' });
    await ui.press(`Cancel order ${id}`, '#orders');
    await ui.see(ui.rowOf('Kiwi'), /already delivered[\s\S]*delivered\s*$/);
    await ui.view('Animals');
    await ui.see(ui.rowOf('Kiwi'), 'sold');
  });

  it('lists orders with the names of their animals, places one, and changes it on its own page', async () => {
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
    await ui.rows().last().getByRole('link').first().click();
    await ui.see('#orders pre', '"status": "placed"');
    await ui.press(/^Deliver order/, ui.rows());
    await ui.see('#orders pre', '"status": "delivered"');
  });

  it('keeps each request: its body first, its headers folded, and a line for the shell with the key hidden', async () => {
    await ui.view('Categories');
    await ui.send(await ui.drawer('Name a category'), { Id: BIG, Name: "It's <b>" }, 'Save');
    await ui.see(ui.rowOf("It's <b>"), BIG);
    const put = ui.exchanges().filter({ hasText: 'PUT ' });
    await put.locator('summary').first().click();
    assert.match((await put.locator('.exchange pre').first().textContent()) ?? '', /^\{\s+"id": 9007199254740993,/);
    const headers = put.getByLabel('Reply, its headers');
    assert.equal(await headers.isVisible(), false);
    await put.locator('summary').filter({ hasText: 'HTTP/1.1 201 Created · headers' }).click();
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

  it('has every operation in the reference: with the fields and an example of its replies, tried', async () => {
    await ui.view('Reference');
    const operations = ui.at('.operation');
    await operations.first().waitFor();
    const { paths } = (await (await fetch(`${live.origin}/openapi.json`)).json()) as { paths: Record<string, object> };
    assert.equal(await operations.count(), Object.values(paths).flatMap(Object.keys).length);
    await ui.see('#operation-getPet', 'deprecated, ends 2030-12-05');
    const card = (id: string) => ui.at(`#operation-${id}`);
    await card('listPets').locator('summary').first().click();
    const replies = card('listPets').locator('.replies > li');
    await ui.see(
      replies.first(),
      /A page of animals[\s\S]*"name": "Rex"[\s\S]*\[\]\.status required\s+available \| pending \| sold/,
    );
    await replies.filter({ hasText: /^400/ }).locator('summary').first().click();
    await ui.see(replies.filter({ hasText: /^400/ }), /"code": "invalid_parameter"[\s\S]*message required/);
    const codes = replies.filter({ hasText: /^400/ }).locator('summary p');
    const [first, second] = [(await codes.nth(0).boundingBox())!, (await codes.nth(1).boundingBox())!];
    assert.ok(second.y >= first.y + first.height, 'a code a line');
    await ui.isAccessible('the reference, with the replies of an operation');
    const all = (what: string) => page.evaluate(`document.querySelectorAll('.operation').forEach((one) => ${what})`);
    await all('one.open = true');
    await all("[...one.querySelectorAll('button')].find((button) => button.textContent === 'Send').click()");
    for (const operation of await operations.all())
      await ui.see(operation.locator('.reply'), /HTTP\/1\.1 (20[014]|40[049]) /);
    await ui.send(card('putCategory'), { categoryId: '9007199254740995' }, 'Send');
    await ui.see(card('putCategory').locator('.reply'), '"id": 9007199254740995');
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
    await ui.go('animals/10');
    await ui.button('Remove this animal').focus();
    await page.keyboard.press('Enter');
    await ui.focusComesTo('Remove this animal? No');
    await page.keyboard.press('Escape');
    await ui.focusComesTo('Remove this animal');
  });

  it('tells the protocol that was spoken', { skip: missing('openssl', 'version') }, async () => {
    const ui = await live.open({ origin: await live.secure(), ignoreHTTPSErrors: true });
    await ui.useKey(live.key);
    await ui.rowOf('Luna').waitFor();
    const list = ui.exchanges().filter({ hasText: 'GET /v1/pets' });
    await list.locator('summary').first().click();
    await ui.see(list, /HTTP\/2 200 · headers[\s\S]*GET \/v1\/\S+ HTTP\/2 · headers/);
    await ui.close();
  });

  it('says without JavaScript what to do instead, and shows no dead form', async () => {
    const ui = await live.open({ javaScriptEnabled: false });
    await ui.see('.plain', 'This page needs JavaScript');
    assert.equal(await ui.at(':is(form, button, nav):visible').count(), 0);
    const line = await ui.at('.plain pre').nth(1).textContent();
    assert.match(shell(`${line} -sS`, { PETSTORE_KEY: live.key }), /^HTTP\/1\.1 200 OK/);
    await ui.close();
  });

  it('shows on a phone the requests above the list, and hides no heading under its header', async () => {
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
    await ui.go('reference/updateOrder');
    await ui.at('#operation-updateOrder form').waitFor();
    const isInSight = await page.evaluate(`(() => {
      const summary = document.querySelector('#operation-updateOrder > summary');
      const { x, y, height } = summary.getBoundingClientRect();
      return summary.contains(document.elementFromPoint(x + 9, y + height / 2));
    })()`);
    assert.ok(isInSight);
  });

  it('breaks long names and ids within their columns', async () => {
    const name = 'W'.repeat(255);
    const low = '-9223372036854775808';
    await live.send(`PUT /v1/categories/${low}`, { name });
    const { id } = await live.send<Item>('POST /v1/pets', { name, categoryId: Number.MIN_SAFE_INTEGER });
    await live.send('POST /v1/store/orders', { petId: id });
    await page.reload(); // it has read neither orders nor categories yet
    for (const hash of [`animals?after=${id - 1}`, `animals/${id}`, 'orders', 'categories']) {
      await ui.go(hash);
      await ui.see(ui.rowOf('WWWW').first(), 'WWWW');
      await ui.fits(hash);
      await page.setViewportSize(PHONE);
      const { height } = (await ui.rowOf('WWWW').first().boundingBox())!;
      assert.ok(height < 260, `${hash}: a row of ${height} px`);
    }
  });

  it('is without fault to axe-core, wide in light and on a phone in dark', async () => {
    const views = { animals: 'td', 'orders/1': 'pre', categories: 'td' };
    for (const [hash, part] of Object.entries(views)) {
      await ui.go(hash);
      await ui.at(`main > section:visible ${part}`).first().waitFor();
      await ui.isAccessible(hash);
    }
    const release = await ui.hold('**/v1/categories*');
    await ui.press('Reload', '#categories');
    await ui.at('#categories [aria-busy=true] td').first().waitFor();
    await ui.isAccessibleNow('categories, while a reply is awaited');
    release();
  });
});
