/** A real browser on the page: what it must not do is watched all the time. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { type Live, startLive } from './server.ts';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const ARGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const WAIT_MAX_MS = 10_000;
const SEED = new URL('../../data/seed.json', import.meta.url).pathname;

export const skip = CHROMIUM === undefined && 'no chromium is installed here (/usr/bin/chromium)';

export const WIDE = { width: 1360, height: 900 };
export const PHONE = { width: 360, height: 780 };

/** What chromium says of every reply from 400 on; the page is meant to get some. */
const REFUSED = /^Failed to load resource: the server responded with a status of [45]\d\d/;

export class Watched {
  readonly page: Page;
  readonly #faults: string[];

  constructor(page: Page, faults: string[]) {
    this.page = page;
    this.#faults = faults;
  }

  /** Dialogs, errors on the console or thrown, breaches of the policy: there were none. */
  assertClean(): void {
    assert.deepEqual(this.#faults, []);
  }

  /** The test itself caused these, and at least one of them. */
  forgive(faults: RegExp): void {
    const others = this.#faults.filter((fault) => !faults.test(fault));
    assert.notEqual(others.length, this.#faults.length, `expected ${faults}`);
    this.#faults.splice(0, this.#faults.length, ...others);
  }

  async useKey(key: string): Promise<void> {
    await this.page.getByLabel('API key').fill(key);
    await this.page.getByRole('button', { name: 'Use key' }).click();
  }

  async close(): Promise<void> {
    await this.page.context().close();
    this.assertClean();
  }
}

/** A browser, and the service that it is on: one with the animals of the seed. */
export class Chromium {
  readonly live: Live;
  readonly #browser: Browser;
  readonly #shots: string;
  readonly #keep: boolean;

  private constructor(live: Live, browser: Browser, shots: string, keep: boolean) {
    this.live = live;
    this.#browser = browser;
    this.#shots = shots;
    this.#keep = keep;
  }

  /** Pictures go to the folder that SCREENSHOTS names, or else to one that goes when the browser does. */
  static async start(...options: string[]): Promise<Chromium> {
    const live = await startLive('--seed', SEED, ...options);
    try {
      const named = process.env.SCREENSHOTS;
      const shots = named ?? (await mkdtemp(join(tmpdir(), 'petstore-shots-')));
      await mkdir(shots, { recursive: true });
      const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS });
      return new Chromium(live, browser, shots, named !== undefined);
    } catch (error) {
      await live.stop();
      throw error;
    }
  }

  async open(
    viewport = WIDE,
    colorScheme: 'light' | 'dark' = 'light',
    prepare?: (page: Page) => Promise<void>,
  ): Promise<Watched> {
    const context = await this.#browser.newContext({ viewport, colorScheme, locale: 'en-GB', timezoneId: 'UTC' });
    return this.#watch(context, prepare);
  }

  async #watch(context: BrowserContext, prepare?: (page: Page) => Promise<void>): Promise<Watched> {
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MAX_MS);
    const faults: string[] = [];
    page.on('dialog', (dialog) => {
      faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('pageerror', (error) => faults.push(`thrown: ${error.message}`));
    page.on('console', (message) => {
      const bad = ['error', 'warning'].includes(message.type()) && !REFUSED.test(message.text());
      if (bad) faults.push(`console: ${message.text()}`);
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(`${this.live.origin}/`) && !request.url().startsWith('data:')) {
        faults.push(`asked elsewhere: ${request.url()}`);
      }
    });
    await prepare?.(page);
    await page.goto(`${this.live.origin}/`);
    return new Watched(page, faults);
  }

  async shoot(page: Page, name: string, fullPage = false): Promise<void> {
    const path = join(this.#shots, `console-${name}.png`);
    await page.screenshot({ path, fullPage });
    assert.ok((await stat(path)).size > 10_000, `${name} shows something`);
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await this.live.stop();
    if (!this.#keep) await rm(this.#shots, { recursive: true });
  }
}

/** What axe-core has against the page as it stands: in light all of it, in dark what differs, its contrasts. */
export async function assertAccessible(page: Page, where: string): Promise<void> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const options = colorScheme === 'light' ? {} : { runOnly: ['color-contrast'] };
    const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as AxeResults;
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
    assert.deepEqual(told, [], `${where}, ${colorScheme}`);
  }
}
