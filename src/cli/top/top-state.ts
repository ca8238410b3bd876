import type { PresentedStatusRow } from '../../http/present/status.ts';
import { nameOfKey, sortNames } from './rows.ts';
import type { SortName } from './rows.ts';

/** The longest filter, in characters: no name is longer. */
const maxFilterChars = 100;

/** What the user of `textgate top` has chosen. */
export interface TopState {
  readonly sort: SortName;
  readonly filter: string;
  /** Whether keys are written into the filter. */
  readonly isTyping: boolean;
  readonly isPaused: boolean;
  /** The id of the selected request. */
  readonly selected: string | null;
  /** The request that is about to be cancelled. */
  readonly asked: { readonly id: string; readonly label: string } | null;
  /** What came of the last key; gone with the next one. */
  readonly notice: string | null;
}

/** A key, as `node:readline` names it. */
export interface PressedKey {
  readonly name?: string | undefined;
  readonly sequence?: string | undefined;
  readonly ctrl?: boolean | undefined;
}

/** What a key does beside changing what is shown. */
type Effect = { readonly kind: 'quit' } | { readonly kind: 'cancel'; readonly id: string };

/** What is shown after a key. */
export interface Pressed {
  readonly state: TopState;
  readonly effect: Effect | null;
}

/** What is shown at first. */
export const firstState: TopState = {
  sort: sortNames[0],
  filter: '',
  isTyping: false,
  isPaused: false,
  selected: null,
  asked: null,
  notice: null,
};

/** The selected request, or the first one if that has ended; `null` without any. `before` are the rows it was among. */
export function followSelection(
  { selected }: TopState,
  rows: readonly PresentedStatusRow[],
  before: readonly PresentedStatusRow[],
): string | null {
  if (rows.some(({ request_id: id }) => id === selected)) return selected;
  const at = before.findIndex(({ request_id: id }) => id === selected);
  return rows[Math.min(Math.max(0, at), rows.length - 1)]?.request_id ?? null;
}

/** What a key does, with the requests that are shown. */
export function press(state: TopState, key: PressedKey, rows: readonly PresentedStatusRow[]): Pressed {
  const quiet = { ...state, notice: null };
  if (key.ctrl === true && key.name === 'c') return { state: quiet, effect: { kind: 'quit' } };
  if (state.asked !== null) return answer(quiet, key);
  return state.isTyping ? { state: type(quiet, key), effect: null } : browse(quiet, key, rows);
}

/** Answers the question: `y` cancels the request, any other key leaves it running. */
function answer(state: TopState, { sequence }: PressedKey): Pressed {
  const closed = { ...state, asked: null };
  const id = state.asked?.id ?? '';
  return sequence === 'y'
    ? { state: closed, effect: { kind: 'cancel', id } }
    : { state: { ...closed, notice: 'nothing was cancelled' }, effect: null };
}

function type(state: TopState, { name, sequence = '', ctrl }: PressedKey): TopState {
  if (name === 'return' || name === 'enter') return { ...state, isTyping: false };
  if (name === 'escape') return { ...state, isTyping: false, filter: '' };
  if (name === 'backspace') return { ...state, filter: state.filter.replace(/.$/u, '') };
  const isText = ctrl !== true && /^[^\p{Cc}]+$/u.test(sequence);
  return isText ? { ...state, filter: (state.filter + sequence).slice(0, maxFilterChars) } : state;
}

function browse(
  state: TopState,
  { name, sequence }: PressedKey,
  rows: readonly PresentedStatusRow[],
): Pressed {
  const shown = (next: TopState): Pressed => ({ state: next, effect: null });
  if (name === 'down' || sequence === 'j') return shown(move(state, rows, 1));
  if (name === 'up' || sequence === 'k') return shown(move(state, rows, -1));
  switch (sequence ?? '') {
    case 'q':
      return { state, effect: { kind: 'quit' } };
    case 's':
      return shown({ ...state, sort: nextSort(state.sort) });
    case '/':
      return shown({ ...state, isTyping: true });
    case 'p':
      return shown({ ...state, isPaused: !state.isPaused });
    case 'c':
      return shown(ask(state, rows));
    default:
      return shown(state);
  }
}

function move(state: TopState, rows: readonly PresentedStatusRow[], by: number): TopState {
  const at = rows.findIndex(({ request_id: id }) => id === state.selected);
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  return { ...state, selected: next?.request_id ?? null };
}

function ask(state: TopState, rows: readonly PresentedStatusRow[]): TopState {
  const row = rows.find(({ request_id: id }) => id === state.selected);
  if (row === undefined) return { ...state, notice: 'no request is selected' };
  const label = `${row.request_id.slice(-8)} of ${nameOfKey(row)}`;
  return { ...state, asked: { id: row.request_id, label } };
}

function nextSort(sort: SortName): SortName {
  return sortNames[(sortNames.indexOf(sort) + 1) % sortNames.length] ?? sort;
}
