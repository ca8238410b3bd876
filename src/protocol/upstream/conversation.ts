import type { Role, TextTurn } from '../text.ts';

/** The separator of joined texts: a blank line. */
const joint = '\n\n';

/** A turn of the user or the assistant. */
export interface SpokenTurn {
  readonly role: Exclude<Role, 'system'>;
  readonly text: string;
}

/** A conversation for protocols with a separate system prompt, whose other turns must alternate. */
interface Conversation {
  /** Empty without a system prompt. */
  readonly system: string;
  readonly turns: readonly SpokenTurn[];
}

/**
 * Splits a history for such a protocol: turns of one role that follow each other are joined. Blank turns are left out,
 * since one of them makes the whole request invalid. A system prompt without other turns becomes a user turn, since a
 * request without turns is refused. The first and the last role are not changed, because that would need invented text.
 */
export function splitConversation(history: readonly TextTurn[]): Conversation {
  let system = '';
  const turns: { role: SpokenTurn['role']; text: string }[] = [];
  for (const { role, text } of history) {
    if (text.trim() === '') continue;
    const last = turns.at(-1);
    if (role === 'system') system += system === '' ? text : joint + text;
    else if (last?.role === role) last.text += joint + text;
    else turns.push({ role, text });
  }
  if (turns.length > 0 || system === '') return { system, turns };
  return { system: '', turns: [{ role: 'user', text: system }] };
}
