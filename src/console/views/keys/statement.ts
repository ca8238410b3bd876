import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath, inPath, openAdmin } from '../../api/admin-api.ts';
import { useAction } from '../../api/use-action.ts';
import { Fault } from '../../widgets/fault.ts';
import { Field, submitBy } from '../../widgets/field.ts';
import { saveFile } from '../../widgets/save-file.ts';

/** Downloads the signed statement of a key. */
export function Statement({ keyId }: { readonly keyId: string }): VNode {
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  /** The last row of a statement that has not all rows of its period. */
  const [last, setLast] = useState<string | null>(null);
  const { run: download, error } = useAction(async (after: string | null) => {
    const text = await readStatement(keyId, { from: from || null, to: to || null, after });
    saveFile(nameOf(keyId, { from, to, after }), 'text/plain', text);
    setLast(lastRowOf(text));
  });
  const changed = (set: (value: string) => void) => (value: string) => {
    set(value);
    setLast(null);
  };
  return html`
    <section>
      <h2>Statement</h2>
      <p class="note">
        All that was paid in and charged, row by row, signed. Days begin at midnight UTC; a period ends in
        front of its last day. Without days: all rows.
      </p>
      <form class="row" onSubmit=${submitBy(() => download(null))}>
        <${Field} label="From" type="date" value=${from} onInput=${changed(setFrom)} />
        <${Field} label="Up to, without this day" type="date" value=${to} onInput=${changed(setTo)} />
        <button>Download the statement</button>
        ${
          last !== null &&
          html`<button type="button" onClick=${() => download(last)}>Download the rows after ${last}</button>`
        }
      </form>
      ${last !== null && html`<p class="notice">The statement ends at row ${last}; there are more rows.</p>`}
      <${Fault} text=${error} />
    </section>
  `;
}

interface Period {
  readonly from: string | null;
  readonly to: string | null;
  readonly after: string | null;
}

async function readStatement(keyId: string, period: Period): Promise<string> {
  const answer = await openAdmin(adminPath(`keys/${inPath(keyId)}/statement`, { ...period }));
  return answer.text();
}

/** The number of the last row, if the statement says that its period has more rows. */
function lastRowOf(text: string): string | null {
  if (!/^more yes$/m.test(text)) return null;
  return /^closing (\d+) /m.exec(text)?.[1] ?? null;
}

function nameOf(keyId: string, { from, to, after }: Period): string {
  const parts = ['statement', keyId, from, to, after === null ? null : `after-${after}`];
  return `${parts.filter((part) => part !== null && part !== '').join('_')}.txt`;
}
