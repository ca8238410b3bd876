/** Counts tokens when an upstream reported no usage. */
export interface TokenCounter {
  count(text: string): Promise<number>;
}
