/** The console under a hurried hand: keys held down, second clicks, long names, a server that stops, pages left. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { PHONE, skip, stage, type Watched } from './browser.ts';

const live = stage();
const HELD = 12; // repeats of a key that is held down for half a second

async function ask(what: string, body?: object): Promise<Response> {
  const [method, path] = what.split(' ');
  const headers = { Authorization: `Bearer ${live.key}`, 'Content-Type': 'application/json' };
  return fetch(`${live.origin}/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
}
type Pet = { id: number; status: string };
const jsonOf = async <T>(reply: Promise<Response>) => (await (await reply).json()) as T;
const statusOf = async (id: number) => (await jsonOf<Pet[]>(ask(`GET /pets?limit=1&after=${id - 1}`)))[0].status;
const newAnimal = async (name: string) => (await jsonOf<Pet>(ask('POST /pets', { name, categoryId: 1 }))).id;

describe('the console under a hurried hand', { skip }, () => {
  let ui: Watched;
  let page: Page;
  const sent = (method: string) =>
    ui
      .exchanges()
      .filter({ hasText: `${method} ` })
      .count();
  const topOf = async (where: Locator) => (await where.boundingBox())?.y;
  const isInSight = async (where: Locator) => {
    const { width, height } = page.viewportSize()!;
    const box = (await where.boundingBox())!;
    return box.x >= 0 && box.x + box.width <= width && box.y >= 0 && box.y + box.height <= height;
  };
  const hold = async () => {
    for (let i = 0; i < HELD; i++) {
      await page.keyboard.down('Enter'); // all but the first are repeats
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    await page.keyboard.up('Enter');
  };
  before(async () => {
    ui = await live.enter();
    page = ui.page;
  });
  after(() => ui?.close());

  it('places one order while Enter is held on "Order", and goes no further', async () => {
    await ui.button('Order Bello').focus();
    await hold();
    await ui.see(ui.rowOf('Bello'), /pending[\s\S]*Deliver[\s\S]*Cancel/);
    assert.equal(await sent('POST'), 1);
    assert.equal(await sent('PATCH'), 0);
    await hold(); // on Deliver, which has the focus now: it asks, and no more
    await ui.see(ui.rowOf('Bello'), /No[\s\S]*Yes, deliver/);
    assert.match((await ui.at(':focus').getAttribute('aria-label')) ?? '', /^Deliver order 1 for Bello\? No$/);
    await hold();
    await ui.see(ui.rowOf('Bello'), /Deliver[\s\S]*Cancel/);
    assert.match((await ui.at(':focus').getAttribute('aria-label')) ?? '', /^Deliver order/);
    assert.equal(await sent('PATCH'), 0);
    assert.equal(await statusOf(1), 'pending');
  });

  it('does nothing at the second click of two, wherever it lands', async () => {
    const row = ui.rowOf('Mimi');
    await ui.button('Order Mimi').dblclick();
    await ui.see(row, 'pending');
    assert.deepEqual([await sent('POST'), await sent('PATCH')], [2, 0]);
    for (const name of ['Deliver', 'Cancel']) {
      await ui.button(`${name} order 2 for Mimi`, row).dblclick({ delay: 20 });
      await ui.press(/No$/, row);
    }
    assert.deepEqual([await sent('POST'), await sent('PATCH')], [2, 0]);
    assert.equal(await statusOf(2), 'pending');
    const form = await ui.drawer('Add an animal');
    await form.getByLabel('Name').fill('Once');
    await form.getByLabel('Category').fill('1');
    await ui.button('Add', form).dblclick();
    await ui.see(form.locator('.note'), 'Once was added');
    assert.equal(await sent('POST'), 3);
  });

  it('asks before it delivers or cancels: No and Escape leave all as it is', async () => {
    const row = ui.rowOf('Mimi');
    await ui.press(/^Deliver order 2 for Mimi$/, row);
    await page.keyboard.press('Escape');
    await ui.press(/^Cancel order 2 for Mimi$/, row);
    await ui.press('Cancel order 2 for Mimi? No', row);
    assert.equal(await sent('PATCH'), 0);
    await ui.press(/^Cancel order 2 for Mimi$/, row);
    await ui.press('Cancel order 2 for Mimi? Yes, cancel', row);
    await ui.see(row, /Order 2 is cancelled; animal 2 is available\.[\s\S]*available/);
    assert.equal(await statusOf(2), 'available');
  });

  for (const [where, size] of [
    ['wide', { width: 1280, height: 860 }],
    ['on a phone', PHONE],
  ] as const) {
    it(`tells in the row what came of it, in sight, and moves no row: ${where}`, async () => {
      await page.setViewportSize(size);
      await page.reload();
      const [name, id] = where === 'wide' ? ['Pip', 7] : ['Berta', 8];
      const row = ui.rowOf(name);
      const next = ui.rowOf(where === 'wide' ? 'Berta' : 'Waldi');
      await ui.see(row, where === 'wide' ? 'Small rodents 7' : 'Farm animals 8'); // drawn again with the names
      await row.scrollIntoViewIfNeeded();
      const before = [await topOf(row), await topOf(next)];
      await ui.press(`Order ${name}`, row);
      await ui.see(row.locator('.said'), /^Order \d+ was placed\.$/);
      assert.deepEqual([await topOf(row), await topOf(next)], before);
      assert.ok(await isInSight(row.locator('.said')), 'in sight');
      const order = /\d+/.exec((await row.locator('.said').textContent()) ?? '');
      await ask(`PATCH /store/orders/${order}`, { status: 'cancelled' }); // behind the page's back
      await ui.press(/^Deliver/, row);
      await ui.press(/Yes, deliver$/, row);
      await ui.see(row.locator('.said.bad'), /^order \d+ is already cancelled$/);
      await ui.see(row, /available[\s\S]*Order/); // as it is by now
      assert.deepEqual([await topOf(row), await topOf(next)], before);
      assert.match((await ui.at(':focus').getAttribute('aria-label')) ?? '', new RegExp(`^Order ${name}`));
      assert.match((await ui.at('#live').textContent()) ?? '', /is already cancelled/);
      assert.equal(await statusOf(id), 'available');
      await ui.isAccessible(`a row that tells, ${where}`);
    });
  }

  it('takes its messages away with the page on which they were told', async () => {
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.reload();
    const form = await ui.drawer('Add an animal');
    await ui.send(form, { Category: 'x' }, 'Add');
    await ui.see(form.locator('.field-error').nth(1), 'must be');
    await ui.press('Order Shelldon');
    await ui.see(ui.rowOf('Shelldon').locator('.said'), 'was placed');
    await ui.view('Orders');
    await ui.rowOf('Shelldon').waitFor();
    await ui.view('Animals');
    await ui.see(form.locator('.field-error').nth(1), /^$/);
    assert.equal(await form.locator('[aria-invalid=true]').count(), 0);
    await ui.press('Next page', '#animals');
    await ui.see('#animals .position', 'Ids 21');
    await page.goBack();
    await ui.rowOf('Shelldon').waitFor();
    assert.equal(await ui.rowOf('Shelldon').locator('.said').count(), 0);
  });

  it('shows on the first page what was added, though it belongs on another', async () => {
    const form = ui.page.getByRole('form', { name: 'Add an animal' });
    await ui.send(form, { Name: 'Newcomer', Category: '2' }, 'Add');
    await ui.see(ui.rows().first(), /Newcomer[\s\S]*Just added[\s\S]*Cats 2[\s\S]*available/);
    await ui.see(ui.rows().nth(1), 'Bello');
    await ui.press('Order Newcomer');
    await ui.see(ui.rows().first(), /pending[\s\S]*Deliver/);
    await ui.press('Reload', '#animals');
    await ui.see(ui.rows().first(), 'Bello');
  });

  it('asks whether what it read has changed: a reload of what has not costs no body, and shows the same', async () => {
    await page.reload();
    await ui.rowOf('Bello').waitFor();
    const newest = ui.exchanges().first();
    const rows = (await ui.rows().allInnerTexts()).join();
    await ui.see(newest, 'GET /v1/categories');
    await ui.press('Reload', '#animals');
    await ui.see(newest, /304\s+GET \/v1\/pets\?limit=20/);
    assert.equal((await ui.rows().allInnerTexts()).join(), rows);
    await newest.locator('summary').click();
    await ui.see(newest, /If-None-Match: "[\s\S]*HTTP\/1\.1 304 Not Modified[\s\S]*etag: "[^\n]*\n[^{]*$/i);
    await ask('POST /store/orders', { petId: 12 });
    await ui.press('Reload', '#animals');
    await ui.see(newest, /200\s+GET \/v1\/pets\?limit=20/);
    await ui.see(ui.rowOf('Hoppel'), 'pending');
  });

  it('names the animals of orders, also of those it has not listed, by few requests', async () => {
    const far = await newAnimal('Far away');
    for (let i = 0; i < 3; i++) await newAnimal(`Between ${i}`);
    const last = await newAnimal('At the end');
    for (const petId of [far, last]) await ask('POST /store/orders', { petId });
    await page.reload();
    await ui.rowOf('Bello').waitFor();
    const reads = () =>
      ui
        .exchanges()
        .filter({ hasText: /GET \/v1\/pets/ })
        .count();
    const before = await reads();
    await ui.view('Orders');
    await ui.see(ui.rowOf('At the end'), new RegExp(`At the end ${last}[\\s\\S]*placed`));
    await ui.see(ui.rowOf('Far away'), /Deliver/);
    assert.equal((await reads()) - before, 1);
  });

  it('breaks long names and ids within their columns', async () => {
    const name = 'W'.repeat(255);
    const low = '-9223372036854775808';
    await ask(`PUT /categories/${low}`, { name });
    const body = `{"name":"${name}","categoryId":${low}}`;
    const headers = { Authorization: `Bearer ${live.key}`, 'Content-Type': 'application/json' };
    const { id } = await jsonOf<Pet>(fetch(`${live.origin}/v1/pets`, { method: 'POST', headers, body }));
    await ask('POST /store/orders', { petId: id });
    for (const hash of [`animals?after=${id - 1}`, `animals/${id}`, 'orders', 'categories']) {
      await ui.go(hash);
      await page.reload();
      await ui.see(ui.rowOf('WWWW').first(), 'WWWW');
      await ui.isAccessible(hash); // nothing is wider than the page
      await page.setViewportSize(PHONE);
      const height = (await ui.rowOf('WWWW').first().boundingBox())!.height;
      assert.ok(height < 260, `${hash}: a row of ${height} px`);
      await page.setViewportSize({ width: 1280, height: 860 });
    }
  });

  it('says everywhere that the service has stopped, the key turns grey; and goes on when it is back', async () => {
    await ui.view('Animals');
    await ui.rowOf('Bello').waitFor();
    await ui.see('#key-standing', 'Accepted');
    const before = await topOf(ui.rowOf('Bello'));
    await page.route('**/{v1/**,openapi.json}', (route) => route.abort());
    await ui.press('Reload', '#animals');
    await ui.see('#banner', 'The service does not answer');
    await ui.see('#key-standing', 'No reply');
    assert.equal(await ui.at('#key-standing').getAttribute('class'), 'standing ');
    assert.equal(await topOf(ui.rowOf('Bello')), before, 'what was shown stays, and where it was');
    await ui.isAccessible('no reply');
    for (const view of ['Orders', 'Categories', 'Reference']) {
      await ui.view(view);
      await ui.see('#banner', 'The service does not answer');
    }
    await ui.view('Animals');
    await ui.press(/^Order Luna/);
    await ui.see(ui.rowOf('Luna').locator('.said.bad'), 'No reply from the service');
    await page.unroute('**/{v1/**,openapi.json}');
    await ui.press('Try again', '#banner');
    await ui.at('#banner').waitFor({ state: 'hidden' });
    await ui.see('#key-standing', 'Accepted');
    assert.match((await ui.at('#key-standing').getAttribute('class')) ?? '', /good/);
    ui.forgive(/net::ERR_FAILED/);
  });

  it('knows the id of a key that was pasted as the operator saw it, and of no other', async () => {
    const printed = await live.operate('keys', 'create', '--plan', 'pro', '--name', 'k77');
    const [id] = /k\d+/.exec(printed)!;
    const paste = (text: string) =>
      page.evaluate(`{
        const data = new DataTransfer();
        data.setData('text/plain', ${JSON.stringify(text)});
        const input = document.getElementById('key-input');
        const event = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
        if (input.dispatchEvent(event)) input.value = ${JSON.stringify(text.replaceAll('\n', ''))};
      }`);
    await ui.at('#key summary').click();
    await paste(printed);
    await ui.press('Use key');
    await ui.see('#key-standing', 'Accepted');
    await ui.see('#key-id', id);
    await page.reload();
    await ui.see('#key-id', id);
    await ui.useKey(live.key);
    await ui.see('#key-standing', 'Accepted');
    assert.equal(await ui.at('#key-id').textContent(), '');
  });
});
