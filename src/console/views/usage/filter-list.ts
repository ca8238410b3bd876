import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { asWords } from '../../widgets/format.ts';
import { shownName } from '../../widgets/name.ts';
import { useKeyNames } from '../../api/use-key-names.ts';
import { groupNames, groups, none } from './groups.ts';
import type { GroupName } from './groups.ts';
import type { Filters } from './usage-query.ts';

interface Props<Given extends Filters> {
  readonly filters: Given;
  /** The link to the same place with other filters. */
  readonly linkOf: (filters: Given) => string;
}

/** What requests are left out by, each with a link that takes it away. Nothing without a filter. */
export function FilterList<Given extends Filters>({ filters, linkOf }: Props<Given>): VNode | null {
  const names = useKeyNames(useMemo(() => (filters.key === null ? [] : [filters.key]), [filters.key]));
  const given = groupNames.flatMap((name) => {
    const value = filters[name];
    return value === null ? [] : [{ name, text: textOf(name, value, names) }];
  });
  if (given.length === 0) return null;
  return html`
    <ul class="chips" aria-label="Filters">
      ${given.map(
        ({ name, text }) => html`
          <li key=${name}>
            ${groups[name].title}: <strong>${shownName(text)}</strong>
            <a href=${linkOf({ ...filters, [name]: null })} aria-label=${`Take away the filter by ${name}`}
              >×</a
            >
          </li>
        `,
      )}
    </ul>
  `;
}

function textOf(name: GroupName, value: string, keyNames: ReadonlyMap<string, string>): string {
  if (name === 'key') return keyNames.get(value) ?? value;
  if ((name === 'tag' || name === 'group') && value === none) return 'none';
  return name === 'outcome' ? asWords(value) : value;
}
