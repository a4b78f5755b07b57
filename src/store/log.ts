import type { Disk } from './disk.ts';
import { StoreError } from './model.ts';
import { fileName, header } from './record.ts';

/** There is no room: on the disk, in the quota, below the largest file allowed. */
const NO_ROOM = ['ENOSPC', 'EDQUOT', 'EFBIG'];
const isNoRoom = (error: unknown) => NO_ROOM.includes((error as NodeJS.ErrnoException).code ?? '');

/**
 * The end of a log, where batches are appended.
 *
 * Failure policy:
 * - A write fails for want of room: nothing of the batch is acknowledged. The log is cut back to the end of the batch
 *   before, and that is made durable; then the batch is refused as `full`, and the next one tries again.
 * - The cut fails, a write fails otherwise, or fdatasync fails: what is on disk cannot be known. After a failed
 *   fdatasync the kernel may have dropped the pages and call the file clean, so that a second fdatasync succeeds
 *   without anything being kept: it is never tried again. The batch is refused as `unknown`, the log takes no more,
 *   and the process must end; recovery then reads what is there and writes it to a new generation.
 */
export class Log {
  readonly generation: number;
  readonly #disk: Disk;
  readonly #fd: number;
  #length: number;
  #failed = false;

  constructor(disk: Disk, fd: number, length: number, generation: number) {
    this.#disk = disk;
    this.#fd = fd;
    this.#length = length;
    this.generation = generation;
  }

  /**
   * A new file with its header, durable in its directory. Where there is no room for it, or no descriptor left to open
   * it or its directory, nothing is unknown: it is removed again, and may be tried again. All else is `unknown`.
   */
  static async create(disk: Disk, dir: string, store: string, generation: number): Promise<Log> {
    const path = `${dir}/${fileName('log', generation)}`;
    const fd = await disk.create(path);
    try {
      const bytes = Buffer.from(header('log', store, generation));
      await disk.write(fd, bytes, 0);
      await disk.sync(fd);
      await disk.syncDirectory(dir);
      return new Log(disk, fd, bytes.length, generation);
    } catch (error) {
      disk.close(fd);
      if (!isNoRoom(error) && (error as NodeJS.ErrnoException).syscall !== 'open') {
        throw new StoreError('unknown', `a new log could not be written: ${(error as Error).message}`);
      }
      await disk.unlink(path);
      throw error;
    }
  }

  /** Bytes that are durable. */
  get length(): number {
    return this.#length;
  }

  async append(bytes: Buffer): Promise<void> {
    if (this.#failed) throw new StoreError('unknown', 'the log failed before');
    try {
      await this.#disk.write(this.#fd, bytes, this.#length);
    } catch (error) {
      if (!isNoRoom(error)) this.#fail(error);
      await this.#disk.truncate(this.#fd, this.#length).catch((failure) => this.#fail(failure));
      await this.#sync();
      throw new StoreError('full', `there is no room for the log: ${(error as Error).message}`);
    }
    await this.#sync();
    this.#length += bytes.length;
  }

  close(): void {
    this.#disk.close(this.#fd);
  }

  #sync(): Promise<void> {
    return this.#disk.sync(this.#fd).catch((error) => this.#fail(error));
  }

  #fail(error: unknown): never {
    this.#failed = true;
    throw new StoreError('unknown', `the log could not be written: ${(error as Error).message}`);
  }
}
