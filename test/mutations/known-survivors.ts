/** A fault that no test can find, and why. */
interface KnownSurvivor {
  readonly file: string;
  /** The line of the source, without its indent. */
  readonly line: string;
  /** What the fault does, as `npm run mutants` prints it. */
  readonly change: string;
  readonly why: string;
}

/** Faults that change nothing anyone can tell. */
export const knownSurvivors: readonly KnownSurvivor[] = [
  {
    file: 'src/protocol/upstream/read-answer.ts',
    line: 'bytes = 0;',
    change: 'a number is one more: 0',
    why: 'The text goes through the decoder for several pieces, and is the same.',
  },
  {
    file: 'src/protocol/upstream/error-words.ts',
    line: 'const maxCutMessageChars = 8_192;',
    change: 'a number is one more: 8_192',
    why: 'At most 400 characters are shown.',
  },
  {
    file: 'src/http/connections/unread-watch.ts',
    line: 'if (socket === null) return 0;',
    change: 'a number is one more: 0',
    why: 'It is compared only once there is a socket, on which more than a byte was sent.',
  },
  {
    file: 'src/domain/money/pricing.ts',
    line: 'if (left < 0n) return -1;',
    change: 'a number is one more: 1',
    why: 'Any number below 0 says that the input is not paid.',
  },
  {
    file: 'src/domain/money/pricing.ts',
    line: 'const usual = outputWithinLine(nanos, inputTokens, priceFor(price, 0));',
    change: 'a number is one more: 0',
    why: 'The dearer line of a price is for more than one token of input at the least.',
  },
  {
    file: 'src/pipeline/money/reserve.ts',
    line: 'const held = holdNanos ?? 0;',
    change: 'a number is one more: 0',
    why: 'An opening with budgets always says what it holds.',
  },
  {
    file: 'src/protocol/json-depth.ts',
    line: 'index = end + 1;',
    change: '+ becomes -: +',
    why: 'The backslash before the escaped quote is read once more, and its quote is skipped again.',
  },
];
