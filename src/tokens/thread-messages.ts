/** To the thread: a piece of a text to count. The next one is sent when the reply has come. */
export interface CountRequest {
  readonly piece: string;
}

/** From the thread: the tokens of the piece, or why they could not be counted. */
export type CountReply =
  | { readonly kind: 'counted'; readonly tokens: number }
  | { readonly kind: 'failed'; readonly reason: string };
