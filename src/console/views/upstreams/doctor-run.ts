import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useMayChange } from '../../api/session-context.ts';
import { Fault } from '../../widgets/fault.ts';
import { Field, Select } from '../../widgets/field.ts';
import { CheckTable } from './check-table.ts';
import { useDoctor } from './use-doctor.ts';
import type { Upstream } from './use-upstreams.ts';

/** Checks an upstream on demand, as `textgate doctor` does. */
export function DoctorRun({ upstream }: { readonly upstream: Upstream }): VNode {
  const mayRun = useMayChange();
  if (mayRun) return html`<${Doctor} upstream=${upstream} />`;
  return html`
    <p class="notice">
      A check calls the provider, and a read-only session may not start one. Log in with the admin token, or
      run ${' '}<code>textgate doctor</code>.
    </p>
  `;
}

function Doctor({ upstream }: { readonly upstream: Upstream }): VNode {
  const [model, setModel] = useState('');
  const { run, start, stop } = useDoctor(upstream.name);
  const isRunning = run.state === 'running';
  const submit = (event: Event): void => {
    event.preventDefault();
    // One button for both, so that the focus stays: the label says what it does.
    if (isRunning) stop();
    else void start(model.trim() === '' ? null : model.trim());
  };
  return html`
    <p id="doctor-cost">
      Sends the provider about ten requests, as the gateway does for clients, and costs a few hundred tokens,
      which no key pays. It takes a minute at most with most providers, and ends when you leave this page.
    </p>
    <form onSubmit=${submit}>
      <${ModelChoice} routes=${upstream.routes} value=${model} onChange=${setModel} />
      <button class=${isRunning ? '' : 'primary'} aria-describedby="doctor-cost">
        ${isRunning ? 'Stop' : 'Check this upstream'}
      </button>
    </form>
    <p role="status">${progressText(run.state, run.checks)}</p>
    <${Fault} text=${run.error} />
    ${run.checks.length > 0 && html`<${CheckTable} checks=${run.checks} />`}
  `;
}

interface ChoiceProps {
  readonly routes: Upstream['routes'];
  readonly value: string;
  readonly onChange: (model: string) => void;
}

/** The model to ask: one of the routes, or any name where not all are known. */
function ModelChoice({ routes, value, onChange }: ChoiceProps): VNode {
  const names = [...new Set((routes?.data ?? []).map(({ upstream_model: there }) => there))];
  if (names.length === 0 || routes?.has_more === true)
    return html`
      <${Field}
        label="Model to ask"
        value=${value}
        onInput=${onChange}
        hint="The model's name there; empty for the first one."
      />
    `;
  return html`
    <${Select}
      label="Model to ask"
      value=${value}
      options=${[['', 'the usual one'], ...names.map((name) => [name, name])]}
      onChange=${onChange}
    />
  `;
}

type DoctorState = ReturnType<typeof useDoctor>['run'];

function progressText(state: DoctorState['state'], checks: DoctorState['checks']): string {
  const done = checks.length === 1 ? '1 check' : `${checks.length} checks`;
  if (state === 'none' || state === 'failed') return '';
  if (state === 'running') return `Running: ${done} done.`;
  if (state === 'stopped') return `Stopped after ${done}.`;
  const count = (status: string): number => checks.filter((check) => check.status === status).length;
  const [faults, warnings] = [count('fault'), count('warning')];
  if (faults + warnings === 0) return `Done: ${done}, nothing to mend.`;
  return `Done: ${done}, ${faults} with a fault, ${warnings} with a warning.`;
}
