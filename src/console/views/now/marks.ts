import type { PresentedAuditLine } from '../../../http/present/audit.ts';
import type { PresentedList } from '../../../http/present/list.ts';
import { adminPath, callAdmin } from '../../api/admin-api.ts';
import type { Bounds } from '../../chosen-time.ts';
import { linkTo } from '../../route.ts';
import { shortName } from '../../widgets/format.ts';
import { writeAct } from '../audit/write-act.ts';
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

/** How many acts of operators are read: the newest ones. */
export const maxActs = 200;

/** What operators did in a time. */
type Acts = PresentedList<PresentedAuditLine>;

/** Reads the newest acts of operators in a time. */
export function readActs(bounds: Bounds, signal: AbortSignal): Promise<Acts> {
  return callAdmin<Acts>(adminPath('audit', { ...bounds, limit: maxActs }), { signal });
}

/** What the processes marked of a time, and what operators changed in it, the earliest first. */
export function marksOf(history: History, acts: Acts, bounds: Bounds): readonly Mark[] {
  return [
    ...history.marks.map(markOf),
    // A config that was loaded is among the events of the processes; a refused call and a login changed nothing.
    ...acts.data
      .filter(
        ({ action, result }) =>
          result === 'done' && action !== 'config.load' && !action.startsWith('session.'),
      )
      .map((act) => ({
        at: act.created_at,
        text: writeAct(act),
        link: linkTo('audit', null, { ...bounds, search: act.subject }),
      })),
  ].toSorted((one, other) => (one.at < other.at ? -1 : 1));
}

function markOf({ at, kind, node, upstream, model }: Event): Mark {
  const where = node === null ? '' : ` (${node})`;
  if (upstream === null) return { at, text: `${texts[kind]}${where}`, link: null };
  const name = shortName(upstream);
  const subject = model === null ? name : `${shortName(model)} at ${name}`;
  return { at, text: `${subject} ${texts[kind]}${where}`, link: linkTo('upstreams', upstream) };
}
