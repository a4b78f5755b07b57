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
