/** The order in which a replica's statements reach the database, which a real connection leaves to chance. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { PostgresJournal } from '../../src/postgres/journal.ts';
import type { Link, Row, Statement } from '../../src/postgres/link.ts';
import { BEGIN, COMMIT } from '../../src/postgres/sql.ts';
import type { Change } from '../../src/store/model.ts';
import { State } from '../../src/store/state.ts';

const category = (id: bigint): Change[] => [{ op: 'setCategory', category: { id, name: 'dogs' } }];

/** Stands in the place of the link and of the database: the log, its head, and whether a transaction is open. */
class OneConnection {
  readonly log: Row[] = [{ batch: 0, id: 'first', body: '', parts: 0 }];
  /** The batches that were told as kept while their transaction was open. */
  readonly toldEarly: number[] = [];
  /** The first lock is asked for before, and sent after: so it is where its connection was lost meanwhile. */
  letLockPass = () => {};
  #mayPass: Promise<void> | undefined = new Promise((resolve) => void (this.letLockPass = resolve));
  #isOpen = false;

  readonly ask = async (statements: Statement[]) => {
    if (statements[0].text === BEGIN) {
      const mayPass = this.#mayPass;
      this.#mayPass = undefined;
      await mayPass;
    }
    const results = statements.map((statement) => this.#run(statement));
    if (this.#isOpen && results[0].rowCount === 1) this.toldEarly.push(this.log.length - 1);
    await turn();
    return results;
  };

  readonly rows = async ({ name, values = [] }: Statement) =>
    name === 'take' ? this.log.slice(values[2]) : [this.log[0]];
  readonly transaction = async (_: string, work: (held: unknown) => unknown) => work(this);

  /** Another replica is first. */
  overtake(): void {
    this.log.push({ batch: this.log.length, id: `other ${this.log.length}`, body: '' });
  }

  #run({ name, text, values = [] }: Statement) {
    if (text === BEGIN) this.#isOpen = true;
    if (text === COMMIT) this.#isOpen = false;
    if (name !== 'append') return { rowCount: 0, rows: name === 'take' ? this.log.slice(values[2]) : [] };
    const [batch, id, body, before] = values;
    const isNext = this.log.at(-1)?.id === before;
    if (isNext) this.log.push({ batch, id, body });
    return { rowCount: Number(isNext), rows: [] };
  }
}

it('no batch is told as kept inside the transaction of a lock that an earlier batch asked for', async () => {
  const database = new OneConnection();
  const journal = new PostgresJournal(database as unknown as Link, {});
  await journal.replay(new State());
  journal.follow(() => {});
  for (let conflict = 0; conflict < 3; conflict++) {
    database.overtake();
    assert.deepEqual(await journal.append(category(1n)), []);
  }
  const locking = journal.append(category(1n));
  database.overtake();
  const from = journal.at;
  await journal.arrived(database.log.slice(from.batch), from); // by another connection
  assert.deepEqual(await locking, []);

  const second = journal.append(category(1n));
  for (let turns = 0; turns < 10; turns++) await turn();
  database.letLockPass();
  assert.equal(await second, undefined);
  assert.equal(await journal.append(category(2n)), undefined);
  assert.deepEqual([database.log.length, database.toldEarly], [7, []]);
});
