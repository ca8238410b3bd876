import type { ChildProcess } from 'node:child_process';

/** A connection that the primary process has accepted and hands to a worker. */
interface Connection {
  close(): void;
}

/** What `node:cluster` sends with a connection, and the worker's answer. */
interface ClusterMessage {
  readonly act?: unknown;
  readonly seq?: unknown;
  readonly ack?: unknown;
  readonly accepted?: unknown;
}

/**
 * Closes connections that `node:cluster` (Node 26) would keep open without a worker, so that their clients would wait until
 * their own deadlines instead of trying again: one that was just handed to a worker that died, and one that came back from
 * a worker when no other takes connections any more.
 */
export class Handovers {
  /** The connections that were handed to a worker which has not answered yet, by the number of the message. */
  readonly #pending = new Map<unknown, { readonly connection: Connection; readonly worker: ChildProcess }>();
  readonly #isEnding: () => boolean;

  constructor(isEnding: () => boolean) {
    this.#isEnding = isEnding;
  }

  /** Follows what is handed to a worker. Called right after its start. */
  watch(worker: ChildProcess): void {
    const send = worker.send.bind(worker) as (...call: unknown[]) => boolean;
    worker.send = (...call: unknown[]): boolean => {
      const [message, connection] = call as [ClusterMessage, Connection | undefined];
      if (message.act === 'newconn' && connection !== undefined)
        this.#pending.set(message.seq, { connection, worker });
      return send(...call);
    };
    worker.on('internalMessage', (message: ClusterMessage) => this.#onAnswer(message));
    worker.once('exit', () => {
      for (const [id, { connection, worker: receiver }] of this.#pending) {
        if (receiver !== worker) continue;
        this.#pending.delete(id);
        connection.close();
      }
    });
  }

  /** Runs after `node:cluster` has handed a refused connection to another worker, or has put it into its queue. */
  #onAnswer({ ack, accepted }: ClusterMessage): void {
    const connection = this.#pending.get(ack)?.connection;
    if (connection === undefined) return;
    this.#pending.delete(ack);
    const isOnItsWay = [...this.#pending.values()].some((other) => other.connection === connection);
    if (accepted === false && this.#isEnding() && !isOnItsWay) connection.close();
  }
}
