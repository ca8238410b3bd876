import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { boundsOf, timeTitles } from '../chosen-time.ts';
import type { Bounds, ChosenTime, TimeName } from '../chosen-time.ts';
import { Fault } from './fault.ts';
import { Field, Select } from './field.ts';
import { formatTime, localText, readLocal, viewersZone } from './format.ts';

interface Props {
  readonly time: ChosenTime;
  readonly names: readonly TimeName[];
  readonly onChange: (time: ChosenTime) => void;
}

/** Which time is shown: one of some that go on with the clock, or one between two ends, in the zone of the viewer. */
export function TimeChoice({ time, names, onChange }: Props): VNode {
  const { given } = time;
  const choose = (value: string): void => {
    const name = names.find((one) => one === value) ?? null;
    onChange({ name, given: name === null ? boundsOf(time, Date.now()) : null });
  };
  return html`
    <${Select}
      label="Time"
      value=${time.name ?? 'other'}
      options=${[...names.map((name) => [name, timeTitles[name]]), ['other', 'Other time']]}
      onChange=${choose}
    />
    ${given !== null && html`<${Ends} given=${given} onChange=${onChange} />`}
  `;
}

interface EndsProps {
  readonly given: Bounds;
  readonly onChange: (time: ChosenTime) => void;
}

function Ends({ given, onChange }: EndsProps): VNode {
  const [error, setError] = useState<string | null>(null);
  const change = (name: keyof Bounds) => (value: string) => {
    const read = readLocal(value, given[name]);
    if (read === null) return;
    const next = { ...given, [name]: read };
    const isForward = next.from < next.to;
    setError(isForward ? null : 'The first time is not before the last one: nothing has changed yet.');
    if (isForward) onChange({ name: null, given: next });
  };
  const field = (label: string, name: keyof Bounds): VNode =>
    html`<${Field}
      label=${label}
      type="datetime-local"
      step="1"
      value=${localText(given[name])}
      onInput=${change(name)}
    />`;
  return html`${field('From', 'from')} ${field('To', 'to')} <${Fault} text=${error} />`;
}

/** The two ends of a time in words, with the zone in which they are. */
export function boundsText({ from, to }: Bounds): string {
  return `${formatTime(from)} to ${formatTime(to)}, in your zone, ${viewersZone}`;
}
