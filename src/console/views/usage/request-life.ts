import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { PresentedRecord } from '../../../http/present/record.ts';
import type { ManagedKey } from '../../../http/present/managed-key.ts';
import { orDash, formatCount, formatDuration } from '../../widgets/format.ts';
import { linkTo } from '../../route.ts';
import { CopyButton } from '../../widgets/copy-button.ts';
import { Facts, Figure, Figures } from '../../widgets/facts.ts';
import { Fault } from '../../widgets/fault.ts';
import { amountOf } from '../../widgets/amount.ts';
import { Outcome } from '../../widgets/badges.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { AdminError, adminPath, callAdmin, findAdmin, inPath } from '../../api/admin-api.ts';
import { useLoaded } from '../../api/use-loaded.ts';
import type { Asked } from '../../api/use-loaded.ts';
import { Attempts, journeyOf, moneyOf } from './request-facts.ts';
import { Timings } from './timings.ts';

/** One request from its arrival to its charge. */
export function RequestLife({ id }: { readonly id: string }): VNode {
  const { answer, error, isWaiting, reload } = useRequest(id);
  const isRunning = answer !== null && (answer.record === null ? answer.isRunning : !isEnded(answer.record));
  return html`
    <p><a href=${linkTo('usage')}>← Usage</a> · <a href=${linkTo('usage', 'records')}>Requests</a></p>
    <${PlaceHeading}>Request <code>${id}</code><//>
    <p><${CopyButton} text=${id} subject="the request id" /></p>
    <${Fault} text=${error} />
    <p class="note" role="status">${isWaiting ? 'Reading …' : ''}</p>
    ${
      isRunning &&
      html`<p class="notice">
        This request is in progress: <a href=${linkTo('now')}>see it under Now</a>.${' '}
        <button type="button" class="small" onClick=${reload}>Refresh</button>
      </p>`
    }
    ${
      answer !== null &&
      answer.record === null &&
      !answer.isRunning &&
      html`<p class="empty">
        ${answer.reason} A request that was refused before it was sent to an upstream, or that got the answer
        of another request, is in the log only.
      </p>`
    }
    ${answer !== null && answer.record !== null && html`<${Recorded} record=${answer.record} keyOf=${answer.key} />`}
  `;
}

function isEnded({ outcome }: PresentedRecord): boolean {
  return outcome !== null;
}

interface Props {
  readonly record: PresentedRecord;
  readonly keyOf: NonNullable<ReturnType<typeof useRequest>['answer']>['key'];
}

function Recorded({ record, keyOf }: Props): VNode {
  const { outcome, status, timings, usage, charge } = record;
  return html`
    <${Figures}>
      <${Figure}
        label="Outcome"
        value=${html`<${Outcome} name=${outcome} />`}
        note=${status === null ? undefined : `status ${status}`}
      />
      <${Figure} label="First text" value=${orDash(timings.first_byte_ms, formatDuration)} />
      <${Figure} label="Total" value=${orDash(timings.total_ms, formatDuration)} />
      <${Figure}
        label="Tokens"
        value=${usage === null ? '–' : formatCount(usage.input_tokens + usage.output_tokens)}
        note=${usage === null ? undefined : `${formatCount(usage.input_tokens)} in, ${formatCount(usage.output_tokens)} out`}
      />
      <${Figure} label="Charge" value=${amountOf(charge)} />
    <//>
    <div class="columns">
      <section>
        <h2>What was asked</h2>
        <${Facts} facts=${journeyOf(record, keyOf)} />
      </section>
      <section>
        <h2>Money</h2>
        <${Facts} facts=${moneyOf(record)} />
      </section>
    </div>
    <section>
      <h2>Timings</h2>
      <${Timings} record=${record} />
    </section>
    <section>
      <h2>Attempts</h2>
      <${Attempts} attempts=${record.attempts} />
    </section>
    <details>
      <summary>The record as JSON</summary>
      <pre tabindex="0">${JSON.stringify(record, null, 2)}</pre>
    </details>
  `;
}

/** What is known of a request. */
interface KnownRequest {
  /** `null` before it has one, and for a request that never had one or has it no more. */
  readonly record: PresentedRecord | null;
  /** Whether a request without a record is in progress. */
  readonly isRunning: boolean;
  /** Why there is no record. */
  readonly reason: string | null;
  /** Its key as it is today; `null` if it can't be read. */
  readonly key: ManagedKey | null;
}

/** Reads a request: its record and its key, or whether it is in progress. */
function useRequest(id: string): Asked<KnownRequest> {
  return useLoaded(id, async (signal) => {
    try {
      const path = adminPath(`records/${inPath(id)}`);
      const record = await callAdmin<PresentedRecord>(path, { signal });
      const key = await findAdmin<ManagedKey>(adminPath(`keys/${inPath(record.key_id)}`), signal);
      return { record, isRunning: false, reason: null, key };
    } catch (error) {
      if (!(error instanceof AdminError) || error.status !== 404) throw error;
      const isRunning = await isInProgress(id, signal);
      return { record: null, isRunning, reason: error.message, key: null };
    }
  });
}

async function isInProgress(id: string, signal: AbortSignal): Promise<boolean> {
  const { data } = await callAdmin<{ readonly data: readonly { readonly request_id: string }[] }>(
    adminPath('in-flight'),
    { signal },
  );
  return data.some(({ request_id: other }) => other === id);
}
