/** What an operator is told when the database refuses, or has lost something beneath the replicas. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { toApiError } from '../../src/api-errors.ts';
import { MINUTE_MS } from '../../src/clock.ts';
import { Troubles } from '../../src/postgres/troubles.ts';
import { StoreError } from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';
import { program } from '../program.ts';
import { onDatabase } from './database.ts';
import { addPet, type Replica, RICH, replica, setKey, until } from './replicas.ts';

const REFUSALS = /requests are refused|writes are refused|has no row of limits/;
const refusalsOf = ({ warned }: Replica) => warned.filter((text) => REFUSALS.test(text));

it('a reason is told once a minute at most, the newest one, and only what was told is told to be over', () => {
  const clock = new SetClock();
  const lines: string[] = [];
  const tell = (text: string) => void lines.push(text);
  const troubles = new Troubles({ clock, log: { info: tell, warn: tell, error: tell } });
  const fail = (why: string) => troubles.failed('requests are refused', new StoreError('unavailable', why));
  troubles.worked('requests are refused');
  fail('first postgres://user:secret@host');
  fail('second');
  troubles.failed('writes are refused', new StoreError('unavailable', 'second'));
  troubles.damaged(new Error('second'));
  clock.advance(MINUTE_MS);
  troubles.failed('requests are refused', new TypeError('a bug, which is logged as one'));
  fail('newest');
  troubles.worked('writes are refused');
  for (let n = 0; n < 3; n++) {
    troubles.worked('requests are refused');
    fail('again');
  }
  assert.deepEqual(lines, [
    'requests are refused: first postgres://…',
    'requests are refused: newest',
    'requests are served again',
  ]);
});

onDatabase('a database that refuses', (database) => {
  it('a key without its row of limits: words for it, and service for all others', async (t) => {
    const url = database().url('rows');
    const engine = await replica(t, url);
    const [key, other] = [await setKey(engine.store, RICH), await setKey(engine.store, RICH)];
    await database().query(`DELETE FROM rows.limits WHERE slot = ${key.slot}`);
    const why = (asked: Promise<unknown>) =>
      asked.then(
        () => assert.fail('it was served'),
        (error: Error) => error,
      );
    const both = [why(engine.limiter.take(key)), engine.limiter.take(other)] as const;
    const [refusal, { verdict }] = await Promise.all(both);
    assert.deepEqual([toApiError(refusal)?.code, verdict], ['unavailable', 'admitted']);
    const damage = /^damaged data in the database: key k1 has no row of limits\./;
    assert.match(refusal.message, damage);
    await why(engine.limiter.take(key));
    assert.deepEqual([refusalsOf(engine).length, damage.test(refusalsOf(engine)[0])], [1, true]);
    for (const words of [['keys', 'list'], ['keys', 'show', 'k1'], ['keys', 'lift', 'k1'], ['verify']]) {
      const { exit, stderr } = await program([...words, '--store', url]);
      assert.deepEqual([exit, /^damaged data in the database: key k1 .*row of limits/.test(stderr)], [3, true], stderr);
    }
    await Promise.all([why(engine.limiter.take(key)), engine.limiter.fresh()]); // strangers are served beside it
    await database().query('DELETE FROM rows.limits');
    assert.match((await why(engine.limiter.fresh())).message, /slot -1 has no row of limits/);
    await until(() => !engine.ready());
    const listed = await program(['keys', 'list', '--store', url]);
    assert.deepEqual([listed.exit, /^damaged data/.test(listed.stderr)], [3, true], listed.stderr);
  });

  const REFUSED: [what: string, begin: string, end: string, why: RegExp][] = [
    [
      'is read-only',
      "ALTER SYSTEM SET default_transaction_read_only = 'on'; SELECT pg_reload_conf()",
      "SET default_transaction_read_only = 'off'; ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf()",
      /^requests are refused: .*read-only/,
    ],
    [
      'has lost the schema',
      'ALTER SCHEMA told RENAME TO hidden',
      'ALTER SCHEMA hidden RENAME TO told',
      /^requests are refused: .*does not exist/,
    ],
  ];
  for (const [what, begin, end, why] of REFUSED) {
    it(`a database that ${what}: the reason and the end of it are told`, { timeout: 60_000 }, async (t) => {
      const engine = await replica(t, database().url('told'));
      const both = async (statements: string) => {
        for (const one of statements.split('; ')) await client.query(one);
      };
      const client = await database().client();
      t.after(() => client.end());
      await both(begin);
      await until(() => t.signal.aborted || refusalsOf(engine).length > 0);
      await both(end);
      await until(() => t.signal.aborted || engine.informed.length > 0);
      assert.deepEqual([refusalsOf(engine).length, why.test(refusalsOf(engine)[0])], [1, true], engine.warned.join());
      assert.deepEqual(engine.informed, ['requests are served again']);
    });
  }

  it('a head of the log that somebody else has locked: the same of writes', async (t) => {
    const engine = await replica(t, database().url('locked'));
    const client = await database().client();
    t.after(() => client.end());
    await client.query('BEGIN; SELECT FROM locked.head FOR UPDATE');
    await assert.rejects(addPet(engine.store, 'never'), { failure: 'unavailable' });
    await client.query('ROLLBACK');
    assert.equal(await addPet(engine.store, 'after'), 1);
    assert.match(
      refusalsOf(engine).join(),
      /^writes are refused: somebody else holds a lock that is needed \([^,]*\)$/,
    );
    assert.deepEqual(engine.informed, ['writes are kept again']);
  });
});
