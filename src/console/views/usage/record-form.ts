import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Outcome } from '../../../domain/money/consumption.ts';
import { Field, Select, submitBy } from '../../widgets/field.ts';
import { searchedText } from '../../searched-text.ts';
import { Fault } from '../../widgets/fault.ts';
import { asWords } from '../../widgets/format.ts';
import type { RecordFilters } from './usage-query.ts';

/** How a request can have ended, in the order of the list; one that is missing does not compile. */
const outcomes = {
  completed: true,
  incomplete: true,
  refused: true,
  upstream_failed: true,
  upstream_truncated: true,
  first_byte_timeout: true,
  idle_timeout: true,
  total_timeout: true,
  client_closed: true,
  cancelled: true,
  drained: true,
  crashed: true,
  lost: true,
  server_error: true,
} satisfies Record<Outcome, true>;

interface Props {
  readonly filters: RecordFilters;
  readonly onChange: (filters: RecordFilters) => void;
}

/** What requests are chosen by, beside what links to them give. */
export function RecordForm({ filters, onChange }: Props): VNode {
  const { cause, status, min_duration_ms: durationMs, min_amount: amount } = filters;
  const given = {
    cause: cause ?? '',
    status: status ?? '',
    seconds: durationMs === null ? '' : String(Number(durationMs) / 1_000),
    amount: amount ?? '',
  };
  const [typed, setTyped] = useState(given);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => setTyped(given), [JSON.stringify(given)]);
  const type = (name: keyof typeof given) => (value: string) => setTyped({ ...typed, [name]: value });
  const show = (): void => {
    const { seconds } = typed;
    const { text, fault } = searchedText(typed.cause);
    setError(fault);
    if (fault !== null) return;
    onChange({
      ...filters,
      cause: text || null,
      status: typed.status.trim() || null,
      min_duration_ms: seconds.trim() === '' ? null : String(Math.round(Number(seconds) * 1_000)),
      min_amount: typed.amount.trim() || null,
    });
  };
  return html`
    <div class="row">
      <${Select}
        label="Outcome"
        value=${filters.outcome ?? ''}
        options=${[['', 'any'], ...Object.keys(outcomes).map((name) => [name, asWords(name)])]}
        onChange=${(outcome: string) => onChange({ ...filters, outcome: outcome || null })}
      />
      <form class="row" aria-label="More filters" onSubmit=${submitBy(show)}>
        <${Field}
          label="Cause, code or words of the provider"
          value=${typed.cause}
          onInput=${type('cause')}
        />
        <${Field} label="Status" value=${typed.status} onInput=${type('status')} />
        <${Field} label="At least so long, in seconds" value=${typed.seconds} onInput=${type('seconds')} />
        <${Field} label="Charged at least, in USD" value=${typed.amount} onInput=${type('amount')} />
        <button>Show</button>
        <${Fault} text=${error} />
      </form>
    </div>
  `;
}
