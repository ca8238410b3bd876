/** What is still to be done for the test file that runs; `null` outside of one, as in a program that measures. */
let tasks: (() => Promise<void>)[] | null = null;

/** Begins a test file: what its tests share may live until its end. */
export function beginFile(): void {
  tasks = [];
}

/** Has something done once after the last test of the running file; `false` if none runs, and the caller has to do it. */
export function atEndOfFile(task: () => Promise<void>): boolean {
  tasks?.push(task);
  return tasks !== null;
}

/** Ends the test file: does all that waits for it. */
export async function endFile(): Promise<void> {
  const due = tasks ?? [];
  tasks = null;
  for (const task of due) await task();
}
