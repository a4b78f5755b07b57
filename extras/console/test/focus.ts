/** The console under a hurried hand and for who does not see it: one press does one thing, and the focus stays. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { PHONE, skip, stage, type Watched } from './browser.ts';

const live = stage();
const WIDE = { width: 1280, height: 860 };
/** 1280 by 1024 pixels at 400 %. */
const ENLARGED = { width: 320, height: 256 };
/** Repeats of a key that is held down for half a second. */
const HELD = 12;
/** Between two keys: the reply to a request comes among them. */
const TYPED_MS = 75;

describe('the console in a hurry', { skip }, () => {
  let ui: Watched;
  let page: Page;
  const sent = (method: string) => ui.exchanges().filter({ hasText: `${method} ` }).count(); // biome-ignore format: short
  const hold = async () => {
    for (let i = 0; i < HELD; i++) {
      await page.keyboard.down('Enter'); // all but the first are repeats
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    await page.keyboard.up('Enter');
  };
  before(async () => {
    ui = await live.enter();
    page = ui.page;
  });
  after(() => ui?.close());

  it('places one order while Enter is held on "Order", and goes on with nothing', async () => {
    await ui.button('Order Bello').focus();
    await hold();
    await ui.see(ui.rowOf('Bello'), 'pending');
    await ui.focusComesTo(/^Its order: Bello/);
    assert.equal(await sent('POST'), 1);
  });

  it('does nothing at the second click of two, wherever it lands', async () => {
    await ui.button('Order Mimi').dblclick();
    await ui.see(ui.rowOf('Mimi'), 'pending');
    assert.equal(await sent('POST'), 2);
    // The link has taken the place of the button by then, if the reply was fast.
    await ui
      .rowOf('Mimi')
      .getByRole('link', { name: /^Its order/ })
      .hover();
    await page.mouse.down({ clickCount: 2 });
    await page.mouse.up({ clickCount: 2 });
    assert.doesNotMatch(page.url(), /orders/);
    const form = await ui.drawer('Add an animal');
    await form.getByLabel('Category').fill('1');
    await form.getByLabel('Name').fill('Once');
    await ui.button('Add', form).dblclick();
    await ui.see(form.locator('.note'), 'Once was added');
    assert.equal(await sent('POST'), 3);
  });

  for (const [where, size, name, next] of [
    ['on a phone', PHONE, 'Berta', 'Waldi'],
    ['wide', WIDE, 'Pip', 'Berta'],
  ] as const) {
    it(`shows what came of it in sight, and moves no row: ${where}`, async () => {
      await page.setViewportSize(size);
      await page.reload();
      const row = ui.rowOf(name);
      await ui.see(row, /Small rodents|Farm animals/); // drawn again with the names
      await row.scrollIntoViewIfNeeded();
      const tops = async () => [(await row.boundingBox())?.y, (await ui.rowOf(next).boundingBox())?.y];
      const before = await tops();
      await ui.press(`Order ${name}`, row);
      const said = new RegExp(`^Order \\d+ was placed for ${name}, animal \\d\\.$`);
      await ui.see(ui.note(), said);
      assert.deepEqual(await tops(), before);
      const { x, y, width, height } = (await ui.note().boundingBox())!;
      assert.ok(x >= 0 && y >= 0 && x + width <= size.width && y + height <= size.height, 'in sight');
      assert.match((await ui.at('#live').textContent()) ?? '', said);
    });
  }

  it('is without fault to axe-core with a result in sight', () => ui.isAccessible('a result', '#animals .below'));

  it('removes messages with the page on which they were shown, and shows what came of an order on the next', async () => {
    await page.reload();
    const form = await ui.drawer('Add an animal');
    await ui.press('Add', form);
    await ui.see(form.locator('.field-error').nth(1), 'Enter the id of a category.');
    const release = await ui.hold('**/v1/store/orders');
    await ui.press('Order Shelldon');
    await ui.press('Next page', '#animals');
    await ui.see('#animals .position', 'Ids 21');
    await ui.see(form.locator('.field-error').nth(1), /^$/);
    release();
    await ui.see(ui.note(), /^Order \d+ was placed for Shelldon, animal 6\.$/);
    await ui.view('Animals');
    await ui.see(ui.rowOf('Shelldon'), 'pending');
    assert.equal(await ui.at('#animals .list .note').textContent(), '');
  });

  it('takes the focus from nobody who types while a request is under way, and no word that was typed', async () => {
    const form = page.getByRole('form', { name: 'Add an animal' });
    const ordered = await ui.hold('**/v1/store/orders');
    await ui.press('Order Flocke');
    await form.getByLabel('Name').focus();
    await page.keyboard.type('One who ');
    ordered();
    await page.keyboard.type('types on', { delay: TYPED_MS });
    await ui.see(ui.note(), 'was placed for Flocke');
    assert.equal(await form.getByLabel('Name').inputValue(), 'One who types on');
    const added = await ui.hold('**/v1/pets');
    await form.getByLabel('Category').fill('1');
    await form.getByLabel('Name').press('Enter');
    await form.getByLabel('Name').fill('The next one');
    added();
    await ui.see(form.locator('.note'), 'One who types on was added');
    assert.equal(await form.getByLabel('Name').inputValue(), 'The next one');
  });

  it('shows what has the focus, and needs no scrolling sideways, at 400 %', async () => {
    await page.setViewportSize(ENLARGED);
    for (const view of ['Animals', 'Orders', 'Try']) {
      await ui.view(view);
      await ui.see('main h2:visible', view);
      await page.evaluate('new Promise(requestAnimationFrame)');
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), ENLARGED.width, view);
    }
    const fulfill = { status: 503, headers: { 'Retry-After': '600' }, body: '{}' };
    await page.route('**/v1/**', (route) => route.fulfill(fulfill));
    await ui.view('Animals');
    await ui.see('#banner', 'The service is not available for a moment');
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
      if (!isSeen) hidden.push(await ui.focusedName());
    }
    assert.deepEqual(hidden, []);
    await page.unroute('**/v1/**');
  });
});
