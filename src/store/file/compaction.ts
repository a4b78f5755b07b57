/** The file that takes the place of another: written under a temporary name, and then given its name. */
import type { Snapshot } from '../tables.ts';
import type { Directory } from './directory.ts';
import { isNoRoom, piecesOf } from './disk.ts';
import { type Header, snapshotLines } from './log-format.ts';

/** Synced in pieces: the batches that are written meanwhile wait for the same disk. */
const SYNC_EVERY_BYTES = 2 * 1024 * 1024;

/** Called where what is on the disk is unknown. Returns the error to throw. */
type Fail = (error: unknown) => unknown;

export class NextFile {
  readonly fd: number;
  length = 0;
  readonly #directory: Directory;
  readonly #header: Header;
  readonly #fail: Fail;

  static async create(directory: Directory, header: Header, fail: Fail = (error) => error): Promise<NextFile> {
    return new NextFile(directory, header, fail, await directory.disk.create(temporary(directory, header)));
  }

  private constructor(directory: Directory, header: Header, fail: Fail, fd: number) {
    [this.#directory, this.#header, this.#fail, this.fd] = [directory, header, fail, fd];
  }

  /** Writes line by line, so that requests are served between two of them. The signal ends it. */
  async write(snapshot: Snapshot, signal?: AbortSignal): Promise<void> {
    let synced = 0;
    for (const line of snapshotLines(this.#header, snapshot)) {
      signal?.throwIfAborted();
      await this.#append(line);
      if (this.length - synced < SYNC_EVERY_BYTES) continue;
      await this.sync();
      synced = this.length;
    }
  }

  /** Copies batches from the file before. Returns where they end. */
  async copy(fd: number, from: number, to: number): Promise<number> {
    for await (const piece of piecesOf(this.#directory.disk, fd, from, to)) await this.#append(piece);
    return to;
  }

  async sync(): Promise<void> {
    await this.#directory.disk.sync(this.fd).catch((error) => {
      throw isNoRoom(error) ? error : this.#fail(error);
    });
  }

  /** Makes it durable, and then the current file. */
  async finish(): Promise<void> {
    await this.sync();
    const { disk } = this.#directory;
    try {
      await disk.rename(temporary(this.#directory, this.#header), this.#directory.pathOf(this.#header.file));
      await this.#directory.setCurrent(this.#header);
    } catch (error) {
      throw this.#fail(error); // after a crash, either file may be the current one
    }
  }

  async discard(): Promise<void> {
    this.#directory.disk.close(this.fd);
    await this.#directory.disk.unlink(temporary(this.#directory, this.#header)).catch(() => {});
  }

  async #append(bytes: Uint8Array): Promise<void> {
    await this.#directory.disk.write(this.fd, bytes, this.length);
    this.length += bytes.length;
  }
}

const temporary = (directory: Directory, { file }: Header): string => `${directory.pathOf(file)}.tmp`;

/** Begins a file with these rows, which is the current one when this resolves. */
export async function beginFile(directory: Directory, header: Header, snapshot: Snapshot): Promise<void> {
  const next = await NextFile.create(directory, header);
  try {
    await next.write(snapshot);
    await next.finish();
  } catch (error) {
    await next.discard();
    throw error;
  }
  directory.disk.close(next.fd);
}
