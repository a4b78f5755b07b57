/** What the console does when the service asks to wait. The page's clock is set, the service's is not. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible, Chromium, PHONE, skip, type Watched, WIDE } from './browser.ts';
import { button, exchanges, expectText, rowOf, view } from './locators.ts';
import { narrowKey } from './server.ts';

const BAN_AFTER = 3;

let browser: Chromium;

const withClock = (page: Page) => page.clock.install();
const ask = (key: string) => fetch(`${browser.live.origin}/v1/pets`, { headers: { Authorization: `Bearer ${key}` } });

async function askedToWait(page: Page): Promise<boolean> {
  const sending = page.locator('[data-sends]:visible');
  const disabled = page.locator('[data-sends][aria-disabled=true]:visible');
  assert.ok((await sending.count()) > 0);
  const [all, waiting] = [await sending.count(), await disabled.count()];
  assert.ok(waiting === 0 || waiting === all, `${waiting} of ${all} buttons wait`);
  return waiting > 0;
}

describe('the console under limits', { skip, concurrency: false }, () => {
  before(async () => {
    browser = await Chromium.start('--ban-after', String(BAN_AFTER));
  });
  after(() => browser?.close());

  it('waits after a 429, counts down, and goes on', async () => {
    const { id, key } = await narrowKey(browser.live, 3);
    const watched: Watched = await browser.open(WIDE, 'light', withClock);
    const { page } = watched;
    await watched.useKey(key);
    await expectText(rowOf(page, 'Bello'), 'Dogs 1');
    const reload = button(page.locator('#animals'), 'Reload');
    await reload.click();
    await expectText(page.locator('[data-window=minute]'), '0 of 3 left');
    assert.equal(await askedToWait(page), false);
    await reload.click();
    await expectText(page.locator('#banner'), /429 The minute is used up[\s\S]*(0:\d\d|1:00)/);
    await expectText(page.locator('[data-window=minute]'), /0 of 3 left\s+Full again in/);
    await expectText(page.locator('[data-window=day]'), '997 of 1,000 left');
    assert.equal(await rowOf(page, 'Bello').count(), 1, 'what was shown stays');
    await browser.shoot(page, 'limited');
    await assertAccessible(page, '429');

    assert.equal(await askedToWait(page), true);
    const before = await exchanges(page).count();
    await reload.click({ force: true });
    await button(page, 'Order Bello').click({ force: true });
    assert.equal(await exchanges(page).count(), before, 'nothing is sent');
    await page.clock.fastForward('00:30');
    await expectText(page.locator('#banner'), /0:[0-3]\d/);
    await page.clock.fastForward('00:31');
    await page.locator('#banner').waitFor({ state: 'hidden' });
    assert.equal(await askedToWait(page), false);
    await expectText(page.locator('[data-window=minute]'), /3 of 3 left\s+The next request begins a new minute/);
    await browser.live.operate('keys', 'plan', id, 'enterprise', '--per-minute', '50', '--per-day', '1000');
    await button(page.locator('#animals'), 'Try again').click();
    await expectText(page.locator('[data-window=minute]'), '46 of 50 left');
    await watched.close();
  });

  it('tells a ban from a limit, and when it ends', async () => {
    const { id, key } = await narrowKey(browser.live, 1);
    for (let i = 0; i < 1 + BAN_AFTER; i++) await ask(key);
    const watched = await browser.open(PHONE, 'dark', withClock);
    const { page } = watched;
    await watched.useKey(key);
    await expectText(page.locator('#banner'), /Banned This key is banned for a while[\s\S]*(1:\d\d|2:00)/);
    await expectText(page.locator('#key-standing'), 'Accepted');
    await expectText(page.locator('[data-window=minute]'), /0 of 1 left\s+Admitted again in (1:\d\d|2:00)/);
    assert.equal(await askedToWait(page), true);
    await browser.shoot(page, 'banned');
    await assertAccessible(page, 'ban');
    await page.clock.fastForward('02:01');
    await page.locator('#banner').waitFor({ state: 'hidden' });
    await expectText(page.locator('[data-window=day]'), 'Known with the next reply');
    await browser.live.operate('keys', 'lift', id);
    await browser.live.operate('keys', 'plan', id, 'enterprise', '--per-minute', '50', '--per-day', '1000');
    await button(page.locator('#animals'), 'Try again').click();
    await expectText(rowOf(page, 'Bello'), 'available');
    await watched.close();
  });

  it('does not let another key wait', async () => {
    const { key } = await narrowKey(browser.live, 1);
    const watched = await browser.open();
    const { page } = watched;
    await watched.useKey(key);
    await expectText(page.locator('#banner'), 'The minute is used up');
    await watched.useKey(browser.live.key);
    await page.locator('#banner').waitFor({ state: 'hidden' });
    await rowOf(page, 'Bello').waitFor();
    await view(page, 'Orders');
    await expectText(page.locator('#orders'), 'No orders yet');
    await watched.close();
  });
});
