import { linkTo } from '../../route.ts';
import type { History } from './measures.ts';

/** Something that happened, in words, and where more of it is. */
export interface Mark {
  readonly at: string;
  readonly text: string;
  readonly link: string | null;
}

type Event = History['marks'][number];

const texts: Readonly<Record<Event['kind'], string>> = {
  process_began: 'a process began',
  process_ended: 'a process ended',
  process_lost: 'a process was lost',
  clock_set_back: 'the clock was set back',
  config_loaded: 'a config was loaded',
  config_refused: 'a config was refused',
  circuit_opened: 'fails: its circuit opened',
  circuit_closed: 'answers again: its circuit closed',
};

/** Something that a process marked, in words. */
export function markOf({ at, kind, node, upstream, model }: Event): Mark {
  const where = node === null ? '' : ` (${node})`;
  if (upstream === null) return { at, text: `${texts[kind]}${where}`, link: null };
  const subject = model === null ? upstream : `${model} at ${upstream}`;
  return { at, text: `${subject} ${texts[kind]}${where}`, link: linkTo('upstreams', upstream) };
}
