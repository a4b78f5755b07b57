/** Who uses the console keeps the place and is told what came of it there: by keyboard, by screen reader, while typing. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { skip, stage, WAIT_MAX_MS, type Watched } from './browser.ts';

const live = stage('--lab', '--environment', 'staging');
/** Between two keys: the reply to a request comes among them. */
const TYPED_MS = 75;

async function ask(key: string, what: string, body?: object): Promise<void> {
  const [method, path] = what.split(' ');
  const headers = { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) };
  await fetch(live.origin + path, { method, headers, body: body && JSON.stringify(body) });
}

describe('the place of who uses the console', { skip }, () => {
  let ui: Watched;
  let page: Page;
  const part = (name: string) => page.getByRole('region', { name, exact: true });
  const focused = () =>
    page.evaluate<string>('document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()');
  const comesTo = async (name: string | RegExp) => {
    const end = Date.now() + WAIT_MAX_MS;
    const fits = (text: string) => (typeof name === 'string' ? text === name : name.test(text));
    while (!fits(await focused()) && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 25));
    const text = await focused();
    assert.ok(fits(text), `the focus is on "${text.slice(0, 60)}", not on ${name}`);
  };
  const press = async (name: string | RegExp, where = 'body') => {
    await ui.button(name, where).focus();
    await page.keyboard.press('Enter');
  };
  /** From now on requests to this address are under way until what this returns is called. */
  const held = async (url: string) => {
    let go = () => {};
    const isOver = new Promise<void>((resolve) => (go = resolve));
    await page.route(url, (route) => isOver.then(() => route.continue()));
    return go;
  };
  before(async () => {
    ui = await live.enter();
    page = ui.page;
  });
  after(() => ui?.close());

  it('leaves the focus on the button that turns the page, or on the other one at the end', async () => {
    await ui.at('#animals').getByLabel('Page size').selectOption('10');
    await ui.see('#animals .position', 'Ids 1 to 10');
    await press('Next page', '#animals');
    await ui.see('#animals .position', 'Ids 11 to 20');
    await comesTo('Next page');
    await page.keyboard.press('Enter');
    await ui.see('#animals .position', 'Ids 21 to 30');
    await comesTo('Previous page');
    await ui.view('Animals');
  });

  it('takes nobody away who types on while a request is under way, and no word that was typed', async () => {
    const form = await ui.drawer('Add an animal');
    const ordered = await held('**/v1/store/orders');
    await ui.press('Order Bello');
    await form.getByLabel('Name').focus();
    await page.keyboard.type('One who ');
    ordered();
    await page.keyboard.type('types on', { delay: TYPED_MS });
    await ui.see(ui.rowOf('Bello'), 'was placed');
    assert.equal(await form.getByLabel('Name').inputValue(), 'One who types on');
    const added = await held('**/v1/pets');
    await form.getByLabel('Category').fill('1');
    await form.getByLabel('Name').press('Enter');
    await form.getByLabel('Name').fill('The next one');
    added();
    await ui.see(form.locator('.note'), 'One who types on was added');
    assert.equal(await form.getByLabel('Name').inputValue(), 'The next one');
    await form.getByLabel('Name').press('Enter');
    await ui.see(form.locator('.note'), 'The next one was added');
    assert.equal(await form.getByLabel('Name').inputValue(), '');
    await page.unroute('**/v1/pets');
    await page.unroute('**/v1/store/orders');
  });

  it('tells what came of an order though the page was turned meanwhile', async () => {
    const ordered = await held('**/v1/store/orders');
    await ui.press('Order Berta');
    await ui.press('Next page', '#animals');
    await ui.see('#animals .position', 'Ids 21');
    ordered();
    await ui.see('#animals > .list > .note', /^Order \d+ was placed\.$/);
    await page.unroute('**/v1/store/orders');
    await ui.view('Animals');
    await ui.see(ui.rowOf('Berta'), 'pending');
    assert.equal(await ui.at('#animals > .list > .note').textContent(), '');
  });

  it('tells in sight, and announces, what could not be read', async () => {
    await ui.go('animals?limit=100');
    await ui.rowOf('The next one').waitFor();
    await ask(live.key, 'POST /lab/faults', { kind: 'status', status: 500, operation: 'listPets' });
    const reload = ui.button('Reload', '#animals');
    const before = await reload.boundingBox();
    await press('Reload', '#animals');
    const problem = ui.at('#animals .state.bad');
    await ui.see(problem, 'the lab answers so');
    assert.deepEqual(await reload.boundingBox(), before);
    const { y, height } = (await problem.boundingBox())!;
    assert.ok(y + height <= page.viewportSize()!.height, `it stands at ${y}`);
    assert.match((await ui.at('#live').textContent())!, /the lab answers so/);
    await comesTo('Reload');
    await ui.isAccessible('a list that could not be read');
    await press('Try again', '#animals');
    await ui.see('#live', '32 animals. Ids 1 to 32 · the last');
    await comesTo('Animals');
    for (const [hash, words] of [
      ['animals/4711', 'There is no animal 4711.'],
      ['animals/abc', 'There is no animal abc: its id is a 64-bit integer.'],
      ['orders/4711', 'there is no such order'],
    ]) {
      await ui.go(hash);
      await ui.see('main .state:visible', words);
      assert.equal(await ui.at('#live').textContent(), words);
    }
    await page.route('**/v1/**', (route) => route.abort());
    await ui.view('Animals');
    await ui.see('#banner', 'does not answer');
    await page.unroute('**/v1/**');
    await press('Try again', '#banner');
    await ui.rowOf('Bello').waitFor();
    await comesTo('Animals');
    ui.forgive(/net::ERR_FAILED/);
  });

  it('keeps the focus in the lab, also where its timer draws anew, and asks before a reset until Escape', async () => {
    await ui.view('Lab');
    for (const operation of ['listPets', 'listOrders'])
      await ask(live.key, 'POST /lab/faults', { kind: 'delay', ms: 1, operation });
    await ui.press('Reload', '#lab');
    const remove = ui.button(/^Remove fault/, part('Faults'));
    await ui.see(part('Faults').locator('tbody'), 'listOrders');
    await remove.last().focus();
    const last = await focused();
    await ask(live.key, 'GET /v1/pets');
    await ui.see(part('Faults').locator('tbody'), /^(?![\s\S]*listPets)/);
    await comesTo(last);
    await page.keyboard.press('Enter');
    await ui.see(part('Faults'), 'No faults wait');
    await comesTo('Faults');
    await press('Reset …', '#lab');
    await comesTo('Cancel');
    await page.keyboard.press('Escape');
    await comesTo('Reset …');
    assert.equal(await ui.button('This key alone').isVisible(), false);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter'); // pressed twice in a hurry, it changes nothing
    await comesTo('Reset …');
    assert.equal(await ui.button('This key alone').isVisible(), false);
    await page.keyboard.press('Enter');
    await press('This key alone', '#lab');
    await ui.see(part('Grade'), 'Limits, clock, faults and record of this key start again.');
    await comesTo('Reset …');
  });

  it('lets the lab be asked during a wait, also by buttons that are drawn meanwhile', async () => {
    const words = ['keys', 'create', '--plan', 'enterprise', '--per-minute', '2', '--per-day', '2', '--json'];
    const { key } = JSON.parse(await live.operate(...words)) as { key: string };
    for (let i = 0; i < 2; i++) await ask(key, 'GET /v1/pets');
    await ui.view('Animals');
    await ui.useKey(key);
    await ui.see('#banner', '429');
    await ui.view('Lab');
    await ask(key, 'POST /lab/faults', { kind: 'delay' });
    await press(/^Remove fault/, '#lab');
    await ui.see(part('Faults'), 'No faults wait');
    await ui.view('Reference');
    const described = ui.at('#operation-describeLab');
    await described.locator('summary').click();
    await press('Send', '#operation-describeLab');
    await ui.see(described.locator('.reply'), /^HTTP\/1\.1 200 /);
    await ui.useKey(live.key);
    await ui.at('#banner').waitFor({ state: 'hidden' });
  });

  it('shows the animals where the address names no view', async () => {
    await ui.view('Orders');
    for (const name of ['nothing', 'toString']) {
      await ui.go(name);
      await ui.at('#animals').waitFor();
      await ui.view('Orders');
    }
  });

  it('keeps a sentence in its order around any name', async () => {
    await ui.view('Animals');
    const form = page.getByRole('form', { name: 'Add an animal' });
    await ui.send(form, { Name: '\u2067\u202erex', Category: '1' }, 'Add');
    await ui.see(form.locator('.note'), /^rex was added as animal \d+\./);
    assert.equal(await form.locator('.note bdi').textContent(), 'rex');
    await ui.send(form, { Name: 'W'.repeat(255), Category: '1' }, 'Add');
    await ui.see(form.locator('.note'), /WWW was added as animal \d+\./);
    await ui.isAccessible('a long name in a sentence'); // nothing is wider than the page
  });

  it('counts down in place, and names the view in its address after the skip link too', async () => {
    await ui.view('Orders');
    await page.evaluate('gaugeBefore = document.querySelector("#gauges .gauge"), 0');
    const hint = ui.at('[data-window=day] .hint');
    await ui.see(hint, new RegExp(`^(?!${await hint.textContent()}$)`)); // a second later
    assert.equal(await page.evaluate('gaugeBefore.isConnected'), true);
    await ui.at('.skip').focus();
    await page.keyboard.press('Enter');
    await page.reload();
    await ui.at('#orders').waitFor();
  });
});
