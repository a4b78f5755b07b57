/** The service that is flooded: prints its port and a key, and ends at SIGTERM. */
import { startService } from '../service.ts';

const DRAIN_MS = 8_000;

const service = await startService();
const { text } = await service.makeKey();
console.log(JSON.stringify({ port: service.port, key: text }));
process.on('SIGTERM', async () => {
  await service.service.drain(DRAIN_MS);
  process.exit();
});
