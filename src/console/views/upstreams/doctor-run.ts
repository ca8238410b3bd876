import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState, useCallback, useEffect, useRef } from 'preact/hooks';
import type { presentCheck, presentDoctor } from '../../../http/present/doctor.ts';
import { orDash, formatDuration, shortName } from '../../widgets/format.ts';
import { useMayChange, stopAtLogout } from '../../api/session.ts';
import { Fault } from '../../widgets/fault.ts';
import { Field, Select, submitBy } from '../../widgets/field.ts';
import { DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { AdminError, checkSession, errorText, adminPath, inPath, openAdmin } from '../../api/admin-api.ts';
import { readParts } from '../../api/event-stream.ts';
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
  // One button for both, so that the focus stays: the label says what it does.
  const submit = submitBy(() => (isRunning ? stop() : start(model.trim() || null)));
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
    ${
      run.checks.length > 0 &&
      html`<${DataTable}
        caption="Checks"
        columns=${columns}
        rows=${run.checks}
        keyOf=${({ id }: Check) => id}
      />`
    }
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
      options=${[['', 'the usual one'], ...names.map((name) => [name, shortName(name)])]}
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

const moods = { ok: 'good', warning: 'warning', fault: 'bad', skipped: 'plain' } as const;

const columns: readonly Column<Check>[] = [
  { title: 'Check', isName: true, cell: ({ id }) => html`<code>${id}</code>` },
  {
    title: 'Result',
    cell: ({ status }) => html`<span class=${`badge ${moods[status]}`}>${status}</span>`,
  },
  { title: 'Found', isText: true, cell: ({ detail }) => detail },
  {
    title: 'What to do',
    isText: true,
    cell: ({ advice, status }) => advice ?? (status === 'fault' ? 'see the next check' : '–'),
  },
  { title: 'Took', isNumber: true, cell: ({ ms }) => orDash(ms, formatDuration) },
];

/** A run of the checks. */
interface Run {
  readonly state: 'none' | 'running' | 'done' | 'stopped' | 'failed';
  /** In the order in which they were made. */
  readonly checks: readonly Check[];
  readonly error: string | null;
}

const none: Run = { state: 'none', checks: [], error: null };

/** Runs the checks of an upstream. They end when the page is left. */
function useDoctor(name: string) {
  const [run, setRun] = useState(none);
  const controller = useRef<AbortController | null>(null);
  const stop = useCallback(() => controller.current?.abort(), []);
  useEffect(() => stop, [name]);
  useEffect(() => stopAtLogout(stop), []);
  const start = async (model: string | null): Promise<void> => {
    stop();
    const own = new AbortController();
    controller.current = own;
    setRun({ ...none, state: 'running' });
    const update = (change: (before: Run) => Run): void => {
      if (controller.current === own) setRun(change);
    };
    try {
      const onCheck = (check: Check): void =>
        update((before) => ({ ...before, checks: [...before.checks, check] }));
      const checks = await runDoctor(name, model, own.signal, onCheck);
      update(() => ({ state: 'done', checks, error: null }));
    } catch (failure) {
      const state = own.signal.aborted ? 'stopped' : 'failed';
      // The connection broke off, perhaps because the session ended in another tab or by its time: the checks end with it.
      if (state === 'failed' && !(failure instanceof AdminError && failure.status !== null)) checkSession();
      update(({ checks }) => ({ state, checks, error: state === 'failed' ? errorText(failure) : null }));
    }
  };
  return { run, start, stop };
}

/** A check of an upstream. */
type Check = ReturnType<typeof presentCheck>;

type Report = ReturnType<typeof presentDoctor>;

/**
 * Has the gateway check an upstream with a model, by its name there, or with the usual one (`null`). Calls back with each check
 * as it is done. Resolves with all checks; throws what the gateway says against it.
 */
async function runDoctor(
  name: string,
  model: string | null,
  signal: AbortSignal,
  onCheck: (check: Check) => void,
): Promise<readonly Check[]> {
  const answer = await openAdmin(adminPath(`upstreams/${inPath(name)}/doctor`), {
    method: 'POST',
    accept: 'text/event-stream',
    body: model === null ? {} : { model },
    signal,
  });
  for await (const parts of readParts(answer)) {
    for (const { type, name: event, text } of parts) {
      if (type !== 'event') continue;
      const value: unknown = JSON.parse(text);
      if (event === 'check') onCheck(value as Check);
      if (event === 'report') return (value as Report).upstreams[0]?.checks ?? [];
      if (event === 'error') throw new AdminError((value as { error: { message: string } }).error.message);
    }
  }
  throw new AdminError('The connection to the gateway ended before the last check.');
}
