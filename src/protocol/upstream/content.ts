import { isPlainObject } from '../../shared/parse-json.ts';
import type { Answer } from './answer.ts';
import type { Frame } from './dialect.ts';
import { invalidAnswer } from './failures.ts';

/** Types of parts that are thoughts, or that stand for thoughts that the provider keeps to itself. */
const thoughtTypes =
  /^(?:thinking|thought|reasoning|reasoning_text|summary_text|redacted_thinking|reasoning\.(?:text|summary|encrypted))$/;

/** Types of parts that are text, whatever the dialect calls it. */
const textTypes = new Set<unknown>([undefined, null, 'text', 'output_text', 'refusal', 'message']);

/** What takes the text of a content. */
export type TextTaker = Pick<Answer, 'say' | 'think' | 'fail'>;

/**
 * Reads a content in any of the forms in which text is plainly there: a string, a part, or a list of these. A part that
 * is neither text nor a thought fails the answer: skipped without a word, it would make an incomplete answer complete.
 */
export function readContent(content: unknown, answer: TextTaker): void {
  if (typeof content === 'string') answer.say(content);
  else if (Array.isArray(content)) for (const part of content) readContent(part, answer);
  else if (isPlainObject(content)) readPart(content, answer);
  else if (content !== undefined && content !== null) answer.fail(notText());
}

/** The failure of an answer with a part whose text can't be read. */
export function notText(): ReturnType<typeof invalidAnswer> {
  return invalidAnswer('a content that is not text');
}

/** Adds the thoughts in a field or a part of any form: text, a list, or parts with text or summaries. */
export function readThoughts(thought: unknown, answer: TextTaker): void {
  if (Array.isArray(thought)) for (const part of thought) readThoughts(part, answer);
  else if (isPlainObject(thought))
    readThoughts(thought['thinking'] ?? thought['text'] ?? thought['summary'] ?? thought['content'], answer);
  else answer.think(thought);
}

function readPart(part: Readonly<Record<string, unknown>>, answer: TextTaker): void {
  const { type } = part;
  if (typeof type === 'string' && thoughtTypes.test(type)) return readThoughts(part, answer);
  const text = part['text'] ?? part['refusal'];
  const said = isPlainObject(text) ? text['value'] : text;
  if (textTypes.has(type) && typeof said === 'string') answer.say(said);
  else answer.fail(notText());
}

/** The alternative with index 0: others are never requested, and would mix two texts into one. */
export function firstAlternative(all: unknown, answer: Answer): Frame | null {
  if (!Array.isArray(all)) return null;
  const own: unknown = all.find((one) => isPlainObject(one) && Number(one['index'] ?? 0) === 0);
  if (all.length > (own === undefined ? 0 : 1)) answer.violations.add('skipped_content');
  return isPlainObject(own) ? own : null;
}
