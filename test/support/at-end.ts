type Task = () => void | Promise<void>;

/** What is still to be done for the test file that runs; `null` outside of one, as in a program that measures. */
let ofFile: Task[] | null = null;

/** Takes what is to be done after the test that runs; `null` between tests. */
let ofTest: ((task: Task) => void) | null = null;

/** The upstreams of the file, and of the test that runs. */
let upstreamsOfFile: Task[] = [];
let upstreamsOfTest: Task[] = [];

/** Begins a test file: what its tests share may live until its end. */
export function beginFile(): void {
  ofFile = [];
  upstreamsOfFile = [];
}

/** Begins a test, which does the tasks that it is given when it has finished, the last one first. */
export function beginTest(take: (task: Task) => void): void {
  ofTest = take;
}

/** Ends a test before what is done when it has finished: its upstreams are closed first. */
export async function endTest(): Promise<void> {
  ofTest = null;
  for (let task = upstreamsOfTest.pop(); task !== undefined; task = upstreamsOfTest.pop()) await task();
}

/**
 * Has something done after the test that runs or, if it was begun before the tests, after the last one of the file; the
 * last task first. Outside of a test file nothing is done: a program ends what it has begun.
 */
export function atEnd(task: Task): void {
  if (ofTest === null) ofFile?.push(task);
  else ofTest(task);
}

/** Has something closed by `atEnd`. */
export function closedAtEnd<Opened extends { close(): unknown }>(opened: Opened): Opened {
  atEnd(async () => void (await opened.close()));
  return opened;
}

/**
 * Has an upstream closed before everything else: a gateway that is closed waits for its requests, for half a minute where
 * their upstream says nothing.
 */
export function upstreamClosedAtEnd<Opened extends { close(): Promise<void> }>(opened: Opened): Opened {
  (ofTest === null ? upstreamsOfFile : upstreamsOfTest).push(() => opened.close());
  return opened;
}

/** Has something done once after the last test of the running file; `false` if none runs, and the caller has to do it. */
export function atEndOfFile(task: Task): boolean {
  // Before all others in the list: what a file shares outlives what was opened on it.
  ofFile?.unshift(task);
  return ofFile !== null;
}

/** Ends the test file: does all that waits for it, and throws the first error of that. */
export async function endFile(): Promise<void> {
  const errors: unknown[] = [];
  for (const close of upstreamsOfFile) await close();
  for (let task = ofFile?.pop(); task !== undefined; task = ofFile?.pop())
    try {
      await task();
    } catch (error) {
      errors.push(error);
    }
  ofFile = null;
  if (errors.length > 0) throw errors[0];
}
