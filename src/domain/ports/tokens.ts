/** Counts tokens when an upstream reported no usage. */
export interface TokenCounter {
  count(text: string): Promise<number>;
}

/** Counts tokens that no request waits for: each piece only while no other text waits. */
export interface IdleTokenCounter {
  countWhenIdle(text: string): Promise<number>;
}
