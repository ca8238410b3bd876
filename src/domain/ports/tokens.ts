/** Counts tokens where an upstream did not. */
export interface TokenCounter {
  count(text: string): Promise<number>;
}
