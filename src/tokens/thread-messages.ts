/** To the thread: a text to count. */
export interface CountRequest {
  /** The number by which its reply is known. */
  readonly id: number;
  readonly text: string;
}

/** From the thread: the tokens of a text, or why they could not be counted. */
export type CountReply =
  | { readonly kind: 'counted'; readonly id: number; readonly tokens: number }
  | { readonly kind: 'failed'; readonly id: number; readonly reason: string };
