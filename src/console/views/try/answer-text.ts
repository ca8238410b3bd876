import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { Fault } from '../../widgets/fault.ts';
import type { Run } from './run.ts';

/** The text of an answer as it grows, how it stands, and why it failed. */
export function AnswerText({ run }: { readonly run: Run }): VNode {
  return html`
    <p class="note" role="status">${stateOf(run)}</p>
    <${Fault} text=${faultOf(run)} />
    <div class="output" role="log" aria-label="Text of the answer" tabindex="0">
      ${run.blocks.map((block, index) => html`<span key=${index}>${block}</span>`)}
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
