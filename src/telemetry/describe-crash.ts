/** How much of an error's words, and how many of its stack's frames, are logged. */
const maxMessageChars = 300;
const maxFrames = 20;

/** What the log may say of an error that nothing caught. */
interface Crash {
  readonly error: string;
  readonly code: string | null;
  readonly reason: string | null;
  readonly stack: readonly string[];
}

/**
 * Describes an error that can come from anywhere, so that its words may quote a request: `JSON.parse` does, and so do
 * Node's own argument errors. They are cut at the first quotation mark; the frames of the stack say where it was.
 * A value that is no error is not repeated at all.
 */
export function describeCrash(error: unknown): Crash {
  if (!(error instanceof Error)) return { error: typeof error, code: null, reason: null, stack: [] };
  const { code } = error as NodeJS.ErrnoException;
  return {
    error: error.name,
    code: typeof code === 'string' ? code : null,
    reason: withoutQuotes(error.message),
    stack: framesOf(error),
  };
}

function withoutQuotes(message: string): string {
  return message.replace(/(^|\W)["'`‘“].*/s, '$1…').slice(0, maxMessageChars);
}

/** The frames alone: the stack begins with the message, which may have lines that look like frames. */
function framesOf({ message, stack = '' }: Error): readonly string[] {
  const start = stack.indexOf(message);
  if (start === -1) return [];
  return stack
    .slice(start + message.length)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '))
    .slice(0, maxFrames);
}
