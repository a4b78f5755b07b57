/** Runs a command to its end and gives what it printed. */
import { execFile } from 'node:child_process';

const ERROR_TEXT_MAX_CHARACTERS = 4_000;
const OUTPUT_MAX_BYTES = 64 * 1024 * 1024;

export function run(command: string[], options: { timeoutMs: number }): Promise<string> {
  const [program, ...args] = command;
  return new Promise((resolve, reject) => {
    const settings = { timeout: options.timeoutMs, maxBuffer: OUTPUT_MAX_BYTES };
    execFile(program, args, settings, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      reject(
        new Error(
          `${command.join(' ').slice(0, 300)}: ${stderr.trim().slice(-ERROR_TEXT_MAX_CHARACTERS) || error.message}`,
        ),
      );
    });
  });
}
