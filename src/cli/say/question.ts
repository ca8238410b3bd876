/** The longest question from standard input, in characters. */
const maxQuestionChars = 16_777_216;

/** The question on the command line, or that on standard input. Throws if there is none. */
export async function readQuestion(words: string): Promise<string> {
  if (words !== '' && words !== '-') return words;
  if (words === '' && process.stdin.isTTY)
    throw new Error('no question: give one, as in textgate say "Say hello"');
  let question = '';
  process.stdin.setEncoding('utf8');
  for await (const part of process.stdin) {
    question += String(part);
    if (question.length > maxQuestionChars)
      throw new Error(`the question has more than ${maxQuestionChars} characters`);
  }
  const trimmed = question.replace(/\s+$/, '');
  if (trimmed === '') throw new Error('no question: standard input is empty');
  return trimmed;
}
