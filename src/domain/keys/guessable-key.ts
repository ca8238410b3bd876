/** The shortest key that may be declared, in characters. */
export const minKeyLength = 20;

/** The longest key that may be declared, in characters: a request's head has little more room. */
export const maxKeyLength = 1_024;

/** How many characters, and how many different ones, a key has beside its words. */
const minRandomLength = 12;
const minDifferent = 6;

/** Words of examples, placeholders and hand-made keys: they add nothing that has to be guessed. */
const words =
  /admin|api|bearer|change|demo|dev|dummy|example|fake|foo|bar|gateway|here|hello|insert|key|local|master|me|my|openai|password|placeholder|please|prod|proj|public|put|replace|sample|secret|sk|staging|super|test|textgate|tg|the|this|todo|token|user|world|your?|with/gi;

/** Runs of neighbours in the alphabet, among the digits or on a keyboard, and of one character. */
const rows = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm'];

/** How many neighbours make a run. */
const minRun = 4;

/**
 * Whether a key is a placeholder or has a pattern, so that it could be guessed: few characters are left, or few different
 * ones, once words, runs such as `1234` and repetitions are taken out. A random key passes.
 */
export function isGuessable(key: string): boolean {
  const rest = withoutRepetition(withoutRuns(key.replaceAll(words, ' '))).replaceAll(/[^A-Za-z0-9+/=]/g, '');
  return rest.length < minRandomLength || new Set(rest).size < minDifferent;
}

function withoutRuns(text: string): string {
  const lower = text.toLowerCase();
  let kept = '';
  for (let start = 0; start < text.length;) {
    const length = runLength(lower.slice(start));
    if (length < minRun) kept += text[start++] ?? '';
    else start += length;
  }
  return kept;
}

/** The length of the run with which a text begins. */
function runLength(text: string): number {
  const [first = ''] = text;
  let longest = 1;
  while (text[longest] === first) longest++;
  for (const row of rows)
    for (const order of [row, row.split('').toReversed().join('')]) {
      let length = minRun;
      while (length <= order.length && length <= text.length && order.includes(text.slice(0, length)))
        length++;
      if (length > minRun) longest = Math.max(longest, length - 1);
    }
  return longest;
}

/** A text that repeats its beginning throughout is as good as that beginning. */
function withoutRepetition(text: string): string {
  for (let period = 1; period <= text.length / 2; period++)
    if (text.startsWith(text.slice(period))) return text.slice(0, period);
  return text;
}
