/** Does `work` for each item, a limited number at a time. */
export async function forEachOf<T>(
  items: readonly T[],
  atATime: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const left = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of left) await work(item, index);
  };
  await Promise.all(Array.from({ length: atATime }, worker));
}
