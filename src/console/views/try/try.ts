import { html } from 'htm/preact';
import { useEffect } from 'preact/hooks';
import type { VNode } from 'preact';
import { orDash, asWords, formatCount, formatDuration, shortId } from '../../widgets/format.ts';
import { useMayChange } from '../../api/session.ts';
import { linkTo } from '../../route.ts';
import type { Route } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { Figure, Figures } from '../../widgets/facts.ts';
import { amountOf } from '../../widgets/amount.ts';
import { FrameTable } from './frame-table.ts';
import { KeyChoice } from './key-choice.ts';
import { RequestForm } from './request-form.ts';
import type { Run } from './run.ts';
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

/** The text of an answer as it grows, how it stands, why it failed, and its frames. */
function Result({ run }: { readonly run: Run }): VNode {
  return html`
    <div class="columns">
      <section>
        <h2>Answer</h2>
        <p class="note" role="status">${stateOf(run)}</p>
        <${Fault} text=${faultOf(run)} />
        <div class="output" role="log" aria-label="Text of the answer" tabindex="0">
          ${run.blocks.map((block, index) => html`<span key=${index}>${block}</span>`)}
        </div>
        <${RunFigures} run=${run} />
      </section>
      <section>
        <h2>Frames</h2>
        <${FrameTable} run=${run} />
      </section>
    </div>
  `;
}

function stateOf({ ending, isStreamed, status, blocks }: Run): string {
  switch (ending) {
    case 'complete':
      return 'The answer is complete.';
    case 'stopped':
      return 'Stopped. The key pays for what it got until then.';
    case 'cut':
    case 'failed':
      return '';
    case null:
      if (status === null) return 'Waiting for the first byte…';
      return isStreamed && blocks.length === 0 ? 'Waiting for the first text…' : 'Receiving…';
  }
}

function faultOf({ ending, failure, status }: Run): string | null {
  if (ending === 'cut')
    return 'The answer was cut: its connection ended before the answer did. The receipt says why.';
  if (ending !== 'failed') return null;
  if (failure === null) return `The answer has the status ${String(status)}.`;
  return failure.code === null ? failure.message : `${failure.code}: ${failure.message}`;
}

/** What can be measured and was said of an answer. */
function RunFigures({ run }: { readonly run: Run }): VNode {
  const { status, requestId, charge, firstByteMs, firstTextMs, totalMs, finish, tokens } = run;
  return html`
    <${Figures}>
      <${Figure}
        label="Status"
        value=${status ?? '–'}
        mood=${status === null ? undefined : status < 400 ? 'good' : 'bad'}
      />
      <${Figure} label="First byte" value=${orDash(firstByteMs, formatDuration)} />
      <${Figure} label="First text" value=${orDash(firstTextMs, formatDuration)} />
      <${Figure} label="Total" value=${orDash(totalMs, formatDuration)} />
      <${Figure} label="Input tokens" value=${orDash(tokens?.input, formatCount)} />
      <${Figure} label="Output tokens" value=${orDash(tokens?.output, formatCount)} />
      <${Figure} label="Finish reason" value=${orDash(finish, asWords)} />
      <${Figure}
        label="Charge"
        value=${orDash(charge, amountOf)}
        note=${charge === null && run.ending !== null ? 'in the record of the request' : undefined}
      />
    <//>
    ${
      requestId !== null &&
      html`
        <p>
          Request${' '}
          <a href=${linkTo('usage', requestId)} title=${requestId}><code>${shortId(requestId)}</code></a>
          ${' '}<span class="note">its record, once it has ended</span>
        </p>
      `
    }
  `;
}
