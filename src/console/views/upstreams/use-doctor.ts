import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { AdminError, checkSession } from '../../api/admin-api.ts';
import { errorText } from '../../api/error-text.ts';
import { stopAtLogout } from '../../api/session.ts';
import { runDoctor } from './run-doctor.ts';
import type { Check } from './run-doctor.ts';

/** A run of the checks. */
interface Run {
  readonly state: 'none' | 'running' | 'done' | 'stopped' | 'failed';
  readonly checks: readonly Check[];
  readonly error: string | null;
}

const none: Run = { state: 'none', checks: [], error: null };

/** Runs the checks of an upstream. They end when the page is left. */
export function useDoctor(name: string) {
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
      const checks = await runDoctor(name, { model, signal: own.signal, onCheck });
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
