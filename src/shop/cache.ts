/**
 * Replies by the text that asked for them, which is a query or an id. All of them are dropped with the first request
 * after any animal changed, or when there are too many; so a cached reply is never older than the durable state.
 */
import { prepared, type TaggedReply } from '../http/reply.ts';

const MAX_CACHED_REPLIES = 1_000;
const MAX_CACHED_BYTES = 8 * 1024 * 1024;

export class ReplyCache {
  readonly #replies = new Map<string, TaggedReply>();
  #bytes = 0;
  #version = -1;

  /** The cached reply to this text, if no animal has changed since; else one that is made now. */
  cached(asked: string, version: number, make: () => TaggedReply): TaggedReply {
    if (version !== this.#version) {
      this.#clear();
      this.#version = version;
    }
    return this.#replies.get(asked) ?? this.#add(asked, prepared(make()));
  }

  #add(asked: string, reply: TaggedReply): TaggedReply {
    // The header lines are in memory twice, alone and in `tail`; those of its 304 are, too.
    const bytes = asked.length + reply.body.length + 4 * (reply.lines as string).length;
    if (this.#replies.size >= MAX_CACHED_REPLIES || this.#bytes + bytes > MAX_CACHED_BYTES) this.#clear();
    this.#replies.set(asked, reply);
    this.#bytes += bytes;
    return reply;
  }

  #clear(): void {
    this.#replies.clear();
    this.#bytes = 0;
  }
}
