import { setTimeout as pause } from 'node:timers/promises';

/** How many clients send one request after the other, and how long each of them rests between two, in milliseconds. */
const clients = 4;
const restMs = 10;

/** What a load sends: the address, a body, and the keys that the clients use in turn. */
interface LoadTarget {
  readonly url: string;
  readonly secrets: readonly string[];
  readonly body: (stream: boolean) => string;
}

/** A load that goes on until it is stopped. */
export interface BackgroundLoad {
  /** Ends it; resolves with how many requests were answered completely, and with the statuses of all others. */
  stop(): Promise<{ readonly answered: number; readonly failed: readonly number[] }>;
}

/** Keeps a gateway busy with whole and streamed answers in turn. */
export function startLoad({ url, secrets, body }: LoadTarget): BackgroundLoad {
  const over = new AbortController();
  let sent = 0;
  let answered = 0;
  const failed: number[] = [];
  const send = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const number = sent++;
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${secrets[number % secrets.length] ?? ''}`,
          'content-type': 'application/json',
        },
        body: body(number % 2 === 0),
      });
      const text = await response.text();
      if (response.status === 200 && text !== '') answered++;
      else failed.push(response.status);
      await pause(restMs);
    }
  };
  const running = Promise.all(Array.from({ length: clients }, send));
  return {
    async stop() {
      over.abort();
      await running;
      return { answered, failed };
    },
  };
}
