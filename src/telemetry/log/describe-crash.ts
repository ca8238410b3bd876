/** How much of an error's message is logged, in characters, and how many frames of its stack. */
const maxMessageChars = 300;
const maxFrames = 20;

/** The loggable parts of an uncaught error. */
interface Crash {
  readonly error: string;
  readonly code: string | null;
  readonly reason: string | null;
  readonly stack: readonly string[];
}

/**
 * Describes an error from anywhere, whose message may quote a prompt: those of `JSON.parse` and of Node's argument checks
 * do. The message is cut at the first quotation mark; the frames of the stack say where the error was thrown. A thrown
 * value that is not an `Error` is not logged at all.
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

/** The frames without the message before them, which may have lines that look like frames. */
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
