import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { goTo } from '../../route.ts';
import { Field, Select } from '../../widgets/field.ts';
import { groupNames, groups, measureNames, measureTitles } from './groups.ts';
import type { GroupName, MeasureName } from './groups.ts';
import { isDay, rangeNames, rangeTitles } from './time-range.ts';
import type { Days, RangeName } from './time-range.ts';
import { usageLink } from './usage-query.ts';
import type { UsageQuery } from './usage-query.ts';

interface Props {
  readonly query: UsageQuery;
  /** The days that are shown, from which other ones are chosen. */
  readonly days: Days;
}

/** What is shown, for which time and by what. Each choice is a place of its own, with a link. */
export function Controls({ query, days }: Props): VNode {
  const change = (changed: Partial<UsageQuery>): void => goTo(usageLink({ ...query, ...changed }));
  const changeDays = (changed: Partial<Days>): void => {
    const next = { ...days, ...changed };
    // A date that is being typed is not one yet.
    if (isDay(next.first) && isDay(next.last)) change({ range: 'days', days: next });
  };
  return html`
    <div class="row">
      <${Select}
        label="Time"
        value=${query.range}
        options=${rangeNames.map((name) => [name, rangeTitles[name]])}
        onChange=${(range: RangeName) => change({ range, days })}
      />
      ${
        query.range === 'days' &&
        html`
          <${Field}
            label="First day"
            type="date"
            value=${days.first}
            onInput=${(first: string) => changeDays({ first })}
          />
          <${Field}
            label="Last day"
            type="date"
            value=${days.last}
            onInput=${(last: string) => changeDays({ last })}
          />
        `
      }
      <${Select}
        label="By"
        value=${query.by}
        options=${groupNames.map((name) => [name, groups[name].title])}
        onChange=${(by: GroupName) => change({ by })}
      />
      <${Select}
        label="Shown"
        value=${query.show}
        options=${measureNames.map((name) => [name, measureTitles[name]])}
        onChange=${(show: MeasureName) => change({ show })}
      />
    </div>
  `;
}
