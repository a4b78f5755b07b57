/**
 * Replies to list requests by the text of their query. All of them are dropped with the first request after any
 * animal changed, or when there are too many; so what is kept is never older than what is durable.
 */
import type { Reply } from '../http/reply.ts';

const MAX_CACHED_REPLIES = 1_000;

export class ReplyCache {
  readonly #replies = new Map<string, Reply>();
  #version = -1;

  /** What was kept for this query, if no animal has changed since. */
  get(query: string, version: number): Reply | undefined {
    if (version !== this.#version) {
      this.#replies.clear();
      this.#version = version;
    }
    return this.#replies.get(query);
  }

  /** Keeps a reply that was made right after `get` found none. */
  keep(query: string, reply: Reply): Reply {
    if (this.#replies.size >= MAX_CACHED_REPLIES) this.#replies.clear();
    this.#replies.set(query, reply);
    return reply;
  }
}
