/** A real browser on the page: what it must not do is watched all the time. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const ARGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'];
/** Long enough for a machine that is busy with other things; nothing is expected to take it. */
const WAIT_MAX_MS = 45_000;

export const skip = CHROMIUM === undefined && 'no chromium is installed here (/usr/bin/chromium)';

const WIDE = { width: 1280, height: 860 };
export const PHONE = { width: 390, height: 844 };

/** What chromium says of every reply from 400 on; the page is meant to get some. */
const REFUSED = /^Failed to load resource: the server responded with a status of [45]\d\d/;

interface Options {
  viewport?: { width: number; height: number };
  javaScriptEnabled?: boolean;
  prepare?: (page: Page) => Promise<void>;
}

export class Watched {
  readonly page: Page;
  /** Dialogs, errors on the console or thrown, breaches of the policy, requests to others. */
  readonly faults: string[] = [];

  constructor(page: Page, origin: string) {
    this.page = page;
    page.setDefaultTimeout(WAIT_MAX_MS);
    page.on('dialog', (dialog) => {
      this.faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('pageerror', (error) => this.faults.push(`thrown: ${error.message}`));
    page.on('console', (message) => {
      const isBad = ['error', 'warning'].includes(message.type()) && !REFUSED.test(message.text());
      if (isBad) this.faults.push(`console: ${message.text()}`);
    });
    page.on('request', (request) => {
      const isOwn = request.url().startsWith(`${origin}/`) || request.url().startsWith('data:');
      if (!isOwn) this.faults.push(`asked elsewhere: ${request.url()}`);
    });
  }

  /** The test itself caused these, and at least one of them. */
  forgive(faults: RegExp): void {
    const others = this.faults.filter((fault) => !faults.test(fault));
    assert.notEqual(others.length, this.faults.length, `expected ${faults}`);
    this.faults.splice(0, this.faults.length, ...others);
  }

  async useKey(key: string): Promise<void> {
    if (!(await this.page.getByLabel('API key').isVisible())) await this.page.locator('#key summary').click();
    await this.page.getByLabel('API key').fill(key);
    await button(this.page, 'Use key').click();
  }

  async close(): Promise<void> {
    await this.page.context().close();
    assert.deepEqual(this.faults, []);
  }
}

export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ARGS, timeout: WAIT_MAX_MS });
}

export async function open(browser: Browser, origin: string, { prepare, ...options }: Options = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: WIDE, ...options, locale: 'en-GB', timezoneId: 'UTC' });
  const watched = new Watched(await context.newPage(), origin);
  await prepare?.(watched.page);
  await watched.page.goto(`${origin}/`);
  return watched;
}

/** A picture for docs/, where SCREENSHOTS names a folder. */
export async function shoot(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS;
  if (folder !== undefined) await page.screenshot({ path: join(folder, `console-${name}.png`) });
}

/** What axe-core has against the page as it stands, wide in light and on a phone in dark; nothing is wider than it. */
export async function assertAccessible(page: Page, where: string): Promise<void> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source);
  for (const [colorScheme, viewport] of Object.entries({ light: WIDE, dark: PHONE })) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme: colorScheme as 'light' | 'dark' });
    const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
    assert.deepEqual(told, [], `${where}, ${colorScheme}`);
    const width = (await page.evaluate('document.documentElement.scrollWidth')) as number;
    assert.ok(width <= viewport.width, `${where}: ${width} px on ${viewport.width}`);
  }
  await page.setViewportSize(WIDE);
}

export const rows = (page: Page): Locator => page.locator('.list tbody tr:visible');
export const rowOf = (page: Page, name: string): Locator => rows(page).filter({ hasText: name });
export const button = (page: Page | Locator, name: string | RegExp): Locator => page.getByRole('button', { name });
export const view = (page: Page, name: string): Promise<void> => page.getByRole('link', { name, exact: true }).click();
export const exchanges = (page: Page): Locator => page.locator('#exchange-list > li');

/** Playwright's own assertions are not in playwright-core: this waits for what is said, and tells what there was. */
export async function expectText(locator: Locator, wanted: string | RegExp): Promise<void> {
  const end = Date.now() + WAIT_MAX_MS;
  let text = '';
  do {
    text = (await locator.allInnerTexts()).join('\n');
    if (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  } while (Date.now() < end);
  assert.fail(`waited for ${wanted}, there is: ${text}`);
}
