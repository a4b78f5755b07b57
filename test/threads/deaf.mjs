/** A thread that does as it is asked, until it is to drain: then it ends without an answer. */
import { parentPort } from 'node:worker_threads';

parentPort.on('message', (messages) => {
  for (const { number, ask } of messages) {
    if (ask === 'drain') process.exit();
    parentPort.postMessage([{ number }]);
  }
});
