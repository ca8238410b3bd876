import type { ClientConnection } from '../../../src/pipeline/client-connection.ts';
import { readAnswerBody } from '../../support/client-answer.ts';
import type { ClientAnswer } from '../../support/client-answer.ts';
import { clientFacts } from '../../support/client-facts.ts';

/** What a client got. */
export interface Got {
  text: string;
  status: number | null;
  chargeNanos: number | null;
  isStream: boolean;
  /** How many ends it got, and how many of them were a broken connection. */
  ends: number;
  tornDown: number;
  hasLeft: boolean;
}

/** A client without a socket. */
export interface Client {
  readonly connection: ClientConnection;
  readonly got: Got;
  leave(): void;
}

export function createClient(number: number, keyId: string, body: object): Client {
  const got: Got = {
    text: '',
    status: null,
    chargeNanos: null,
    isStream: false,
    ends: 0,
    tornDown: 0,
    hasLeft: false,
  };
  let gone = (): void => {};
  const end = async (text: string): Promise<void> => {
    got.text += text;
    got.ends++;
  };
  return {
    got,
    leave() {
      got.hasLeft = true;
      gone();
    },
    connection: {
      ...clientFacts(number.toString(16).padStart(32, '0'), keyId, body),
      onGone: (callback) => void (gone = callback),
      answer(head, text) {
        got.status = head.status;
        got.chargeNanos = head.chargeNanos;
        return end(text);
      },
      open: () => void (got.isStream = true),
      send: (text) => void (got.text += text),
      end,
      tearDown(text) {
        got.tornDown++;
        return end(text);
      },
    },
  };
}

/** What the client reads in its protocol; `null` if it got nothing. A broken connection is no end of an answer. */
export function readGot(
  protocol: 'chat' | 'responses',
  { text, isStream, tornDown }: Got,
): ClientAnswer | null {
  const frames = isStream ? text.replaceAll(/^:.*\n+/gm, '') : text;
  if (frames === '') return null;
  const answer = readAnswerBody(protocol, isStream, frames);
  return tornDown > 0 ? { ...answer, ending: 'failure' } : answer;
}
