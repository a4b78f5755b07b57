/** Where things are on the page. */
import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';

const EXPECT_MAX_MS = 10_000;

export const rows = (page: Page): Locator => page.locator('tbody tr:visible');
export const rowOf = (page: Page, name: string): Locator => rows(page).filter({ hasText: name });
export const button = (page: Page | Locator, name: string | RegExp): Locator => page.getByRole('button', { name });
export const drawer = (page: Page, title: string): Locator => page.locator('.drawer > summary', { hasText: title });
export const view = (page: Page, name: string): Promise<void> => page.getByRole('link', { name, exact: true }).click();
export const exchanges = (page: Page): Locator => page.locator('#exchange-list > li');

/** Playwright's own assertions are not in playwright-core: this waits for what is said, and tells what there was. */
export async function expectText(locator: Locator, wanted: string | RegExp): Promise<void> {
  const end = Date.now() + EXPECT_MAX_MS;
  let text = '';
  do {
    text = (await locator.allInnerTexts()).join('\n');
    if (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  } while (Date.now() < end);
  assert.fail(`waited for ${wanted}, there is: ${text}`);
}
