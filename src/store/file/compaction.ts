/** The file that takes the place of another: written under a temporary name, and then given its name. */
import type { Snapshot } from '../tables.ts';
import type { Directory } from './directory.ts';
import { isMissing, piecesOf } from './disk.ts';
import { type Header, snapshotLines } from './log-format.ts';

/** Synced in pieces: the batches that are written meanwhile wait for the same disk. */
const SYNC_EVERY_BYTES = 2 * 1024 * 1024;

export class NextFile {
  readonly fd: number;
  length = 0;
  readonly #directory: Directory;
  readonly #header: Header;
  readonly #path: string;

  /**
   * Writes the snapshot line by line, so that requests are served between two of them. The signal ends it. `sync` makes
   * durable what is written so far, and says what a failure means.
   */
  static async write(
    directory: Directory,
    header: Header,
    snapshot: Snapshot,
    signal?: AbortSignal,
    sync = (next: NextFile): Promise<void> => next.sync(),
  ): Promise<NextFile> {
    const path = `${directory.pathOf(header.file)}.tmp`;
    await directory.disk.unlink(path).catch((error) => {
      if (!isMissing(error)) throw error;
    });
    const next = new NextFile(directory, header, path, await directory.disk.create(path));
    try {
      let synced = 0;
      for (const line of snapshotLines(header, snapshot)) {
        signal?.throwIfAborted();
        await next.#append(line);
        if (next.length - synced < SYNC_EVERY_BYTES) continue;
        await sync(next);
        synced = next.length;
      }
      return next;
    } catch (error) {
      await next.discard();
      throw error;
    }
  }

  private constructor(directory: Directory, header: Header, path: string, fd: number) {
    [this.#directory, this.#header, this.#path, this.fd] = [directory, header, path, fd];
  }

  /** Copies batches from the file before. Returns where they end. */
  async copy(fd: number, from: number, to: number): Promise<number> {
    for await (const piece of piecesOf(this.#directory.disk, fd, from, to)) await this.#append(piece);
    return to;
  }

  sync(): Promise<void> {
    return this.#directory.disk.sync(this.fd);
  }

  /** Makes it durable, and then the current file. If this fails, either file may come back after a crash. */
  async finish(): Promise<void> {
    await this.#directory.disk.rename(this.#path, this.#directory.pathOf(this.#header.file));
    await this.#directory.setCurrent(this.#header);
  }

  async discard(): Promise<void> {
    this.#directory.disk.close(this.fd);
    await this.#directory.disk.unlink(this.#path).catch(() => {});
  }

  async #append(bytes: Uint8Array): Promise<void> {
    await this.#directory.disk.write(this.fd, bytes, this.length);
    this.length += bytes.length;
  }
}
