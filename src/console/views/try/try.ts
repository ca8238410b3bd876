import { html } from 'htm/preact';
import { useEffect } from 'preact/hooks';
import type { VNode } from 'preact';
import { orDash, asWords, formatCount, formatDuration, formatShort, shortId } from '../../widgets/format.ts';
import { useMayChange } from '../../api/session.ts';
import { linkTo } from '../../route.ts';
import type { Route } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { Figure, Figures } from '../../widgets/facts.ts';
import { shownName } from '../../widgets/name.ts';
import { amountOf } from '../../widgets/amount.ts';
import { FrameTable } from './frame-table.ts';
import { KeyChoice } from './key-choice.ts';
import { RequestForm } from './request-form.ts';
import type { Run } from './run.ts';
import { useRuns } from './use-runs.ts';
import type { SentRun } from './use-runs.ts';

/** Sends a request to a model, or to two side by side, and shows the answers and their frames as they come. */
export function Try({ route }: { readonly route: Route }): VNode {
  const { runs, start, stop } = useRuns();
  const isRunning = runs.some(({ run }) => run.ending === null);
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
      <${RequestForm}
        keyId=${keyId}
        query=${route.query}
        isRunning=${isRunning}
        onSend=${start}
        onStop=${stop}
      />
    </section>
    <${Results} runs=${runs} />
  `;
}

/** One answer with its frames beside it, or two answers beside each other with their frames below. */
function Results({ runs }: { readonly runs: readonly SentRun[] }): VNode | null {
  const [first, second] = runs;
  if (first === undefined) return null;
  if (second === undefined)
    return html`
      <div class="columns">
        <section>
          <h2>Answer</h2>
          <${Answer} run=${first.run} label="Text of the answer" />
        </section>
        <section>
          <h2>Frames</h2>
          <${FrameTable} run=${first.run} />
        </section>
      </div>
    `;
  return html`
    <div class="columns">
      ${runs.map(
        ({ request: { model }, run }) => html`
          <section key=${model}>
            <h2>${shownName(model)}</h2>
            <${Answer} run=${run} label=${`Text of the answer of ${model}`} />
            <details>
              <summary>Frames<span class="unseen"> of ${model}</span></summary>
              <${FrameTable} run=${run} />
            </details>
          </section>
        `,
      )}
    </div>
  `;
}

/** The text of an answer as it grows, how it stands, and why it failed. */
function Answer({ run, label }: { readonly run: Run; readonly label: string }): VNode {
  return html`
    <p class="note" role="status">${stateOf(run)}</p>
    <${Fault} text=${faultOf(run)} />
    ${run.ending === 'failed' && html`<${CallersView} run=${run} />`}
    <div class="output" role="log" aria-label=${label} tabindex="0">
      ${run.blocks.map((block, index) => html`<span key=${index}>${block}</span>`)}
    </div>
    <${RunFigures} run=${run} />
  `;
}

/** What an error is for a caller: the bytes, and what the SDKs of OpenAI make of it. */
function CallersView({ run: { status, frames } }: { readonly run: Run }): VNode | null {
  if (status === null) return null;
  return html`
    <details>
      <summary>What a caller gets</summary>
      <p>
        The status <code>${status}</code>, for which OpenAI's SDKs raise <code>${errorClass(status)}</code>,
        and:
      </p>
      <pre tabindex="0" aria-label="What a caller gets">${frames.at(-1)?.text ?? ''}</pre>
    </details>
  `;
}

const errorClasses: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  404: 'NotFoundError',
  409: 'ConflictError',
  422: 'UnprocessableEntityError',
  429: 'RateLimitError',
};

/** The class of an error in OpenAI's SDKs, which have the same names in all languages. An error in a stream has no status. */
function errorClass(status: number): string {
  return status >= 500 ? 'InternalServerError' : (errorClasses[status] ?? 'APIError');
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

/** How fast the text came, from its first piece on; `null` where a whole answer has no times of its pieces. */
function tokensPerSecond({ tokens, firstTextMs, totalMs }: Run): number | null {
  const output = tokens?.output ?? null;
  if (output === null || firstTextMs === null || totalMs === null || totalMs <= firstTextMs) return null;
  return (output / (totalMs - firstTextMs)) * 1_000;
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
      <${Figure} label="Output tokens/s" value=${orDash(tokensPerSecond(run), formatShort)} />
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
