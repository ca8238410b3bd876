/** Resolves in the next turn of the event loop: what waits meanwhile, such as a request, has its turn first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
