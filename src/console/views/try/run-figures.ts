import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { linkTo } from '../../route.ts';
import { Figure, Figures } from '../../widgets/figure.ts';
import { asWords, formatAmount, formatCount, formatDuration, shortId } from '../../widgets/format.ts';
import type { Run } from './run.ts';

/** What can be measured and was said of an answer. */
export function RunFigures({ run }: { readonly run: Run }): VNode {
  const { status, requestId, charge, firstByteMs, firstTextMs, totalMs, finish, tokens } = run;
  return html`
    <${Figures}>
      <${Figure}
        label="Status"
        value=${status ?? '–'}
        mood=${status === null ? undefined : status < 400 ? 'good' : 'bad'}
      />
      <${Figure} label="First byte" value=${time(firstByteMs)} />
      <${Figure} label="First text" value=${time(firstTextMs)} />
      <${Figure} label="Total" value=${time(totalMs)} />
      <${Figure} label="Input tokens" value=${count(tokens?.input)} />
      <${Figure} label="Output tokens" value=${count(tokens?.output)} />
      <${Figure} label="Finish reason" value=${finish === null ? '–' : asWords(finish)} />
      <${Figure}
        label="Charge"
        value=${charge === null ? '–' : formatAmount(charge)}
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

function count(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : formatCount(value);
}

function time(milliseconds: number | null): string {
  return milliseconds === null ? '–' : formatDuration(milliseconds);
}
