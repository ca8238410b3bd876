import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { adminPath, inPath } from '../../api/admin-api.ts';
import { useMayChange } from '../../api/session.ts';
import { useAnswer } from '../../api/use-loaded.ts';
import { linkTo } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { shownName } from '../../widgets/name.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { Facts, Figure, Figures } from '../../widgets/facts.ts';
import { amountOf } from '../../widgets/amount.ts';
import {
  asWords,
  formatAmount,
  formatCount,
  orDash,
  shortName,
  formatDuration,
  formatTime,
} from '../../widgets/format.ts';
import { EditKey } from './edit-key.ts';
import { KeyActions } from './key-actions.ts';
import { KeyState } from './types.ts';
import type { Issued, Key, Budget, Group, Page } from './types.ts';
import { Statement } from './statement.ts';
import { BudgetBar, usedPercent } from './budgets.ts';
import { writeRunning } from './key-list.ts';

interface Props {
  readonly id: string;
  /** Whether its settings are being changed. */
  readonly isEdited: boolean;
  readonly onIssued: (issued: Issued) => void;
}

/** One key: what it has and did, its settings, and what can be done with it. */
export function KeyPage({ id, isEdited, onIssued }: Props): VNode {
  const { answer: key, error, reload } = useAnswer<Key>(adminPath(`keys/${inPath(id)}`));
  const mayChange = useMayChange();
  const isChangeable = key !== null && mayChange && !key.declared && key.revoked_at === null;
  return html`
    <p><a href=${linkTo('keys')}>← All keys</a></p>
    <${Fault} text=${error} />
    ${
      key !== null &&
      (isEdited && isChangeable
        ? html`<${EditKey} of=${key} onChanged=${reload} />`
        : html`
            <${PlaceHeading}>${shownName(key.name)} <${KeyState} of=${key} /><//>
            <p><code>${key.id}</code></p>
            <${KeyFigures} of=${key} />
            <${KeyActions} of=${key} onChanged=${reload} onIssued=${onIssued} />
            <p class="row">
              <a href=${linkTo('usage', null, { key: id })}>Its usage</a>
              <a href=${linkTo('usage', 'records', { key: id })}>Its requests</a>
              <a href=${linkTo('audit', null, { search: id })}>Its audit</a>
              <a href=${linkTo('try', null, { key: id })}>Try a model with it</a>
            </p>
            <${KeyFacts} of=${key} />
            <${Statement} keyId=${id} />
          `)
    }
  `;
}

/** What a key has, has spent and does. */
function KeyFigures({ of: key }: { readonly of: Key }): VNode {
  const { balance, held, spent, budget } = key;
  return html`
    <${Figures}>
      <${Figure}
        label="Balance"
        value=${orDash(balance, amountOf)}
        note=${balance === null ? 'does not pay in advance' : html`besides, held for requests: ${amountOf(held)}`}
        mood=${balance !== null && Number(balance) <= 0 ? 'bad' : undefined}
      />
      <${Figure} label="Spent" value=${amountOf(spent)} />
      <${Figure} label="In progress" value=${writeRunning(key)} />
      ${budget !== null && html`<${BudgetFigure} label="Left of the budget" budget=${budget} of=${shortName(key.name)} />`}
      ${key.group !== null && html`<${GroupFigure} name=${key.group} />`}
    <//>
  `;
}

/** What is left of the budget of a key's group, which its other keys use up as well; nothing for a group without one. */
function GroupFigure({ name }: { readonly name: string }): VNode | null {
  const { answer } = useAnswer<Page<Group>>(adminPath('groups'));
  const budget = answer?.data.find((group) => group.name === name)?.budget ?? null;
  if (budget === null) return null;
  return html`<${BudgetFigure}
    label="Left of the group’s budget"
    budget=${budget}
    of=${`the group ${name}`}
  />`;
}

interface BudgetProps {
  readonly label: string;
  readonly budget: Budget;
  /** Whose budget it is, for screen readers. */
  readonly of: string;
}

function BudgetFigure({ label, budget, of }: BudgetProps): VNode {
  return html`<${Figure}
    label=${label}
    value=${amountOf(budget.available)}
    note=${html`<span class="budget"><${BudgetBar} budget=${budget} of=${of} /></span>`}
    mood=${usedPercent(budget) === 100 ? 'bad' : budget.warned_at === null ? undefined : 'warning'}
  />`;
}

/** The settings of a key, as they are in force. */
function KeyFacts({ of: key }: { readonly of: Key }): VNode {
  const { limits, budget, compatibility } = key;
  return html`
    <div class="columns">
      <section>
        <h2>Limits</h2>
        <${Facts}
          facts=${[
            ['requests at once', count(limits.concurrency)],
            ['requests per minute', count(limits.requests_per_minute)],
            ['wait for a slot', waitOf(limits.queue_wait_ms)],
            ['weight in the queues of upstreams', formatCount(key.weight)],
            ['time for retries to join', joinsOf(key.join_retries_ms)],
            ['tokens per minute', count(limits.tokens_per_minute)],
            ['tokens per day', count(limits.tokens_per_day)],
            ['refused today', writeRefused(key.refused_today)],
          ]}
        />
        <h2>Money</h2>
        <${Facts} facts=${moneyFacts(key, budget)} />
      </section>
      <section>
        <h2>Access</h2>
        <${Facts}
          facts=${[
            ['models', list(key.models, 'all')],
            ['addresses', list(key.allow_from, 'all')],
            ['tags', list(key.tags, 'none')],
            ['made', key.created_at === null ? null : formatTime(key.created_at)],
            ['expires', key.expires_at === null ? 'never' : formatTime(key.expires_at)],
            ['revoked', key.revoked_at === null ? null : formatTime(key.revoked_at)],
          ]}
        />
        <h2>Compatibility</h2>
        <${Facts}
          facts=${Object.entries(compatibility).map(([name, value]) => [asWords(name), writeChoice(value)])}
        />
      </section>
    </div>
  `;
}

function writeChoice(value: string | boolean): string {
  if (typeof value === 'string') return value;
  return value ? 'yes' : 'no';
}

function moneyFacts({ group, low_balance: lowBalance }: Key, budget: Key['budget']) {
  return [
    ['group', group ?? 'none'],
    ['low balance', lowBalance === null ? 'as the config says' : formatAmount(lowBalance)],
    [
      'budget',
      budget === null ? 'none' : `${formatAmount(budget.amount)} a ${budget.per}, ${budget.time_zone}`,
    ],
    ['spent of it', budget && amountOf(budget.spent)],
    ['held of it', budget && amountOf(budget.held)],
    ['warns at', budget && budget.warn_at.length > 0 ? budget.warn_at.join(', ') : null],
    ['refills', budget && formatTime(budget.refills_at)],
  ];
}

function count(value: number | null): string {
  return value === null ? 'no limit' : formatCount(value);
}

function list(values: readonly string[] | null, none: string): string {
  return values === null || values.length === 0 ? none : values.join(', ');
}

/** How many requests were refused today, by which limits. */
function writeRefused(byLimit: Key['refused_today']): string {
  const limits = Object.entries(byLimit).toSorted(([, one], [, other]) => other - one);
  if (limits.length === 0) return 'none';
  return limits.map(([limit, requests]) => `${formatCount(requests)} by ${asWords(limit)}`).join(', ');
}

/** How long a request goes on without its client, so that a retry may join it. */
function joinsOf(milliseconds: number | null): string {
  return milliseconds === null ? 'off' : formatDuration(milliseconds);
}

/** How long a request too many may wait for a slot. */
function waitOf(milliseconds: number): string {
  return milliseconds === 0 ? 'none' : `at most ${formatDuration(milliseconds)}`;
}
