/** The console for all: by keyboard alone, on a phone, light and dark, and what axe-core has to say. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible, Chromium, PHONE, skip, WIDE } from './browser.ts';
import { button, drawer, expectText, rowOf, view } from './locators.ts';

let browser: Chromium;

/** Nothing is wider than the screen. */
async function assertFits(page: Page, where: string): Promise<void> {
  const [inner, outer] = (await page.evaluate('[document.documentElement.scrollWidth, innerWidth]')) as number[];
  assert.ok(inner <= outer, `${where}: ${inner} px on ${outer}`);
}

describe('the console for all', { skip, concurrency: false }, () => {
  before(async () => {
    browser = await Chromium.start();
  });
  after(() => browser?.close());

  it('is used by keyboard alone', async () => {
    const watched = await browser.open();
    const { page } = watched;
    const focused = page.locator(':focus');
    const press = async (key: string, times = 1) => {
      for (let i = 0; i < times; i++) await page.keyboard.press(key);
    };
    await press('Tab');
    await expectText(focused, 'Skip to the content');
    const ring = await focused.evaluate('getComputedStyle(document.activeElement).outlineStyle');
    assert.equal(ring, 'solid');
    await press('Tab', 5);
    assert.equal(await focused.getAttribute('id'), 'key-input', 'after the four views');
    await page.keyboard.insertText(browser.live.key);
    await press('Enter');
    await rowOf(page, 'Bello').waitFor();
    await page.locator('.skip').focus();
    await press('Enter');
    assert.equal(await focused.getAttribute('id'), 'main');
    await press('Tab');
    await expectText(focused, 'Add an animal');
    await press('Enter');
    await press('Tab');
    await page.keyboard.insertText('Keys');
    await press('Tab');
    await page.keyboard.insertText('1');
    await press('Enter');
    await expectText(page.locator('#animals .drawer'), 'Keys was added as animal 31');
    await button(page, 'Order Bello').focus();
    await press('Enter');
    await expectText(rowOf(page, 'Bello'), 'pending');
    assert.match((await focused.getAttribute('aria-label')) ?? '', /^Deliver order/, 'the focus stays in the row');
    await press('Enter');
    await expectText(rowOf(page, 'Bello'), 'sold');
    assert.equal(await focused.getAttribute('data-id'), '1', 'the focus stays, though no button is left');
    await expectText(page.locator('#live'), /is delivered; animal 1 is sold/);
    await watched.close();
  });

  for (const [name, viewport] of [['phone', PHONE] as const, ['wide', WIDE] as const]) {
    it(`is without fault to axe-core in light and dark: ${name}`, async () => {
      const watched = await browser.open(viewport);
      const { page } = watched;
      const look = async (what: string) => {
        await assertFits(page, what);
        await assertAccessible(page, `${what}, ${name}`);
      };
      await look('welcome');
      await watched.useKey(browser.live.key);
      await expectText(rowOf(page, 'Mimi'), 'Cats');
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        if (name === 'phone') await page.evaluate('document.querySelector("#gauges").scrollIntoView()');
        await browser.shoot(page, `${name}-${colorScheme}`);
      }
      await drawer(page, 'Add an animal').click();
      await button(page, 'Add').click();
      await expectText(page.locator('.field-error').first(), 'must be');
      await page.locator('#exchange-list summary').first().click();
      await look('animals');
      await view(page, 'Orders');
      await expectText(page.locator('#orders .position, #orders .state'), /Ids|No orders/);
      await look('orders');
      await view(page, 'Categories');
      await rowOf(page, 'Dogs').waitFor();
      await look('categories');
      await view(page, 'Reference');
      await page.locator('.operation summary').nth(1).click();
      await look('reference');
      await watched.close();
    });
  }
});
