/** The console while the service asks to wait, and the lab on it, where a wait can be passed. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { ENDPOINTS } from '../../src/routes.ts';
import { PHONE, skip, stage, type Watched } from './browser.ts';

const BAN_AFTER = 3;
const METHOD = /^(?:get|post|put|patch|delete)$/;
const live = stage('--ban-after', String(BAN_AFTER), '--lab', '--environment', 'staging');

async function ask(key: string, what: string, body?: object): Promise<void> {
  const [method, path] = what.split(' ');
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', 'Idempotency-Key': 'a' };
  await fetch(live.origin + path, { method, headers, body: body && JSON.stringify(body) }).catch(() => {});
}

/** An enterprise key with few requests: its id, and the key itself. */
async function narrowKey(perMinute: number, perDay = 1_000): Promise<{ id: string; key: string }> {
  const limits = ['--per-minute', String(perMinute), '--per-day', String(perDay)];
  return JSON.parse(await live.operate('keys', 'create', '--plan', 'enterprise', ...limits, '--json'));
}
async function bannedKey() {
  const made = await narrowKey(1);
  for (let i = 0; i < 1 + BAN_AFTER; i++) await ask(made.key, 'GET /v1/pets');
  return made;
}
const widen = (id: string) => live.operate('keys', 'plan', id, 'enterprise', '--per-minute', '50', '--per-day', '99');

describe('the console under limits', { skip }, () => {
  /** The page's clock is set, the service's is not. */
  const prepare = (page: Page) => page.clock.install();

  async function asksToWait(ui: Watched): Promise<boolean> {
    const all = await ui.at('[data-sends]:visible').count();
    const waiting = await ui.at('[data-sends][aria-disabled=true]:visible').count();
    assert.ok(all > 0 && (waiting === 0 || waiting === all), `${waiting} of ${all} buttons wait`);
    return waiting > 0;
  }

  it('waits after a 429, also over a reload, counts down, and goes on', async () => {
    const { id, key } = await narrowKey(3, 3); // for a day: however slow the machine, the service's clock ends no wait
    const ui = await live.open({ prepare, viewport: PHONE });
    const { page } = ui;
    await ui.useKey(key);
    await ui.see(ui.rowOf('Bello'), 'Dogs 1');
    const reload = ui.button('Reload', '#animals');
    await reload.click();
    await ui.see('[data-window=day]', '0 of 3');
    assert.equal(await asksToWait(ui), false);
    await reload.click();
    await ui.see('#banner', /429 The day is used up[\s\S]*2[34]:\d\d:\d\d/);
    assert.equal(await ui.rowOf('Bello').count(), 1, 'what was shown stays');
    await ui.shoot('limited');
    await ui.isAccessible('429');

    assert.equal(await asksToWait(ui), true);
    const before = await ui.exchanges().count();
    await reload.click({ force: true });
    assert.equal(await ui.exchanges().count(), before, 'nothing is sent');
    await page.reload();
    await ui.see('#banner', /429 The day is used up/);
    await ui.see('[data-window=day]', /0 of 3\s+Full again in 2[34]:/);
    assert.equal(await ui.exchanges().count(), 0, 'nothing is sent');
    await page.clock.fastForward('12:00:00');
    await ui.see('#banner', /1[12]:\d\d:\d\d/);
    const now = Number(await page.evaluate('Date.now()'));
    await page.clock.setSystemTime(now - 3_600_000 * 30);
    await page.clock.runFor(1_000);
    await ui.see('#banner', /2[34]:\d\d:\d\d/); // a clock that is set back makes no wait longer than was told
    await page.clock.fastForward('24:00:01');
    await ui.at('#banner').waitFor({ state: 'hidden' });
    assert.equal(await asksToWait(ui), false);
    await ui.see('[data-window=day]', /3 of 3\s+Full/);
    await widen(id);
    await ui.press('Try again', '#animals');
    await ui.rowOf('Bello').waitFor();
    await ui.close();
  });

  it('tells a ban from a limit, when it ends, how the day stands; looks whether it was lifted; another key goes', async () => {
    const { id, key } = await bannedKey();
    const ui = await live.open({ prepare });
    await ui.useKey(key);
    await ui.see('#banner', /Banned This key is banned[\s\S]*keys lift ID[\s\S]*(1:\d\d|2:00)/);
    await ui.see('#key-standing', 'Accepted');
    await ui.see('[data-window=day]', /999 of 1,000\s+Full again in 2[34]:/);
    assert.equal(await asksToWait(ui), true);
    await ui.press('Check now');
    await ui.see('#banner', 'Banned');
    await ui.useKey(live.key);
    await ui.rowOf('Bello').waitFor();
    assert.equal(await ui.at('#banner').isVisible(), false);
    await ui.useKey(key);
    await ui.see('#banner', 'Banned');
    await live.operate('keys', 'lift', id);
    await widen(id);
    await ui.press('Check now');
    await ui.see(ui.rowOf('Bello'), 'available');
    assert.equal(await ui.at('#banner').isVisible(), false);
    await ui.close();
  });
});

describe('the lab on the console', { skip }, () => {
  let ui: Watched;
  const part = (name: string) => ui.page.getByRole('region', { name, exact: true });
  before(async () => {
    ui = await live.enter();
    await ui.view('Lab');
  });
  after(() => ui?.close());

  it('lets time pass, and forgets what was told of the limits', async () => {
    await ui.see(part('Clock'), 'not at all ahead');
    await ui.press('Advance', part('Clock'));
    await ui.see(part('Clock'), /1 m 30 s ahead/);
    await ui.see('#gauges', 'Shown with the first reply');
    await ui.press('+ 24h', part('Clock'));
    await ui.see(part('Clock'), /1 d 1 m 30 s ahead/);
    await ui.send(part('Clock'), { By: '-5' }, 'Advance');
    await ui.see(part('Clock').locator('.field-error'), 'must be a time');
  });

  it('injects faults, says what is wrong with one, and removes them', async () => {
    await ui.see(part('Faults'), 'No faults wait');
    await part('Faults').locator('summary').click();
    const form = part('Faults').getByRole('form');
    await form.getByLabel('Kind').selectOption('delay');
    await ui.send(form, { Milliseconds: '99999' }, 'Inject');
    await ui.see(form.locator('.field-error'), '0 to 30000');
    const operations = await form.getByLabel('Operation').locator('option').allTextContents();
    assert.deepEqual(operations.slice(1).sort(), ENDPOINTS.map(({ name }) => name).sort());
    await form.getByLabel('Operation').selectOption('createOrder');
    await ui.send(form, { Milliseconds: '500' }, 'Inject');
    await ui.see(part('Faults').locator('tbody'), /delay 500 ms\s+createOrder, 1 ×/);
    await ui.press(/^Remove fault \d+$/, part('Faults'));
    await ui.see(part('Faults'), 'No faults wait');
    await form.getByLabel('Kind').selectOption('status');
    assert.deepEqual(
      [await form.getByLabel('Milliseconds').isVisible(), await form.getByLabel('Told as').isVisible()],
      [false, false],
    );
    await form.getByLabel('Status').selectOption('429');
    await ui.send(form, { 'Retry-After': '7', Times: '2', Rate: '0.25', Seed: '9' }, 'Inject');
    await ui.see(
      part('Faults').locator('tbody'),
      /status 429, Retry-After: 7, 0\.25 of them, seed 9\s+createOrder, 2 ×/,
    );
    await ui.press('Remove all', form);
    await ui.see(part('Faults'), 'No faults wait');
  });

  it('shows the record and the grade, arms the drill, and starts again', async () => {
    await ui.see(part('Grade'), /–\s+No grade yet; \d+ % of all weight was seen/);
    // A POST whose reply is lost is sent again, a 503 is waited for: enough for a grade.
    const animal = { name: 'Rex', categoryId: 1 };
    await ask(live.key, 'POST /lab/faults', { kind: 'drop_after' });
    for (const _ of [1, 2]) await ask(live.key, 'POST /v1/pets', animal);
    await ask(live.key, 'POST /lab/faults', { kind: 'unavailable' });
    await ask(live.key, 'GET /v1/pets?limit=1');
    await ask(live.key, 'POST /lab/clock', { advance: '2s' });
    for (const limit of [2, 3]) await ask(live.key, `GET /v1/pets?limit=${limit}`);
    await ask(live.key, 'POST /v1/pets', animal).catch(() => {});
    const shown = await ui.exchanges().count();
    // It refreshes while it is looked at, without filling the list of requests.
    await ui.see(
      part('Record'),
      /failed\s+POST \/v1\/pets\s+Idempotency-Key \S+…[\s\S]*# \d+\s+drop_after\s+201\s+again after \d+ ms/,
    );
    assert.equal(await ui.exchanges().count(), shown);
    await ui.see(part('Grade'), /[A-D]\s+Score \d+ of 100; \d+ % of all weight was seen/);
    await ui.see(part('Grade').locator('.missing'), /finished|backoff \(10\): send again/);
    await ui.see(part('Grade'), /pass\s+idempotency/);
    await ui.isAccessible('lab');
    await ui.press('Arm the drill', part('Grade'));
    await ui.see(part('Grade').locator('.script'), /The second GET \/v1\/pets gets 503/);
    await ui.press('Reset …', part('Grade'));
    await ui.press('Cancel', part('Grade'));
    await ui.see(part('Record'), /POST \/v1\/pets/);
    await ui.press('Reset …', part('Grade'));
    await ui.press('The whole shop, for everybody', part('Grade'));
    await ui.see(part('Grade'), 'as the seed makes them');
    await ui.see(part('Record'), 'This key has sent nothing yet');
  });

  it('leads from a check to the row of its request', async () => {
    for (const _ of [1, 2]) await ask(live.key, 'GET /v1/pets/1');
    await ui.press('Reload', '#lab');
    const link = part('Grade').locator('.request-link').first();
    const id = await link.textContent();
    await link.click();
    assert.equal(await ui.page.evaluate('document.activeElement.id'), `request-${id}`);
  });

  it('has the operations of the lab in the reference, to read and to try', async () => {
    await ui.view('Reference');
    const operations = ui.at('.operation');
    await operations.first().waitFor();
    const { paths } = (await (await fetch(`${live.origin}/openapi.json`)).json()) as { paths: Record<string, object> };
    const described = Object.values(paths).flatMap((item) => Object.keys(item).filter((name) => METHOD.test(name)));
    assert.ok(described.length > ENDPOINTS.length, 'the lab is served here');
    assert.equal(await operations.count(), described.length);
    for (const operation of await operations.all()) {
      await operation.locator('summary').click();
      await operation.getByRole('button', { name: 'Send', exact: true }).waitFor();
      await operation.getByRole('heading', { name: 'Replies' }).waitFor();
    }
    const reset = ui.at('#operation-resetLab');
    await ui.press('Send', reset);
    await ui.see(reset.locator('.reply'), /^HTTP\/1\.1 204 /);
    await ui.press('Send', ui.at('#operation-listPets'));
    await ui.see('#operation-listPets .reply', /^HTTP\/1\.1 200 /);
    assert.equal(await ui.at('#banner').isVisible(), false);
  });

  it('ends a wait that the service asked for by letting time pass', async () => {
    const { key } = await bannedKey();
    await ui.view('Animals');
    await ui.useKey(key);
    await ui.see('#banner', /banned/i);
    await ui.view('Lab');
    await ui.press('+ 24h', part('Clock'));
    await ui.see(part('Clock'), '24h passed.');
    await ui.at('#banner').waitFor({ state: 'hidden' });
  });
});
