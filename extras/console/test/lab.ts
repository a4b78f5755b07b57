/** The lab on the console. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { without } from '../../program.ts';
import { LAB, setsClock, skip, stage, type Watched } from './browser.ts';

const live = stage(...LAB);

describe('the lab on the console', { skip: skip || without('lab') }, () => {
  let ui: Watched;
  const part = (name: string) => ui.page.getByRole('region', { name, exact: true });
  /** It looks every three seconds whether something has changed. */
  const refresh = () => ui.page.clock.fastForward(3_000);
  before(async () => {
    ui = await live.enter(setsClock);
    await ui.view('Lab');
  });
  after(() => ui?.close());

  it('lets time pass, one day at a double click, and forgets what it knew of the limits', async () => {
    await ui.see(part('Clock'), 'This key’s clock: not ahead');
    await ui.button('+ 24h', part('Clock')).dblclick({ delay: 20 });
    await ui.see(part('Clock'), 'A day has passed.');
    await ui.at('#limits').waitFor({ state: 'hidden' });
    await ui.see(part('Clock'), '24:00:00 ahead');
  });

  it('shows the record and the grade as they change, arms the drill, and starts again', async () => {
    const shown = await ui.exchanges().count();
    await live.send('POST /v1/pets', { name: 'Rex', categoryId: 1 });
    for (const _ of [1, 2, 3]) await live.send('GET /v1/pets/1');
    await refresh(); // while it is in view, without filling the list of requests
    await ui.see(part('Record'), /200\s+GET \/v1\/pets\/1[\s\S]*# \d+[\s\S]*201\s+POST \/v1\/pets/);
    assert.equal(await ui.exchanges().count(), shown);
    await ui.see(part('Grade'), /\d+ % of all weight was seen[\s\S]*warn\s+deprecated/);
    await ui.see(part('Grade').locator('.missing'), 'idempotency');
    const link = part('Grade').locator('.request-link').first();
    const id = await link.textContent();
    await link.click();
    assert.equal(await ui.page.evaluate('document.activeElement.id'), `request-${id}`);
    await ui.isAccessible('lab', '#lab');
    await ui.press('Arm the drill', part('Grade'));
    await ui.see(part('Grade').locator('.script'), 'GET /v1/pets');
    await ui.press('Reset this key', part('Grade'));
    await ui.see(part('Grade'), 'of this key start again');
    await ui.see(part('Record'), 'This key has sent nothing yet');
  });

  it('forgets the animals and orders that it showed when the shop is reset from the reference', async () => {
    await ui.view('Animals');
    await ui.press('Order Bello');
    await ui.see(ui.rowOf('Bello'), 'Order 1 was placed.');
    await ui.go('reference/resetLab');
    await ui.at('#operation-resetLab').getByLabel('Body, as JSON').fill(''); // the example resets the key alone
    await ui.press('Send', '#operation-resetLab');
    await ui.see('#operation-resetLab .reply', /HTTP\/1\.1 204 /);
    await live.send('POST /v1/store/orders', { petId: 5 }); // it is order 1 now
    await ui.view('Animals');
    await ui.see(ui.rowOf('Blub'), 'pending');
    await ui.see(ui.rowOf('Bello'), /^1\s+Bello\s+Dogs 1\s+available\s+Order\s*Edit$/);
  });

  it('can be used during a wait, ends it by letting time pass, and takes no more of a key that is refused', async () => {
    const { id, key } = await live.makeKey(2, 2);
    for (const _ of [1, 2]) await live.send('GET /v1/pets', undefined, key);
    await ui.view('Animals');
    await ui.useKey(key);
    await ui.see('#banner', '429');
    await ui.view('Lab');
    await ui.press('+ 24h', part('Clock'));
    await ui.at('#banner').waitFor({ state: 'hidden' });
    await live.operate('keys', 'revoke', id);
    await refresh();
    await ui.see('#key', /Refused[\s\S]*revoked/);
  });
});
