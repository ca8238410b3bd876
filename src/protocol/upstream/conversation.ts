import type { Role, TextTurn } from '../text.ts';

/** The separator of joined texts: a blank line. */
const joint = '\n\n';

/** A turn of the user or the assistant. */
export interface SpokenTurn {
  readonly role: Exclude<Role, 'system'>;
  readonly text: string;
}

/** A conversation for protocols with a separate system prompt, whose other turns must alternate. */
export interface Conversation {
  /** Empty without a system prompt. */
  readonly system: string;
  readonly turns: readonly SpokenTurn[];
}

/**
 * Splits a history for such a protocol. Blank turns are left out, since one of them makes the whole request invalid. A
 * system prompt without other turns becomes a user turn, since a request without turns is refused. The first and the
 * last role are not changed, because that would need invented text.
 */
export function splitConversation(history: readonly TextTurn[]): Conversation {
  const said = history.filter(({ text }) => text.trim() !== '');
  const system = said.filter(({ role }) => role === 'system').map(({ text }) => text);
  const spoken = said.filter((turn): turn is SpokenTurn => turn.role !== 'system');
  if (spoken.length > 0) return { system: system.join(joint), turns: joinNeighbours(spoken) };
  return { system: '', turns: system.length === 0 ? [] : [{ role: 'user', text: system.join(joint) }] };
}

/** Joins turns of one role that follow each other. */
function joinNeighbours(turns: readonly SpokenTurn[]): readonly SpokenTurn[] {
  const joined: { role: SpokenTurn['role']; texts: string[] }[] = [];
  for (const { role, text } of turns) {
    const last = joined.at(-1);
    if (last?.role === role) last.texts.push(text);
    else joined.push({ role, texts: [text] });
  }
  return joined.map(({ role, texts }) => ({ role, text: texts.join(joint) }));
}
