/** The console while the service asks to wait, and the lab on it, where a wait can be passed. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { ENDPOINTS } from '../../src/routes.ts';
import {
  assertAccessible,
  button,
  exchanges,
  expectText,
  open,
  PHONE,
  rowOf,
  shoot,
  skip,
  startBrowser,
  view,
  type Watched,
} from './browser.ts';
import { type Live, SEED, startLive } from './server.ts';

const BAN_AFTER = 3;

let live: Live;
let browser: Browser;
before(async () => {
  if (skip) return;
  live = await startLive('--seed', SEED, '--ban-after', String(BAN_AFTER), '--lab', '--environment', 'staging');
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await live?.stop();
});

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
const widen = (id: string) => live.operate('keys', 'plan', id, 'enterprise', '--per-minute', '50', '--per-day', '99');

describe('the console under limits', { skip, concurrency: false }, () => {
  /** The page's clock is set, the service's is not. */
  const prepare = (page: Page) => page.clock.install();

  async function asksToWait(page: Page): Promise<boolean> {
    const all = await page.locator('[data-sends]:visible').count();
    const waiting = await page.locator('[data-sends][aria-disabled=true]:visible').count();
    assert.ok(all > 0 && (waiting === 0 || waiting === all), `${waiting} of ${all} buttons wait`);
    return waiting > 0;
  }

  it('waits after a 429, also over a reload, counts down, and goes on', async () => {
    const { id, key } = await narrowKey(3, 3); // for a day: however slow the machine, the service's clock ends no wait
    const watched = await open(browser, live.origin, { prepare, viewport: PHONE });
    const { page } = watched;
    await watched.useKey(key);
    await expectText(rowOf(page, 'Bello'), 'Dogs 1');
    const reload = button(page.locator('#animals'), 'Reload');
    await reload.click();
    await expectText(page.locator('[data-window=day]'), '0 of 3');
    assert.equal(await asksToWait(page), false);
    await reload.click();
    await expectText(page.locator('#banner'), /429 The day is used up[\s\S]*2[34]:\d\d:\d\d/);
    assert.equal(await rowOf(page, 'Bello').count(), 1, 'what was shown stays');
    await shoot(page, 'limited');
    await assertAccessible(page, '429');

    assert.equal(await asksToWait(page), true);
    const before = await exchanges(page).count();
    await reload.click({ force: true });
    assert.equal(await exchanges(page).count(), before, 'nothing is sent');
    await page.reload();
    await expectText(page.locator('#banner'), /429 The day is used up/);
    await expectText(page.locator('[data-window=day]'), /0 of 3\s+Full again in 2[34]:/);
    assert.equal(await exchanges(page).count(), 0, 'nothing is sent');
    await page.clock.fastForward('12:00:00');
    await expectText(page.locator('#banner'), /1[12]:\d\d:\d\d/);
    await page.clock.fastForward('12:00:01');
    await page.locator('#banner').waitFor({ state: 'hidden' });
    assert.equal(await asksToWait(page), false);
    await expectText(page.locator('[data-window=day]'), /3 of 3\s+Full/);
    await widen(id);
    await button(page.locator('#animals'), 'Try again').click();
    await rowOf(page, 'Bello').waitFor();
    await watched.close();
  });

  it('tells a ban from a limit, when it ends, how the day stands; looks whether it was lifted; another key goes', async () => {
    const { id, key } = await narrowKey(1);
    for (let i = 0; i < 1 + BAN_AFTER; i++) await ask(key, 'GET /v1/pets');
    const watched = await open(browser, live.origin, { prepare });
    const { page } = watched;
    await watched.useKey(key);
    await expectText(page.locator('#banner'), /Banned This key is banned[\s\S]*keys lift ID[\s\S]*(1:\d\d|2:00)/);
    await expectText(page.locator('#key-standing'), 'Accepted');
    await expectText(page.locator('[data-window=day]'), /999 of 1,000\s+Full again in 2[34]:/);
    assert.equal(await asksToWait(page), true);
    await button(page, 'Check now').click();
    await expectText(page.locator('#banner'), 'Banned');
    await watched.useKey(live.key);
    await rowOf(page, 'Bello').waitFor();
    assert.equal(await page.locator('#banner').isVisible(), false);
    await watched.useKey(key);
    await expectText(page.locator('#banner'), 'Banned');
    await live.operate('keys', 'lift', id);
    await widen(id);
    await button(page, 'Check now').click();
    await expectText(rowOf(page, 'Bello'), 'available');
    assert.equal(await page.locator('#banner').isVisible(), false);
    await watched.close();
  });
});

describe('the lab on the console', { skip, concurrency: false }, () => {
  let watched: Watched;
  const part = (name: string) => watched.page.getByRole('region', { name, exact: true });
  before(async () => {
    watched = await open(browser, live.origin);
    await watched.useKey(live.key);
    await rowOf(watched.page, 'Bello').waitFor();
    await view(watched.page, 'Lab');
  });
  after(() => watched?.close());

  it('lets time pass, and forgets what was told of the limits', async () => {
    await expectText(part('Clock'), 'not at all ahead');
    await button(part('Clock'), 'Advance').click();
    await expectText(part('Clock'), /1 m 30 s ahead/);
    await expectText(watched.page.locator('#gauges'), 'Shown with the first reply');
    await button(part('Clock'), '+ 24h').click();
    await expectText(part('Clock'), /1 d 1 m 30 s ahead/);
    await part('Clock').getByLabel('By').fill('-5');
    await button(part('Clock'), 'Advance').click();
    await expectText(part('Clock').locator('.field-error'), 'must be a time');
  });

  it('injects faults, says what is wrong with one, and removes them', async () => {
    await expectText(part('Faults'), 'No faults wait');
    await part('Faults').locator('summary').click();
    const form = part('Faults').getByRole('form');
    await form.getByLabel('Kind').selectOption('delay');
    await form.getByLabel('Milliseconds').fill('99999');
    await button(form, 'Inject').click();
    await expectText(form.locator('.field-error'), '0 to 30000');
    await form.getByLabel('Milliseconds').fill('500');
    const operations = await form.getByLabel('Operation').locator('option').allTextContents();
    assert.deepEqual(operations.slice(1).sort(), ENDPOINTS.map(({ name }) => name).sort());
    await form.getByLabel('Operation').selectOption('createOrder');
    await button(form, 'Inject').click();
    await expectText(part('Faults').locator('tbody'), /delay 500 ms\s+createOrder, 1 ×/);
    await button(form, 'Remove all').click();
    await expectText(part('Faults'), 'No faults wait');
  });

  it('shows the record and the grade, arms the drill, and starts again', async () => {
    await expectText(part('Grade'), /–\s+No grade yet; \d+ % of all weight was seen/);
    // A POST whose reply is lost is sent again, a 503 is waited for: enough for a grade.
    const animal = { name: 'Rex', categoryId: 1 };
    await ask(live.key, 'POST /lab/faults', { kind: 'drop_after' });
    for (const _ of [1, 2]) await ask(live.key, 'POST /v1/pets', animal);
    await ask(live.key, 'POST /lab/faults', { kind: 'unavailable' });
    await ask(live.key, 'GET /v1/pets?limit=1');
    await ask(live.key, 'POST /lab/clock', { advance: '2s' });
    for (const limit of [2, 3]) await ask(live.key, `GET /v1/pets?limit=${limit}`);
    await button(watched.page.locator('#lab'), 'Reload').click();
    await expectText(part('Record'), /failed\s+POST \/v1\/pets\s+Idempotency-Key[\s\S]*# \d+\s+drop_after/);
    await expectText(part('Grade'), /[AB]\s+Score \d+ of 100; \d+ % of all weight was seen/);
    await expectText(part('Grade'), /pass\s+idempotency/);
    await assertAccessible(watched.page, 'lab');
    await button(part('Grade'), 'Arm the drill').click();
    await expectText(part('Grade'), /refused|lost/);
    await button(part('Grade'), 'Reset').click();
    await expectText(part('Grade'), 'as the seed makes them');
    await expectText(part('Record'), 'This key has sent nothing yet');
  });

  it('ends a wait that the service asked for by letting time pass', async () => {
    const { key } = await narrowKey(1);
    for (let i = 0; i < 1 + BAN_AFTER; i++) await ask(key, 'GET /v1/pets');
    await view(watched.page, 'Animals');
    await watched.useKey(key);
    await expectText(watched.page.locator('#banner'), /banned/i);
    await view(watched.page, 'Lab');
    await button(part('Clock'), '+ 24h').click();
    await expectText(part('Clock'), '24h passed.');
    await watched.page.locator('#banner').waitFor({ state: 'hidden' });
  });
});
