/** The console where the service refuses, is slow, loses replies, or does not answer. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { PHONE, setsClock, skip, stage, type Watched } from './browser.ts';

const BAN_AFTER = 3;
const live = stage('--ban-after', String(BAN_AFTER));
type Pet = { id: number; name: string };

async function bannedKey() {
  const made = await live.makeKey(1, 1_000);
  for (let i = 0; i < 1 + BAN_AFTER; i++) await live.send('GET /v1/pets', undefined, made.key);
  return made;
}
const widen = (id: string) => live.operate('keys', 'plan', id, 'enterprise', '--per-minute', '50', '--per-day', '99');

describe('the console under limits', { skip }, () => {
  async function isWaiting(ui: Watched): Promise<boolean> {
    const all = await ui.at('[data-sends]:visible').count();
    const waiting = await ui.at('[data-sends][aria-disabled=true]:visible').count();
    assert.ok(all > 0 && (waiting === 0 || waiting === all), `${waiting} of ${all} buttons wait`);
    return waiting > 0;
  }

  it('waits after a 429, also over a reload, counts down, leaves nothing out of date, and goes on by itself', async () => {
    const { id, key } = await live.makeKey(3, 3); // for a day: the service's clock ends no wait, however slow the machine
    const ui = await live.open({ ...setsClock, viewport: PHONE });
    const { page } = ui;
    await ui.useKey(key);
    await ui.see(ui.rowOf('Bello'), 'Dogs 1');
    await ui.press('Reload', '#animals');
    await ui.see('[data-window=day]', '0 of 3');
    assert.equal(await isWaiting(ui), false);
    await ui.press('Order Bello');
    await ui.see(
      '#banner',
      /429 The service asks to wait\s+The limit of 3 requests a \w+ is used up\. This page sends nothing[\s\S]*:\d\d/,
    );
    assert.equal(await ui.rowOf('Bello').count(), 1, 'what was shown stays');
    await ui.isAccessible('429', '#banner');
    assert.equal(await isWaiting(ui), true);
    const before = await ui.exchanges().count();
    await ui.button('Reload', '#animals').click({ force: true });
    assert.equal(await ui.exchanges().count(), before, 'nothing is sent');
    await page.reload();
    await ui.see('#banner', /429 The service asks to wait/);
    await ui.see('[data-window=day]', /0 of 3\s+Full again in 2[34]:/);
    await ui.see('#animals .state', 'Shown when the service can be called again.');
    await ui.press('Use key');
    await ui.see('#banner', /429 The service asks to wait/);
    assert.equal(await ui.exchanges().count(), 0, 'nothing is sent');
    const now = Number(await page.evaluate('Date.now()'));
    await page.clock.setSystemTime(now - 3_600_000 * 30);
    await page.clock.runFor(1_000);
    await ui.see('#banner', /2[34]:\d\d:\d\d/); // a clock that is set back makes no wait longer
    await widen(id);
    await page.clock.fastForward('24:00:01');
    await ui.rowOf('Bello').waitFor();
    assert.equal(await ui.at('#banner').isVisible(), false);
    assert.equal(await isWaiting(ui), false);
    assert.doesNotMatch((await ui.at('main').textContent()) ?? '', /again in|used up/);
    await ui.close();
  });

  it('names a ban and its end, asks again when told to, and goes on with another key', async () => {
    const { id, key } = await bannedKey();
    const ui = await live.open(setsClock);
    await ui.useKey(key);
    await ui.see('#banner', /429 This key is banned[\s\S]*press “Use key” then[\s\S]*(1:\d\d|2:00)/);
    await ui.see('#key-standing', 'Accepted');
    await ui.see('[data-window=day]', /999 of 1,000\s+Full again in 2[34]:/);
    assert.equal(await isWaiting(ui), true);
    await ui.useKey(key);
    await ui.see('#banner', 'banned');
    await ui.useKey(live.key);
    await ui.rowOf('Bello').waitFor();
    assert.equal(await ui.at('#banner').isVisible(), false);
    await ui.useKey(key);
    await ui.see('#banner', 'banned');
    await live.operate('keys', 'lift', id);
    await widen(id);
    await ui.useKey(key);
    await ui.see(ui.rowOf('Bello'), 'available');
    assert.equal(await ui.at('#banner').isVisible(), false);
    await ui.close();
  });
});

describe('the console where replies are late, lost or bad', { skip }, () => {
  let ui: Watched;
  let page: Page;
  const petsCalled = async (name: string) => {
    const all = await live.send<Pet[]>('GET /v1/pets?limit=100');
    return all.filter((one) => one.name === name).length;
  };
  before(async () => {
    ui = await live.enter(setsClock);
    page = ui.page;
  });
  after(() => ui?.close());

  it('shows which button waits for a reply, until that comes', async () => {
    const release = await ui.hold('**/v1/store/orders');
    await ui.press('Order Bello');
    await ui.at('[aria-busy=true][aria-label^="Order Bello"]').waitFor();
    release();
    await ui.see(ui.note(), 'was placed for Bello');
    assert.equal(await ui.at('[aria-busy=true]').count(), 0);
  });

  it('says that the service has stopped, keeps what it showed, and goes on when it is back', async () => {
    const top = async () => (await ui.rowOf('Bello').boundingBox())!.y;
    const before = await top();
    await page.route('**/v1/**', (route) => route.abort());
    await ui.press('Reload', '#animals');
    await ui.see('#animals .state.bad', 'No reply from the service');
    assert.equal(await top(), before);
    await ui.isAccessible('no reply', '#animals .below');
    await ui.button('Try again', '#animals').waitFor();
    await ui.press(/^Order Luna/);
    await ui.see('#animals .note.bad', 'No reply from the service');
    await ui.see(await ui.try('GET', '/v1/pets'), 'No reply from the service');
    await ui.view('Animals');
    await ui.see('#animals .state.bad', 'No reply from the service');
    await page.unroute('**/v1/**');
    await ui.press('Try again', '#animals');
    await ui.at('#animals .state.bad').waitFor({ state: 'detached' });
    await ui.rowOf('Luna').waitFor();
    ui.forgive(/net::ERR_FAILED/);
  });

  it('shows what was wanted last, whatever reply comes late', async () => {
    const path = (url: string) => `**/v1/${url}`;
    const read = await ui.hold(path('pets?limit=20'));
    await page.reload();
    await ui.view('Orders');
    await ui.see('#orders .position', 'Id 1');
    read();
    await ui.see(ui.exchanges().first(), 'GET /v1/categories?limit=100'); // the names that stand beside animals
    await ui.see('main h2:visible', 'Orders');
    await ui.see('#orders .position', 'Id 1');

    await ui.view('Animals');
    await ui.rowOf('Bello').waitFor();
    const first = await ui.hold(path('pets?limit=20&after=20'));
    await ui.press('Next page', '#animals');
    await ui.see('#animals .state', 'Loading…');
    await ui.view('Animals');
    await ui.see('#animals .position', 'Ids 1 to 20');
    first();
    await ui.see(ui.exchanges().first(), 'after=20');
    await ui.see('#animals .position', 'Ids 1 to 20');
    await page.unrouteAll();
  });

  it('shows in sight what could not be read, and announces it', async () => {
    await ui.go('animals');
    await ui.see('#animals .position', 'Ids 1 to 20');
    const body = JSON.stringify({ code: 'internal_error', message: 'a fault in the service', status: 500 });
    await page.route('**/v1/pets?*', (route) => route.fulfill({ status: 500, body }), { times: 1 });
    await ui.button('Reload', '#animals').press('Enter');
    const problem = ui.at('#animals .state.bad');
    await problem.waitFor();
    const { y, height } = (await problem.boundingBox())!;
    assert.ok(y + height <= page.viewportSize()!.height, `it stands at ${y}`);
    assert.equal(await ui.at('#live').textContent(), await problem.locator('p').textContent());
    await ui.focusComesTo('Reload');
    await ui.isAccessible('a list that could not be read', '#animals .state');
    await ui.button('Try again', '#animals').press('Enter');
    await ui.see('#live', '20 animals. Ids 1 to 20 · more follow');
    await ui.focusComesTo('Animals');
  });

  it('adds one animal though replies are lost, others come between, and the service is overloaded', async () => {
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
        const body = JSON.stringify({ code: 'unavailable', message: 'it is overloaded', status: 503 });
        await route.fulfill({ status: 503, contentType: 'application/json', body });
      } else await route.continue();
    });
    await add('Lost');
    await ui.see(form.locator('.note'), 'No reply');
    await add('Between');
    await ui.see(form.locator('.note'), 'Between was added');
    await add('Lost');
    await ui.see(form.locator('.note'), 'overloaded');
    await add('Lost');
    await ui.see(form.locator('.note'), /Lost was added as animal \d+, by the request before\./);
    assert.deepEqual([new Set(keys).size, await petsCalled('Lost')], [2, 1]);
    await add('Lost'); // another of the same name, since the first was answered
    await ui.see(form.locator('.note'), /Lost was added as animal \d+\./);
    assert.equal(await petsCalled('Lost'), 2);
    await page.unroute('**/v1/pets');
    await page.route('**/v1/pets', async (route) => void (await route.fetch())); // it is done, and never answered
    await add('Reloaded');
    while ((await petsCalled('Reloaded')) === 0);
    await page.reload();
    await page.unroute('**/v1/pets');
    await ui.rowOf('Bello').waitFor();
    await ui.drawer('Add an animal');
    await add('Reloaded');
    await ui.see(form.locator('.note'), /Reloaded was added as animal \d+, by the request before\./);
    ui.forgive(/net::ERR_FAILED/);
  });

  it('adds one animal from a request that is tried again, or when Enter is pressed twice', async () => {
    await page.route('**/v1/pets', (route) => route.fetch().then(() => route.abort()), { times: 1 });
    await ui.see(await ui.try('POST', '/v1/pets', '{"name":"Tried","categoryId":1}'), 'No reply');
    await ui.press('Send', '#try');
    await ui.see('#try .reply', '201 Created');
    assert.equal(await petsCalled('Tried'), 1);
    const form = page.getByRole('form', { name: 'Try a request' });
    await form.getByLabel('Body').fill('{"name":"Pressed twice","categoryId":1}');
    const release = await ui.hold('**/v1/pets');
    for (const _ of [1, 2]) await form.getByLabel('Path').press('Enter');
    release();
    await ui.see('#try .reply', 'Pressed twice');
    assert.equal(await petsCalled('Pressed twice'), 1);
    ui.forgive(/net::ERR_FAILED/);
  });
});
