import { html } from 'htm/preact';
import { useEffect } from 'preact/hooks';
import type { VNode } from 'preact';
import { useMayChange } from '../../api/session-context.ts';
import type { Route } from '../../route.ts';
import { AnswerText } from './answer-text.ts';
import { FrameTable } from './frame-table.ts';
import { KeyChoice } from './key-choice.ts';
import { RequestForm } from './request-form.ts';
import type { Run } from './run.ts';
import { RunFigures } from './run-figures.ts';
import { useRun } from './use-run.ts';

/** Sends a request as one of the keys, and shows the answer and its frames as they come. */
export function Try({ route }: { readonly route: Route }): VNode {
  const { run, start, stop } = useRun();
  const isRunning = run !== null && run.ending === null;
  useEffect(() => {
    if (!isRunning) return;
    const stopByEscape = ({ key }: KeyboardEvent): void => {
      if (key === 'Escape') stop();
    };
    document.addEventListener('keydown', stopByEscape);
    return () => document.removeEventListener('keydown', stopByEscape);
  }, [isRunning]);
  if (!useMayChange())
    return html`
      <p class="notice">
        This session is read-only. A try-out is a request that is recorded and charged to a key, so it needs
        the admin token: log out, and log in with that.
      </p>
    `;
  const keyId = route.query.get('key');
  return html`
    <section>
      <h2>Request</h2>
      <${KeyChoice} keyId=${keyId} query=${route.query} />
      ${
        keyId !== null &&
        html`
          <${RequestForm}
            keyId=${keyId}
            query=${route.query}
            isRunning=${isRunning}
            onSend=${start}
            onStop=${stop}
          />
        `
      }
    </section>
    ${run !== null && html`<${Result} run=${run} />`}
  `;
}

function Result({ run }: { readonly run: Run }): VNode {
  return html`
    <div class="columns">
      <section>
        <h2>Answer</h2>
        <${AnswerText} run=${run} />
        <${RunFigures} run=${run} />
      </section>
      <section>
        <h2>Frames</h2>
        <${FrameTable} run=${run} />
      </section>
    </div>
  `;
}
