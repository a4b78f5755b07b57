/** The console does what was asked once, of the thing that was meant, and says of it what is so. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { skip, stage, type Watched } from './browser.ts';

/** More open orders than a search looks at before it asks whether to look on. */
const MANY_ORDERS = 505;
const live = stage('--lab', '--environment', 'staging');

type Thing = { id: number; name: string; status: string };
async function ask<T = unknown>(key: string, what: string, body?: object): Promise<T> {
  const [method, path] = what.split(' ');
  const headers = { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) };
  const reply = await fetch(live.origin + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await reply.text();
  return text && JSON.parse(text);
}
const newKey = async (perMinute = 100_000): Promise<{ id: string; key: string }> => {
  const limits = ['--per-minute', String(perMinute), '--per-day', String(perMinute)];
  return JSON.parse(await live.operate('keys', 'create', '--plan', 'enterprise', ...limits, '--json'));
};

describe('the console, once and truly', { skip }, () => {
  let ui: Watched;
  let page: Page;
  const part = (name: string) => page.getByRole('region', { name, exact: true });
  const animalsCalled = async (name: string) => {
    const all = await ask<Thing[]>(live.key, 'GET /v1/pets?limit=100');
    return all.filter((one) => one.name === name).length;
  };
  before(async () => {
    ui = await live.enter();
    page = ui.page;
  });
  after(() => ui?.close());

  it('forgets the animals and orders that it showed when the shop is reset', async () => {
    for (const reset of ['of the lab', 'of the reference']) {
      await ui.view('Animals');
      await ui.press('Order Bello');
      await ui.see(ui.rowOf('Bello'), 'Order 1 was placed.');
      if (reset === 'of the lab') {
        await ui.view('Lab');
        await ui.press('Reset …', part('Grade'));
        await ui.press('The whole shop, for everybody', part('Grade'));
        await ui.see(part('Grade'), 'as the seed makes them');
      } else {
        await ui.go('reference/resetLab');
        await ui.at('#operation-resetLab').getByLabel('Body, as JSON').fill(''); // the example resets the key alone
        await ui.press('Send', '#operation-resetLab');
        await ui.see('#operation-resetLab .reply', /^HTTP\/1\.1 204 /);
      }
      await ask(live.key, 'POST /v1/store/orders', { petId: 5 }); // it is order 1 now
      await ui.view('Animals');
      await ui.see(ui.rowOf('Blub'), 'pending');
      await ui.see(ui.rowOf('Bello'), /^1\s+Bello\s+Dogs 1\s+available\s+Order$/);
      await ask(live.key, 'PATCH /v1/store/orders/1', { status: 'cancelled' });
      await ask(live.key, 'POST /lab/reset');
      await ui.press('Reload', '#animals');
      await ui.see(ui.rowOf('Blub'), 'available');
    }
  });

  it('says of a key what the lab was told of it, and asks no more with one that is refused', async () => {
    const { id, key } = await newKey();
    await ui.view('Lab');
    await ui.useKey(key);
    await ui.see('#key-standing', 'Accepted');
    await live.operate('keys', 'revoke', id);
    await ui.see('#key', /Refused[\s\S]*revoked or replaced/);
    await ui.useKey(live.key);
    await ui.see('#key-standing', 'Accepted');
  });

  it('shows beside a refusal what the animal and the order are by now', async () => {
    await ui.view('Animals');
    await ui.see(ui.rowOf('Kiwi'), 'available');
    await ask(live.key, 'POST /v1/store/orders', { petId: 3 }); // behind the page's back
    await ui.press('Order Kiwi');
    await ui.see(ui.rowOf('Kiwi'), /must be available \(it is pending\)[\s\S]*pending[\s\S]*Find its order/);
    assert.match((await ui.at(':focus').getAttribute('aria-label')) ?? '', /^Find its order: Kiwi/);
    await ui.view('Orders');
    await ui.see(ui.rowOf('Kiwi'), 'placed');
    const [order] = await ask<Thing[]>(live.key, 'GET /v1/store/orders?status=placed');
    await ask(live.key, `PATCH /v1/store/orders/${order.id}`, { status: 'delivered' });
    await ui.press(`Cancel order ${order.id}`, '#orders');
    await ui.press(/Yes, cancel$/, '#orders');
    await ui.see(ui.rowOf('Kiwi'), /already delivered[\s\S]*delivered\s*$/);
    await ui.view('Animals');
    await ui.see(ui.rowOf('Kiwi'), 'sold');
    await ask(live.key, 'POST /lab/reset');
  });

  it('shows the page of categories that the address names, also after a reload', async () => {
    await ui.go('categories?limit=5&after=5');
    await ui.see('#categories .position', 'Ids 6 to 8');
    await page.reload();
    await page.waitForLoadState('networkidle');
    await ui.see('#categories .position', 'Ids 6 to 8');
    await ui.view('Animals');
    await ui.see(ui.rowOf('Bello'), 'Dogs 1');
    await ui.view('Lab');
    await page.goBack();
    await page.goBack();
    await ui.see('#categories .position', 'Ids 6 to 8');
  });

  it('lets one day pass at a double click', async () => {
    await ui.view('Lab');
    await ui.button('+ 24h', part('Clock')).dblclick({ delay: 20 });
    await ui.see(part('Clock'), '24h passed.');
    await ui.press('Reload', '#lab');
    await ui.see(part('Clock'), '1 d ahead');
  });

  it('adds one animal though replies are lost, others come between, and the first is still under way', async () => {
    await ui.view('Animals');
    const form = await ui.drawer('Add an animal');
    const keys: string[] = [];
    const add = async (name: string) => {
      await form.getByLabel('Category').fill('1');
      await form.getByLabel('Name').fill(name);
      await form.getByLabel('Name').press('Enter');
    };
    await page.route('**/v1/pets', async (route) => {
      keys.push((await route.request().headerValue('Idempotency-Key')) ?? '');
      if (keys.length === 1) await route.fetch().then(() => route.abort());
      else if (keys.length === 3) {
        const body = JSON.stringify({ code: 'idempotency_in_flight', message: 'it is under way', status: 409 });
        await route.fulfill({ status: 409, contentType: 'application/json', body });
      } else await route.continue();
    });
    await add('Lost');
    await ui.see(form.locator('.note'), 'No reply');
    await add('Between');
    await ui.see(form.locator('.note'), 'Between was added');
    await ui.press('Reload', '#animals');
    await add('Lost');
    await ui.see(form.locator('.note'), 'under way');
    await ui.go('animals?limit=100');
    await ui.rowOf('Lost').waitFor();
    await add('Lost');
    await ui.see(form.locator('.note'), 'Lost was added as animal 31, by the request before.');
    assert.deepEqual([new Set(keys).size, await animalsCalled('Lost')], [2, 1]);
    assert.equal(await ui.rowOf('Lost').count(), 1, 'it is on the page already');
    await add('Lost'); // another of the same name, after the first was answered
    await ui.see(form.locator('.note'), 'Lost was added as animal 33');
    await page.unroute('**/v1/pets');
    await page.route('**/v1/pets', async (route) => void (await route.fetch())); // it is done, and never answered
    await add('Reloaded');
    while ((await animalsCalled('Reloaded')) === 0);
    await page.reload();
    await page.unroute('**/v1/pets');
    await ui.drawer('Add an animal');
    await add('Reloaded');
    await ui.see(form.locator('.note'), 'Reloaded was added as animal 34, by the request before.');
    await add('Reloaded');
    await ui.see(form.locator('.note'), 'Reloaded was added as animal 35.');
    ui.forgive(/net::ERR_FAILED/);
  });

  it('adds one animal from the reference, though the browser sends it again, or Enter is pressed again', async () => {
    await ui.go('reference/createPet');
    const trial = ui.at('#operation-createPet');
    const body = trial.getByLabel('Body, as JSON');
    await body.fill('{"name":"Tried","categoryId":1}');
    await ask(live.key, 'POST /lab/faults', { kind: 'drop_after', operation: 'createPet' });
    await ui.press('Send', trial);
    await ui.see(trial.locator('.reply'), /^(HTTP\/1\.1 201|No reply)/);
    if (/^No reply/.test((await trial.locator('.reply').textContent())!)) await ui.press('Send', trial);
    await ui.see(trial.locator('.reply'), /^HTTP\/1\.1 201/);
    assert.equal(await animalsCalled('Tried'), 1);
    await body.fill('{"name":"Pressed twice","categoryId":1}');
    let sent = 0;
    let go = () => {};
    const isPressedTwice = new Promise<void>((resolve) => (go = resolve));
    await page.route('**/v1/pets', (route) => {
      sent++;
      return isPressedTwice.then(() => route.continue());
    });
    for (const _ of [1, 2]) await trial.getByLabel('Idempotency-Key').press('Enter');
    go();
    await ui.see(trial.locator('.reply'), 'Pressed twice');
    await page.unroute('**/v1/pets');
    assert.deepEqual([sent, await animalsCalled('Pressed twice')], [1, 1]);
  });

  it('denies no open order that it has not looked for, and names of a hundred alike which is meant', async () => {
    const { key } = await newKey();
    const made: number[] = [];
    for (let i = 0; i < MANY_ORDERS; i++)
      made.push((await ask<Thing>(key, 'POST /v1/pets', { name: 'Alike', categoryId: 1 })).id);
    for (const petId of made) await ask(key, 'POST /v1/store/orders', { petId });
    const last = made.at(-1)!;
    await ui.useKey(key);
    await ui.go(`animals/${last}`);
    await ui.press(`Find its order: Alike, animal ${last}`, '#animals');
    await ui.see(ui.rows(), /Not among the open orders up to \d+\. Press again to look on\./);
    await ui.press(`Find its order: Alike, animal ${last}`, '#animals');
    await ui.button(/^Deliver order \d+ for Alike$/, '#animals').waitFor();
  });
});
