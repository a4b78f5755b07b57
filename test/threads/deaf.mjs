/**
 * A thread that does as it is asked, with two exceptions: when it is to drain, it ends without an answer; and asked for
 * its counts again, it answers only when it has heard another question. It counts how often it was asked for them.
 */
import { parentPort } from 'node:worker_threads';

let open = 0;
let late;
parentPort.on('message', (messages) => {
  for (const { number, ask } of messages) {
    if (ask === 'drain') process.exit();
    const answer = () => parentPort.postMessage([{ number, value: { open, loopDelay: 0 } }]);
    if (ask === 'figures' && ++open === 2) late = answer;
    else {
      late?.();
      late = undefined;
      answer();
    }
  }
});
