/** The console under a hurried hand, at a slow reply, and enlarged until little of it fits: it says what is so. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { skip, stage, type Watched } from './browser.ts';

/** 1280 by 1024 pixels at 400 %. */
const ENLARGED = { width: 320, height: 256 };
/** More than the page keeps. */
const MANY_REQUESTS = 21;
const live = stage('--lab', '--environment', 'staging');

async function inject(fault: object): Promise<void> {
  const headers = { Authorization: `Bearer ${live.key}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify(fault);
  const { status } = await fetch(`${live.origin}/lab/faults`, { method: 'POST', headers, body });
  assert.equal(status, 201);
}

describe('the console in a hurry', { skip }, () => {
  let ui: Watched;
  let page: Page;
  const told = () => ui.at('#live').textContent();
  const focused = (): Promise<string> =>
    page.evaluate('document.activeElement.ariaLabel || document.activeElement.textContent.trim()');
  before(async () => {
    ui = await live.enter();
    page = ui.page;
  });
  after(() => ui?.close());

  it('says that there is no key, where one was to be used, and keeps the one that it has', async () => {
    const other = await live.open();
    await other.press('Use key');
    await other.see('#key-refusal', 'Paste a key here first.');
    assert.equal(await other.at('#live').textContent(), 'Paste a key here first.');
    await other.useKey(live.key);
    await other.rowOf('Bello').waitFor();
    await other.useKey('  ');
    await other.see('#key-refusal', 'Paste a key here first.');
    assert.ok(await other.rowOf('Bello').isVisible());
    await other.close();
  });

  it('goes on saying what was added when Enter is pressed once more', async () => {
    const form = await ui.drawer('Add an animal');
    await form.getByLabel('Category').fill('1');
    for (const name of ['Hasty', 'Hastier']) {
      await form.getByLabel('Name').fill(name);
      await form.getByLabel('Name').press('Enter');
      await ui.see(form.locator('.note'), `${name} was added`);
      const before = await ui.exchanges().count();
      await form.getByLabel('Name').press('Enter');
      assert.match((await form.locator('.note').textContent())!, new RegExp(`^${name} was added`));
      assert.equal(await ui.exchanges().count(), before);
    }
    await form.getByLabel('Category').fill('2'); // who goes on, and forgets the name, is told
    await form.getByLabel('Category').press('Enter');
    await ui.see(form, 'must be 1–255 characters');
  });

  it('names a request whose reply is slow, until it comes', async () => {
    let answer = () => {};
    const isFree = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/v1/store/orders', async (route) => {
      await isFree;
      await route.continue();
    });
    await ui.press('Order Bello');
    await ui.see('#banner', /Waiting for a reply\.\s+POST \/v1\/store\/orders was sent, and has no reply yet\./);
    assert.match((await told())!, /^Waiting for a reply\. POST \/v1\/store\/orders/);
    await ui.isAccessible('a slow reply');
    answer();
    await ui.see(ui.rowOf('Bello'), 'was placed');
    assert.equal(await ui.at('#banner').isVisible(), false);
    await page.unroute('**/v1/store/orders');
  });

  it('says of a wait what the service says, where neither minute nor day is used up', async () => {
    await inject({ kind: 'status', status: 429, seconds: 2, operation: 'listPets' });
    await ui.press('Reload', '#animals');
    await ui.see('#banner', /The service asks to wait\s+the lab answers so.*\. Nothing is sent until then\./);
    assert.doesNotMatch((await ui.at('#banner').textContent())!, /used up/);
    await ui.at('#banner').waitFor({ state: 'hidden' });
  });

  it('knows an animal by its id however that is typed, repeats no code of an address, and names the view', async () => {
    for (const [hash, words, title] of [
      ['animals/007', /"id": 7,/, 'Animals 7'],
      ['animals/a%20b', /There is no animal a b: its id/, 'Animals a b'],
      ['animals/', /Status\s+Page size|All/, 'Animals'],
      ['orders', /Placed/, 'Orders'],
    ] as const) {
      await ui.go(hash);
      await ui.see('main > section:visible', words);
      assert.equal(await page.title(), `${title} · petstore console`);
    }
    await ui.view('Animals');
    await ui.rowOf('Bello').waitFor();
  });

  it('leaves the focus on the requests when the oldest is removed', async () => {
    for (let i = 0; i < MANY_REQUESTS; i++) {
      const done = page.waitForResponse('**/v1/pets?*');
      await ui.press('Reload', '#animals');
      await done;
    }
    await ui.see(ui.exchanges().first(), 'GET /v1/pets');
    await ui.exchanges().last().locator('summary').focus();
    await ui.button('Reload', '#animals').evaluate('(button) => button.click()'); // as a late reply would add one
    await ui.see('#exchange-list', /./);
    await page.waitForFunction(
      "document.activeElement === document.querySelector('#exchange-list > li:last-child summary')",
    );
  });

  it('says what became of the description, and keeps the focus, also where it is read again', async () => {
    const other = await live.open();
    const at = (): Promise<string> => other.page.evaluate('document.activeElement.textContent.trim()');
    await other.page.route('**/openapi.json', (route) => route.fulfill({ status: 500, body: '' }));
    await other.view('Reference');
    await other.see('#live', 'The description could not be read: the service answered 500.');
    await other.page.unroute('**/openapi.json');
    await other.button('Try again', '#reference').focus();
    await other.page.keyboard.press('Enter');
    await other.see('#description', /errors/i);
    await other.page.waitForFunction('document.activeElement !== document.body');
    assert.equal(await at(), 'Reference');
    await other.close();
  });

  it('shows what has the focus, and needs no scrolling sideways, at 400 %', async () => {
    await page.setViewportSize(ENLARGED);
    for (const view of ['Animals', 'Orders', 'Categories', 'Lab', 'Reference']) {
      await ui.view(view);
      await ui.see('main h2:visible', view);
      await page.evaluate('new Promise(requestAnimationFrame)');
      const width = await page.evaluate('document.documentElement.scrollWidth');
      assert.equal(width, ENLARGED.width, view);
    }
    await page.route('**/v1/**', (route) => route.abort());
    await ui.view('Animals');
    await ui.press('Reload', '#animals');
    await ui.see('#banner', 'does not answer');
    await page.evaluate('document.activeElement.blur(), scrollTo(0, 0)');
    const hidden: string[] = [];
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press('Tab');
      const isSeen = await page.evaluate(`(() => {
        const one = document.activeElement;
        const { x, y, width, height } = one.getBoundingClientRect();
        const top = document.elementFromPoint(x + Math.min(width, innerWidth) / 2, y + Math.min(height, 40) / 2);
        return top !== null && (one.contains(top) || top.contains(one));
      })()`);
      if (!isSeen) hidden.push(await focused());
    }
    assert.deepEqual(hidden, []);
    await page.unroute('**/v1/**');
    ui.forgive(/net::ERR_FAILED/);
  });
});
