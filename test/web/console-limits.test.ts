/** What the console does when the service asks to wait. The page's clock is set, the service's is not. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
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
} from './browser.ts';
import { type Live, narrowKey, startLive } from './server.ts';

const SEED = new URL('../../data/seed.json', import.meta.url).pathname;
const BAN_AFTER = 3;

const prepare = (page: Page) => page.clock.install();

async function asksToWait(page: Page): Promise<boolean> {
  const all = await page.locator('[data-sends]:visible').count();
  const waiting = await page.locator('[data-sends][aria-disabled=true]:visible').count();
  assert.ok(all > 0 && (waiting === 0 || waiting === all), `${waiting} of ${all} buttons wait`);
  return waiting > 0;
}

describe('the console under limits', { skip, concurrency: false }, () => {
  let live: Live;
  let browser: Browser;
  before(async () => {
    live = await startLive('--seed', SEED, '--ban-after', String(BAN_AFTER));
    browser = await startBrowser();
  });
  after(async () => {
    await browser?.close();
    await live?.stop();
  });
  const widen = (id: string) => live.operate('keys', 'plan', id, 'enterprise', '--per-minute', '50', '--per-day', '99');

  it('waits after a 429, also over a reload, counts down, and goes on', async () => {
    const { id, key } = await narrowKey(live, 3);
    const watched = await open(browser, live.origin, { prepare });
    const { page } = watched;
    await watched.useKey(key);
    await expectText(rowOf(page, 'Bello'), 'Dogs 1');
    const reload = button(page.locator('#animals'), 'Reload');
    await reload.click();
    await expectText(page.locator('[data-window=minute]'), '0 of 3');
    assert.equal(await asksToWait(page), false);
    await reload.click();
    await expectText(page.locator('#banner'), /429 The minute is used up[\s\S]*997 of 1,000[\s\S]*(0:\d\d|1:00)/);
    assert.equal(await rowOf(page, 'Bello').count(), 1, 'what was shown stays');
    await assertAccessible(page, '429');

    await page.setViewportSize(PHONE);
    await page.emulateMedia({ colorScheme: 'dark' });
    await shoot(page, 'limited');

    assert.equal(await asksToWait(page), true);
    const before = await exchanges(page).count();
    await reload.click({ force: true });
    await button(page, 'Order Bello').click({ force: true });
    assert.equal(await exchanges(page).count(), before, 'nothing is sent');
    await page.reload();
    await expectText(page.locator('#banner'), /429 The minute is used up/);
    await expectText(page.locator('[data-window=day]'), /997 of 1,000/);
    assert.equal(await exchanges(page).count(), 0, 'nothing is sent');
    await page.clock.fastForward('00:30');
    await expectText(page.locator('#banner'), /0:[0-3]\d/);
    await page.clock.fastForward('00:31');
    await page.locator('#banner').waitFor({ state: 'hidden' });
    assert.equal(await asksToWait(page), false);
    await expectText(page.locator('[data-window=minute]'), /3 of 3\s+Full/);
    await widen(id);
    await button(page.locator('#animals'), 'Try again').click();
    await rowOf(page, 'Bello').waitFor();
    await watched.close();
  });

  it('tells a ban from a limit, when it ends, how the day stands, and looks whether it was lifted', async () => {
    const { id, key } = await narrowKey(live, 1);
    for (let i = 0; i < 1 + BAN_AFTER; i++) {
      await fetch(`${live.origin}/v1/pets`, { headers: { Authorization: `Bearer ${key}` } });
    }
    const watched = await open(browser, live.origin, { viewport: PHONE, colorScheme: 'dark', prepare });
    const { page } = watched;
    await watched.useKey(key);
    await expectText(page.locator('#banner'), /Banned This key is banned[\s\S]*keys lift ID[\s\S]*(1:\d\d|2:00)/);
    await expectText(page.locator('#key-standing'), 'Accepted');
    await expectText(page.locator('[data-window=day]'), /999 of 1,000\s+Full again in 2[34]:/);
    assert.equal(await asksToWait(page), true);
    await assertAccessible(page, 'ban');
    await button(page, 'Check now').click();
    await expectText(page.locator('#banner'), 'Banned');
    await live.operate('keys', 'lift', id);
    await widen(id);
    await button(page, 'Check now').click();
    await expectText(rowOf(page, 'Bello'), 'available');
    assert.equal(await page.locator('#banner').isVisible(), false);
    await watched.close();
  });

  it('does not let another key wait', async () => {
    const { key } = await narrowKey(live, 1);
    const watched = await open(browser, live.origin);
    const { page } = watched;
    await watched.useKey(key);
    await expectText(page.locator('#banner'), 'The minute is used up');
    await watched.useKey(live.key);
    await page.locator('#banner').waitFor({ state: 'hidden' });
    await rowOf(page, 'Bello').waitFor();
    await watched.close();
  });
});
