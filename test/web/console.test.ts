/** Everything on the console, done in a real browser on a live server. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { Chromium, skip, type Watched } from './browser.ts';
import { button, drawer, exchanges, expectText, rowOf, rows, view } from './locators.ts';

const SCRIPT = '<img src=x onerror=alert(1)>';
const BIG = '9007199254740993';

let browser: Chromium;

async function ids(page: Page): Promise<number[]> {
  return (await rows(page).locator('.col-id').allInnerTexts()).map(Number);
}

function api(path: string, init: RequestInit = {}): Promise<Response> {
  const { origin, key } = browser.live;
  return fetch(`${origin}${path}`, { ...init, headers: { Authorization: `Bearer ${key}`, ...init.headers } });
}

async function addPet(name: string, more = {}): Promise<number> {
  const body = JSON.stringify({ name, categoryId: 1, ...more });
  const reply = await api('/v1/pets', { method: 'POST', body, headers: { 'Content-Type': 'application/json' } });
  return ((await reply.json()) as { id: number }).id;
}

describe('the console', { skip, concurrency: false }, () => {
  before(async () => {
    browser = await Chromium.start();
  });
  after(() => browser?.close());

  describe('on a wide screen', () => {
    let watched: Watched;
    let page: Page;
    before(async () => {
      watched = await browser.open();
      page = watched.page;
    });
    after(() => watched?.close());

    it('tells at first how to get a key, and needs none for the reference', async () => {
      await expectText(page.locator('#welcome'), 'petstore keys create --plan free');
      assert.equal(await exchanges(page).count(), 0);
      await browser.shoot(page, 'welcome');
      await view(page, 'Reference');
      await expectText(page.locator('#reference'), 'outcome_unknown');
      assert.equal(await page.locator('.operation').count(), 8);
      await page.locator('.operation summary', { hasText: 'Add an animal' }).click();
      await expectText(page.locator('.operation[open]'), /categoryId required\s*int64/);
      await expectText(page.locator('.operation', { hasText: '/pets/{petId}' }), 'deprecated, ends 2030-12-05');
      await expectText(page.locator('.operation', { hasText: 'Place an order' }), 'experimental');
      await page.evaluate('document.querySelector(".operation[open]").scrollIntoView()');
      await browser.shoot(page, 'reference');
      await view(page, 'Animals');
    });

    it('says that a key is refused, and why', async () => {
      await watched.useKey(`${browser.live.key.slice(0, -1)}${browser.live.key.endsWith('a') ? 'b' : 'a'}`);
      await expectText(page.locator('#key-standing'), 'Refused. The API key is mistyped');
      await expectText(page.locator('#animals'), 'The API key is mistyped');
      await expectText(page.locator('#gauges'), 'your address');
    });

    it('takes a key, keeps it for this tab alone, and forgets it', async () => {
      await watched.useKey(browser.live.key);
      await expectText(page.locator('#key-standing'), 'Accepted');
      await rowOf(page, 'Bello').waitFor();
      const kept = () => page.evaluate('[Object.values(sessionStorage), Object.values(localStorage), document.cookie]');
      assert.deepEqual(await kept(), [[browser.live.key], [], '']);
      await page.reload();
      await expectText(page.locator('#key-standing'), 'Accepted');
      const field = page.getByLabel('API key');
      await button(page, 'Show').click();
      assert.deepEqual([await field.getAttribute('type'), await field.inputValue()], ['text', browser.live.key]);
      await button(page, 'Show').click();
      assert.equal(await field.getAttribute('type'), 'password');
      await button(page, 'Forget').click();
      await page.locator('#welcome').waitFor();
      assert.deepEqual(await kept(), [[], [], '']);
      assert.equal(await exchanges(page).count(), 0);
      await watched.useKey(browser.live.key);
    });

    it('shows animals with the names of their categories', async () => {
      await expectText(rowOf(page, 'Bello'), /^1\s+Bello\s+Dogs 1\s+available\s+Order$/);
      assert.deepEqual(await page.locator('thead:visible th').allInnerTexts(), [
        'Id',
        'Name',
        'Category',
        'Status',
        'Actions',
      ]);
    });

    it('filters, sizes and turns pages', async () => {
      const animals = page.locator('#animals');
      await animals.getByLabel('Page size').selectOption('5');
      await expectText(animals.locator('.position'), 'Ids 1 to 5 · more follow');
      assert.deepEqual(await ids(page), [1, 2, 3, 4, 5]);
      await button(animals, 'Next page').click();
      await expectText(animals.locator('.position'), 'Ids 6 to 10 ');
      assert.deepEqual(await ids(page), [6, 7, 8, 9, 10]);
      await button(animals, 'First page').click();
      await expectText(animals.locator('.position'), 'Ids 1 to 5 · more follow');
      assert.deepEqual(await ids(page), [1, 2, 3, 4, 5]);
      await animals.locator('.toolbar').getByLabel('Status').selectOption('sold');
      await expectText(rows(page).first(), 'sold');
      assert.deepEqual([...new Set(await rows(page).locator('.col-status').allInnerTexts())], ['sold']);
      await animals.locator('.toolbar').getByLabel('Status').selectOption('');
      await animals.getByLabel('Page size').selectOption('100');
      await rowOf(page, 'Bello').waitFor();
    });

    it('shows the messages of the service at the fields', async () => {
      await drawer(page, 'Add an animal').click();
      const form = page.getByRole('form', { name: 'Add an animal' });
      await form.getByLabel('Category').fill('abc');
      await button(form, 'Add').click();
      const messages = form.locator('.field-error');
      await expectText(messages.nth(0), 'must be a string of 1 to 255 characters');
      await expectText(messages.nth(1), /must be an integer from -9223372036854775808 .* not a string/);
      assert.equal(await form.getByLabel('Name').getAttribute('aria-invalid'), 'true');
      assert.equal(await form.getByLabel('Status').getAttribute('aria-invalid'), 'false');
      assert.equal(await form.getByLabel('Name').and(page.locator(':focus')).count(), 1);
      await browser.shoot(page, 'messages');
    });

    it('adds an animal: its name is text, its category exact', async () => {
      const form = page.getByRole('form', { name: 'Add an animal' });
      await form.getByLabel('Name').fill(SCRIPT);
      await form.getByLabel('Category').fill(BIG);
      await button(form, 'Add').click();
      await expectText(rowOf(page, SCRIPT), new RegExp(`<img src=x onerror=alert\\(1\\)>\\s+${BIG}\\s+available`));
      assert.equal(await page.locator('img').count(), 0);
      const stored = await (await api('/v1/pets?limit=100')).text();
      assert.match(stored, new RegExp(`"categoryId":${BIG},`));
      await exchanges(page).first().locator('summary').click();
      await expectText(exchanges(page).first(), `"categoryId": ${BIG}`);
      watched.assertClean();
    });

    it('leads to an animal that was added beyond the page', async () => {
      const animals = page.locator('#animals');
      await animals.getByLabel('Page size').selectOption('5');
      await expectText(animals.locator('.position'), 'Ids 1 to 5 ');
      const form = page.getByRole('form', { name: 'Add an animal' });
      await form.getByLabel('Name').fill('Latest');
      await button(form, 'Add').click();
      await button(animals, 'Show it').click();
      await expectText(rowOf(page, 'Latest'), 'available');
      await animals.getByLabel('Page size').selectOption('100');
      await rowOf(page, 'Bello').waitFor();
    });

    it('places, delivers and cancels orders from the rows', async () => {
      await button(rowOf(page, 'Bello'), 'Order Bello').click();
      await expectText(rowOf(page, 'Bello'), 'pending');
      await button(rowOf(page, 'Bello'), /^Deliver order/).click();
      await expectText(rowOf(page, 'Bello'), 'sold');
      await button(rowOf(page, 'Mimi'), 'Order Mimi').click();
      await button(rowOf(page, 'Mimi'), /^Cancel order/).click();
      await expectText(rowOf(page, 'Mimi'), 'available');
      const { 0: bello, 1: mimi } = (await (await api('/v1/pets?limit=2')).json()) as { status: string }[];
      assert.deepEqual([bello.status, mimi.status], ['sold', 'available']);
    });

    it('finds the order of an animal that was ordered elsewhere', async () => {
      const petId = await addPet('Elsewhere');
      const init = { method: 'POST', body: JSON.stringify({ petId }), headers: { 'Content-Type': 'application/json' } };
      assert.equal((await api('/v1/store/orders', init)).status, 201);
      await button(page.locator('#animals'), 'Reload').click();
      await button(rowOf(page, 'Elsewhere'), /^Find its order/).click();
      await button(rowOf(page, 'Elsewhere'), /^Deliver order/).click();
      await expectText(rowOf(page, 'Elsewhere'), 'sold');
      await button(rowOf(page, 'Flocke'), /^Find its order/).click();
      await expectText(rowOf(page, 'Flocke'), 'no open order');
    });

    it('lists orders and changes them there', async () => {
      await view(page, 'Orders');
      await expectText(rows(page).nth(0), /Bello 1[\s\S]*delivered/);
      await expectText(rows(page).nth(1), /Mimi 2[\s\S]*cancelled/);
      await drawer(page, 'Place an order').click();
      const form = page.getByRole('form', { name: 'Place an order' });
      await form.getByLabel('Animal').fill('1');
      await button(form, 'Place').click();
      await expectText(page.locator('#orders .drawer .form-note'), 'animal 1 is sold');
      await form.getByLabel('Animal').fill('4711');
      await button(form, 'Place').click();
      await expectText(form.locator('.field-error'), 'there is no animal 4711');
      await form.getByLabel('Animal').fill('2');
      await button(form, 'Place').click();
      await expectText(rows(page).last(), /Mimi 2[\s\S]*placed/);
      await browser.shoot(page, 'orders');
      await button(rows(page).last(), /^Deliver order/).click();
      await expectText(rows(page).last(), 'delivered');
      await view(page, 'Animals');
      await expectText(rowOf(page, 'Mimi'), 'sold');
    });

    it('names a category beyond 2^53', async () => {
      await view(page, 'Categories');
      await drawer(page, 'Name a category').click();
      const form = page.getByRole('form', { name: 'Name a category' });
      await form.getByLabel('Id').fill(BIG);
      await form.getByLabel('Name').fill('Giants');
      await button(form, 'Save').click();
      await expectText(rowOf(page, 'Giants'), BIG);
      await button(rowOf(page, 'Giants'), 'Rename Giants').click();
      await form.getByLabel('Name').fill('Titans');
      await button(form, 'Save').click();
      await expectText(rowOf(page, 'Titans'), BIG);
      await view(page, 'Animals');
      await expectText(rowOf(page, SCRIPT), `Titans ${BIG}`);
    });
  });
});
