import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { readCsv } from '../../api/read-csv.ts';
import { errorText } from '../../api/error-text.ts';
import { Fault } from '../../widgets/fault.ts';
import { saveFile } from '../../widgets/save-file.ts';

/** How many pages of 1,000 rows are saved. */
const maxPages = 100;

interface Props {
  /** The parameters of the usage that is saved. */
  readonly parameters: Readonly<Record<string, string | null>>;
  readonly name: string;
}

/** Saves usage as CSV. A link could not: it is the request's headers that ask for CSV, and a list has several pages. */
export function CsvButton({ parameters, name }: Props): VNode {
  const [said, setSaid] = useState('');
  const [error, setError] = useState<string | null>(null);
  const save = async (): Promise<void> => {
    setSaid('Reading …');
    setError(null);
    try {
      const { text, isWhole } = await readCsv('usage', parameters, maxPages);
      saveFile(name, 'text/csv', text);
      setSaid(
        isWhole ? 'Saved.' : `Saved the first ${maxPages},000 rows; choose a shorter time for all of them.`,
      );
    } catch (failure) {
      setSaid('');
      setError(errorText(failure));
    }
  };
  return html`
    <p>
      <button type="button" onClick=${save}>Save as CSV</button>${' '}
      <span class="note" role="status">${said}</span>
    </p>
    <${Fault} text=${error} />
  `;
}
