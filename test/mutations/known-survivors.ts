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
    file: 'src/protocol/upstream/reported-usage.ts',
    line: 'this.#mostInput = Math.max(this.#mostInput, input ?? 0);',
    change: 'a number is one more: 0',
    why: 'Input that is counted is at least 1.',
  },
  {
    file: 'src/protocol/upstream/error-words.ts',
    line: 'const maxCutMessageChars = 8_192;',
    change: 'a number is one more: 8_192',
    why: 'At most 400 characters are shown.',
  },
  {
    file: 'src/protocol/responses/read-request.ts',
    line: 'return include;',
    change: 'nothing is returned: return include;',
    why: 'The entries that are allowed are dropped: nothing reads the field.',
  },
  {
    file: 'src/http/connections/connection-table.ts',
    line: 'this.#recent.delete(connection);',
    change: 'a statement is dropped: this.#recent.delete(connection);',
    why: 'Where a protection ends, the connection is in no other list: it closed before, and is only forgotten later.',
  },
  {
    file: 'src/http/body.ts',
    line: "return Number(headers['content-length'] ?? 0) > maxBytes ? tooLarge(maxBytes) : null;",
    change: 'a number is one more: 0',
    why: 'Every limit of a body is more than a byte.',
  },
  {
    file: 'src/http/connections/unread-watch.ts',
    line: 'if (socket === null) return 0;',
    change: 'a number is one more: 0',
    why: 'It is compared only once there is a socket, on which more than a byte was sent.',
  },
  {
    file: 'src/http/connections/unread-watch.ts',
    line: 'if (socket === null) return 0;',
    change: 'nothing is returned: return 0;',
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
  {
    file: 'src/protocol/upstream/words/sanitise.ts',
    line: 'const first = folded.starts[start] ?? 0;',
    change: 'a number is one more: 0',
    why: 'A run that was found has a place.',
  },
  {
    file: 'src/protocol/upstream/words/escapes.ts',
    line: 'start: starts[start] ?? 0,',
    change: 'a number is one more: 0',
    why: 'A part of a text that was found has a place.',
  },
  {
    file: 'src/protocol/upstream/words/escapes.ts',
    line: 'if (first === null) return null;',
    change: 'nothing is returned: return null;',
    why: 'Its caller treats both as nothing.',
  },
  {
    file: 'src/protocol/upstream/words/escapes.ts',
    line: 'if (byte < 0xc2 || byte > 0xf4) return latin;',
    change: 'a number is one more: 0xf4',
    why: 'Bytes behind this one stand for points beyond all, which are read as Latin-1.',
  },
  {
    file: 'src/protocol/upstream/words/hide-prompt.ts',
    line: 'const firstIdeograph = 0x2e80;',
    change: 'a number is one more: 0x2e80',
    why: 'The first signs of that range are no letters, and are left out before.',
  },
  {
    file: 'src/protocol/upstream/words/hide-prompt.ts',
    line: 'const maxSearchedUnits = 4_194_304;',
    change: 'a number is one more: 4_194_304',
    why: 'Of a text that folds to one more, more is shown or less: the bound is there for the time that it takes.',
  },
  {
    file: 'src/http/body.ts',
    line: 'chunks.length = 0;',
    change: 'a statement is dropped: chunks.length = 0;',
    why: 'It frees the memory of a refused body a little earlier.',
  },
  {
    file: 'src/http/connections/lingering-close.ts',
    line: "socket.once('close', () => clearTimeout(timer));",
    change: "a statement is dropped: socket.once('close', () => clearTimeout(timer));",
    why: 'A socket that is closed is destroyed once more, within a second.',
  },
  {
    file: 'src/http/heads/strict-head.ts',
    line: '{ length: maxNameLength + 1 },',
    change: 'a number is one more: 1',
    why: 'The list of names by their lengths has one more place, which is empty.',
  },
  {
    file: 'src/protocol/upstream/said-text.ts',
    line: 'for (let at = 0; at < copy.length && found < text.length; at++) if (copy[at] === text[found]) found++;',
    change: '< becomes <=: <',
    why: 'Behind the end of either text nothing equals a character of the other.',
  },
  {
    file: 'src/protocol/upstream/said-text.ts',
    line: "#last: Closed = { start: 0, by: [], copy: '' };",
    change: 'a number is one more: 0',
    why: 'It is read before anything is closed only while no text has come, which is as empty from there on.',
  },
  {
    file: 'src/protocol/upstream/words/folded-text.ts',
    line: 'const point = unit < 128 ? unit : (text.codePointAt(at) ?? unit);',
    change: '< becomes <=: <',
    why: 'The character behind ASCII is the same point either way.',
  },
  {
    file: 'src/protocol/upstream/words/folded-text.ts',
    line: 'const point = unit < 128 ? unit : (text.codePointAt(at) ?? unit);',
    change: 'a number is one more: 128',
    why: 'The character behind ASCII is the same point either way.',
  },
  {
    file: 'src/protocol/upstream/words/folded-text.ts',
    line: 'if (point < 128) {',
    change: '< becomes <=: <',
    why: 'The character behind ASCII is no letter, and is left out either way.',
  },
  {
    file: 'src/protocol/upstream/words/folded-text.ts',
    line: 'if (point < 128) {',
    change: 'a number is one more: 128',
    why: 'The character behind ASCII is no letter, and is left out either way.',
  },
  {
    file: 'src/protocol/upstream/words/folded-text.ts',
    line: 'const firstRareIdeograph = 0x20000;',
    change: 'a number is one more: 0x20000',
    why: 'The first ideograph folds to itself either way, which only takes longer.',
  },
  {
    file: 'src/protocol/upstream/words/folded-text.ts',
    line: 'const firstBehindForms = 0x30000;',
    change: 'a number is one more: 0x30000',
    why: 'The first ideograph folds to itself either way, which only takes longer.',
  },
  {
    file: 'src/protocol/upstream/words/shared-runs.ts',
    line: 'const base = 0x01000193;',
    change: 'a number is one more: 0x01000193',
    why: 'Windows of the same hash are compared: another hash only makes other ones be so.',
  },
];
