/** An answer as far as it has arrived. */
export interface LiveAnswer {
  readonly status: number | null;
  readonly headers: Headers;
  readonly text: string;
  /** Whether the connection broke before the body was complete. */
  readonly broken: boolean;
  /** Resolves at the end of the body. */
  readonly ended: Promise<void>;
}

/** Reads an answer as it arrives. */
export function readLive(asked: Promise<Response>): LiveAnswer {
  const decoder = new TextDecoder();
  const answer = { status: null as number | null, headers: new Headers(), text: '', broken: false };
  const read = async (): Promise<void> => {
    const response = await asked;
    answer.status = response.status;
    answer.headers = response.headers;
    try {
      for await (const part of response.body ?? []) answer.text += decoder.decode(part, { stream: true });
    } catch {
      answer.broken = true;
    }
  };
  return Object.assign(answer, { ended: read() });
}
