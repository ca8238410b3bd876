import type { Role, TextTurn } from '../text.ts';

/** What stands between texts that are joined into one: a blank line. */
const joint = '\n\n';

/** What somebody said who is not the system. */
export interface SpokenTurn {
  readonly role: Exclude<Role, 'system'>;
  readonly text: string;
}

/** A conversation for protocols that keep the system's words apart and want the other two to alternate. */
export interface Conversation {
  /** Empty when the system said nothing. */
  readonly system: string;
  readonly turns: readonly SpokenTurn[];
}

/**
 * Splits a history for such a protocol. Blank turns are left out, since such protocols refuse a whole request for one;
 * a system that speaks alone is heard as the user, since they take no request without a turn. Whose turn comes first
 * or last is not changed, because that would need words that nobody said.
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
