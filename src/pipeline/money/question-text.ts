import type { TextTurn } from '../../protocol/text.ts';

/** Tokens that our own count adds for each turn: its role and the delimiters around it. */
const usualTokensPerTurn = 4;

/** The text of a request as it is counted, without what `tokensOfTurns` adds. */
export function questionOf(turns: readonly TextTurn[]): string {
  return turns.map((turn) => turn.text).join('\n');
}

/** The tokens around the turns of a request. */
export function tokensOfTurns(turns: readonly TextTurn[]): number {
  return usualTokensPerTurn * turns.length;
}
