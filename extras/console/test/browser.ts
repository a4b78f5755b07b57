/** The program itself, serving from a directory of its own, and a real browser on its page. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core';
import { program, serveProgram } from '../../program.ts';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const ARGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-sync',
  '--disable-component-update',
  // Chromium's own pages beside each window take a tenth of all the time.
  '--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,PaintHolding',
];
const SEED = new URL('../../../data/seed.json', import.meta.url).pathname;
/** Long enough for a machine that is busy with other things, and what is missing is told within half a minute. */
const WAIT_MAX_MS = 25_000;

export const skip = CHROMIUM === undefined && 'no chromium is installed here (/usr/bin/chromium)';

const WIDE = { width: 1280, height: 860 };
export const PHONE = { width: 390, height: 844 };

/** What chromium says of every reply from 400 on; the page is meant to get some. */
const REFUSED = /^Failed to load resource: the server responded with a status of [45]\d\d/;

type Options = BrowserContextOptions & { prepare?: (page: Page) => Promise<void> };

/** For a test that sets the page's clock, which goes on by itself too; the service's is not set. */
export const setsClock = { prepare: (page: Page) => page.clock.install() };

/** One for all stages. */
let launched: Promise<Browser> | undefined;

/** A server on the seed, and a browser: both are there while the tests of this file run. */
export function stage(...options: string[]) {
  const live = { origin: '', key: '', operate, send, makeKey, open, enter };
  const ends: (() => Promise<unknown>)[] = [];
  let data: string;
  let browser: Browser;

  before(async () => {
    if (skip) return;
    data = await mkdtemp(join(tmpdir(), 'petstore-web-'));
    ends.push(() => rm(data, { recursive: true }));
    const words = ['--data', data, '--seed', SEED, '--first-key', 'business']; // a key that no test here can use up
    const { url, key, stop } = await serveProgram([...words, ...options]);
    ends.unshift(stop);
    Object.assign(live, { origin: new URL(url).origin, key });
    launched ??= chromium.launch({ executablePath: CHROMIUM, args: ARGS, timeout: WAIT_MAX_MS });
    browser = await launched;
    ends.unshift(() => browser.close());
  });
  after(async () => {
    for (const end of ends) await end();
  });

  /** Runs an operator's command on this server; what it printed. */
  async function operate(...command: string[]): Promise<string> {
    const { exit, stdout, stderr } = await program([...command, '--data', data]);
    assert.equal(exit, 0, `petstore ${command.join(' ')}: ${stderr}`);
    return stdout.trim();
  }
  /** A request of the test itself, with the first key or another one. */
  async function send<T = unknown>(what: string, body?: object, key = live.key): Promise<T> {
    const [method, path] = what.split(' ');
    const headers = { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) };
    const reply = await fetch(live.origin + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await reply.text();
    return text && JSON.parse(text);
  }
  /** An enterprise key. */
  async function makeKey(perMinute: number, perDay: number): Promise<{ id: string; key: string }> {
    const limits = ['--per-minute', String(perMinute), '--per-day', String(perDay)];
    return JSON.parse(await operate('keys', 'create', '--plan', 'enterprise', ...limits, '--json'));
  }
  async function open({ prepare, ...options }: Options = {}): Promise<Watched> {
    const context = await browser.newContext({ viewport: WIDE, ...options, locale: 'en-GB', timezoneId: 'UTC' });
    const watched = new Watched(await context.newPage(), live.origin);
    await prepare?.(watched.page);
    await watched.page.goto(`${live.origin}/`);
    return watched;
  }
  /** Opens the console and uses the first key in it: the animals are there. */
  async function enter(options?: Options): Promise<Watched> {
    const watched = await open(options);
    await watched.useKey(live.key);
    await watched.rowOf('Bello').waitFor();
    return watched;
  }
  return live;
}

type Where = string | Locator;

/** The page in a browser: what it must not do is watched all the time. */
export class Watched {
  readonly page: Page;
  /** Dialogs, errors on the console or thrown, breaches of the policy, requests to other servers. */
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
      if (!isOwn) this.faults.push(`request elsewhere: ${request.url()}`);
    });
  }

  /** The test itself caused these, and at least one of them. */
  forgive(faults: RegExp): void {
    const others = this.faults.filter((fault) => !faults.test(fault));
    assert.notEqual(others.length, this.faults.length, `expected ${faults}`);
    this.faults.splice(0, this.faults.length, ...others);
  }

  async close(): Promise<void> {
    await this.page.context().close();
    assert.deepEqual(this.faults, []);
  }

  at = (where: Where): Locator => (typeof where === 'string' ? this.page.locator(where) : where);
  button = (name: string | RegExp, where: Where = 'body') => this.at(where).getByRole('button', { name });
  press = (name: string | RegExp, where?: Where): Promise<void> => this.button(name, where).click();
  rows = (): Locator => this.at('.list tbody tr:visible');
  rowOf = (name: string): Locator => this.rows().filter({ hasText: name });
  exchanges = (): Locator => this.at('#exchange-list > li');
  /** What came of an action in a list. */
  note = (): Locator => this.at('.list .note:visible');
  view = (name: string): Promise<void> => this.page.locator('nav').getByRole('link', { name }).click();
  focusedName = () =>
    this.page.evaluate<string>('document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()');
  go = (hash: string): Promise<unknown> => this.page.evaluate(`location.hash = '#${hash}'`);

  /** Opens the form behind its title. */
  async drawer(title: string): Promise<Locator> {
    await this.at('.drawer summary').filter({ hasText: title }).click();
    return this.page.getByRole('form', { name: title });
  }

  async send(form: Where, fields: Record<string, string>, name: string): Promise<void> {
    for (const [label, text] of Object.entries(fields)) await this.at(form).getByLabel(label).fill(text);
    await this.press(name, form);
  }

  /** Fills in and sends a request on the view for any. */
  async try(method: string, path: string, body?: string): Promise<Locator> {
    await this.view('Try');
    const form = this.page.getByRole('form', { name: 'Try a request' });
    await form.getByLabel('Method').selectOption(method);
    await form.getByLabel('Path').fill(path);
    if (body !== undefined) await form.getByLabel('Body').fill(body);
    await this.press('Send', form);
    return this.at('#try .reply');
  }

  async useKey(key: string): Promise<void> {
    if (!(await this.page.getByLabel('API key').isVisible())) await this.at('#key summary').click();
    await this.send('body', { 'API key': key }, 'Use key');
  }

  /** Holds requests to this address up until what this returns is called. */
  async hold(url: string): Promise<() => void> {
    let release = () => {};
    const isOver = new Promise<void>((resolve) => (release = resolve));
    await this.page.route(url, (route) => isOver.then(() => route.continue()));
    return release;
  }

  /** Waits until the focus is there. */
  async focusComesTo(name: string | RegExp): Promise<void> {
    const end = Date.now() + WAIT_MAX_MS;
    const isThere = (text: string) => (typeof name === 'string' ? text === name : name.test(text));
    while (!isThere(await this.focusedName()) && Date.now() < end)
      await new Promise((resolve) => setTimeout(resolve, 25));
    const text = await this.focusedName();
    assert.ok(isThere(text), `the focus is on "${text.slice(0, 60)}", not on ${name}`);
  }

  /** Playwright's own assertions are not in playwright-core: this waits for a text, and says what there was instead. */
  async see(where: Where, wanted: string | RegExp): Promise<void> {
    const end = Date.now() + WAIT_MAX_MS;
    let text = '';
    do {
      text = (await this.at(where).allInnerTexts()).join('\n');
      if (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)) return;
      await new Promise((resolve) => setTimeout(resolve, 25));
    } while (Date.now() < end);
    assert.fail(`waited for ${wanted}, there is: ${text}`);
  }

  /** A picture for docs/, where SCREENSHOTS names a folder. */
  async shoot(name: string): Promise<void> {
    const folder = process.env.SCREENSHOTS;
    if (folder !== undefined) await this.page.screenshot({ path: join(folder, `console-${name}.png`) });
  }

  /** Wide in light and on a phone in dark. */
  async #inBoth(check: (colorScheme: 'light' | 'dark', width: number) => Promise<void>): Promise<void> {
    for (const [colorScheme, viewport] of [['light', WIDE] as const, ['dark', PHONE] as const]) {
      await this.page.setViewportSize(viewport);
      await this.page.emulateMedia({ colorScheme });
      await check(colorScheme, viewport.width);
    }
    await this.page.setViewportSize(WIDE);
    await this.page.emulateMedia({ colorScheme: 'light' });
  }

  /** Nothing on the page is wider than it. */
  fits(where: string): Promise<void> {
    return this.#inBoth(async (_, width) => {
      const isWide = '(one) => one.getBoundingClientRect().right > innerWidth + 1';
      const wide = await this.page.evaluate(`document.documentElement.scrollWidth <= innerWidth ? [] :
        [...document.body.querySelectorAll('*')].filter(${isWide}).map((one) => one.outerHTML.slice(0, 200))`);
      assert.deepEqual(wide, [], `${where}, wider than ${width} px`);
    });
  }

  /** What axe-core has against the page, or against a part of it, once no reply is awaited; and it fits. */
  async isAccessible(where: string, part = 'html'): Promise<void> {
    await this.at('[aria-busy=true]').first().waitFor({ state: 'detached' });
    await this.isAccessibleNow(where, part);
  }

  /** The same of the page as it stands, also while a reply is awaited. */
  async isAccessibleNow(where: string, part = 'html'): Promise<void> {
    const { page } = this;
    if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source);
    await this.#inBoth(async (colorScheme) => {
      await page.evaluate('Promise.all(document.getAnimations().map(({ finished }) => finished))');
      // Only what is wrong is brought out of the page: all that axe finds takes longer than to find it.
      const violations =
        await page.evaluate(`axe.run('${part}', { resultTypes: ['violations'], selectors: false }).then(
        ({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 200))))`);
      assert.deepEqual(violations, [], `${where}, ${colorScheme}`);
    });
    await this.fits(where);
  }
}
