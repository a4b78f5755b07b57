/** What the console tells of each reply: the windows, the exchange itself; and what it does without one. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { Chromium, skip, type Watched } from './browser.ts';
import { button, drawer, exchanges, expectText, rowOf, rows, view } from './locators.ts';

const BIG = '9007199254740993';

/** Run in the page: what others may try there. Tells what came of it. */
const TRESPASS = `new Promise((resolve) => {
  const breaches = [];
  addEventListener('securitypolicyviolation', (event) => breaches.push(event.effectiveDirective));
  const script = document.createElement('script');
  try { script.textContent = 'window.ran = true'; } catch {}
  document.body.append(script);
  try { document.body.insertAdjacentHTML('beforeend', '<i></i>'); } catch {}
  const frame = document.createElement('iframe');
  frame.src = 'data:text/html,x';
  document.body.append(frame);
  setTimeout(() => resolve(['ran' in window ? 'ran' : 'stopped', ...breaches]), 100);
})`;

const shell = promisify(execFile);

describe('the console and its exchanges', { skip, concurrency: false }, () => {
  let browser: Chromium;
  let watched: Watched;
  let page: Page;
  before(async () => {
    browser = await Chromium.start();
    watched = await browser.open();
    page = watched.page;
    await watched.useKey(browser.live.key);
    await expectText(rowOf(page, 'Bello'), 'Dogs');
  });
  after(async () => {
    await watched?.close();
    await browser?.close();
  });

  it('shows both windows as the last reply tells them, counting down', async () => {
    await button(page.locator('#animals'), 'Reload').click();
    await expectText(exchanges(page), /GET \/v1\/pets\?limit=20[\s\S]*GET \/v1\/pets\?limit=20/);
    await exchanges(page).first().locator('summary').click();
    await expectText(exchanges(page).first(), 'ratelimit:');
    const told = /ratelimit: "minute";r=(\d+);t=\d+, "day";r=(\d+);/.exec(
      (await exchanges(page).first().textContent()) ?? '',
    );
    const meters = page.getByRole('meter');
    assert.deepEqual(await meters.evaluateAll((all) => all.map((one) => one.getAttribute('aria-valuenow'))), [
      told?.[1],
      told?.[2],
    ]);
    assert.deepEqual(await meters.evaluateAll((all) => all.map((one) => one.getAttribute('aria-valuemax'))), [
      '1000',
      '100000',
    ]);
    const foot = page.locator('[data-window=minute] .gauge-foot');
    const now = (await foot.textContent()) ?? '';
    assert.match(now, /^Full again in (0:\d\d|1:00)$/);
    await foot.filter({ hasNotText: now }).waitFor();
  });

  it('keeps the last 20 exchanges, each as a line for the shell that works, the key hidden', async () => {
    await view(page, 'Categories');
    await drawer(page, 'Name a category').click();
    const form = page.getByRole('form', { name: 'Name a category' });
    await form.getByLabel('Id').fill(BIG);
    await form.getByLabel('Name').fill("It's <b>");
    await button(form, 'Save').click();
    await expectText(exchanges(page).first(), `PUT /v1/categories/${BIG}`);
    await view(page, 'Animals');
    for (let i = 0; i < 19; i++) {
      await button(page.locator('#animals'), 'Reload').click();
      await page.locator('#animals [aria-busy]').waitFor({ state: 'detached' });
    }
    assert.equal(await exchanges(page).count(), 20);
    const text = await page.locator('body').textContent();
    assert.ok(!text?.includes(browser.live.key));
    const post = exchanges(page).filter({ hasText: 'PUT /v1/categories' }).first();
    await post.locator('summary').click();
    const line = await post.getByLabel('As a curl line').textContent();
    assert.match(
      line ?? '',
      /^curl -i -X PUT '.*' -H "Authorization: Bearer \$PETSTORE_KEY" .* --data-raw '\{"name":"It'\\''s <b>"\}'$/,
    );
    const env = { PATH: process.env.PATH, PETSTORE_KEY: browser.live.key };
    const { stdout } = await shell('sh', ['-c', `${line} -sS`], { env });
    assert.match(stdout, new RegExp(`^HTTP/1.1 200 OK[\\s\\S]*\\{"id":${BIG},"name":"It's <b>"\\}$`));
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await button(post, 'Copy').click();
    await expectText(button(post, 'Copied'), 'Copied');
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), line);
    await page.getByLabel('Show the key').check();
    await expectText(post.getByLabel('As a curl line'), browser.live.key);
    await page.getByLabel('Show the key').uncheck();
  });

  it('says when there is no reply, and tries again', async () => {
    await page.route('**/v1/pets?*', (route) => route.abort());
    const status = page.locator('#animals .toolbar').getByLabel('Status');
    await status.selectOption('sold');
    await expectText(page.locator('#animals .problem'), 'No reply from the service');
    assert.equal(await status.inputValue(), '', 'as the rows that are still shown');
    assert.ok((await rows(page).count()) > 0, 'what was shown stays');
    await page.unroute('**/v1/pets?*');
    await button(page.locator('#animals'), 'Try again').click();
    await expectText(rows(page).first(), 'sold');
    assert.equal(await status.inputValue(), 'sold');
    watched.forgive(/net::ERR_FAILED/);
  });

  it('lets nothing run that is not its own', async () => {
    const refused = (await page.evaluate(TRESPASS)) as string[];
    assert.equal(refused[0], 'stopped');
    assert.ok(refused.includes('require-trusted-types-for') && refused.includes('frame-src'), String(refused));
    watched.forgive(/Content Security Policy|TrustedHTML|TrustedScript/);
  });
});
