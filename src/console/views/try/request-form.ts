import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath } from '../../api/admin-api.ts';
import { useAnswer } from '../../api/use-loaded.ts';
import { goTo, linkTo } from '../../route.ts';
import { CopyButton } from '../../widgets/copy-button.ts';
import { Fault } from '../../widgets/fault.ts';
import { Field, Select, submitBy } from '../../widgets/field.ts';
import { languages, writeCode } from './code.ts';
import { shortName } from '../../widgets/format.ts';
import type { Language } from './code.ts';
import { protocols } from './request.ts';
import type { Protocol, TryRequest } from './request.ts';

interface Props {
  readonly keyId: string | null;
  /** What is chosen, but not what is typed: that must be in no address. */
  readonly query: URLSearchParams;
  readonly isRunning: boolean;
  /** With two requests where a second model is chosen. */
  readonly onSend: (requests: readonly TryRequest[]) => void;
  readonly onStop: () => void;
}

/** What is typed. */
type Typed = Pick<TryRequest, 'system' | 'question' | 'cap'>;

/** The request to a model. Its choices are in the address, so that they can be linked to. */
export function RequestForm({ keyId, query, isRunning, onSend, onStop }: Props): VNode {
  const { answer, error } = useAnswer<{ readonly data: readonly { readonly id: string }[] }>(
    adminPath('try/models', { key: keyId }),
  );
  const [typed, setTyped] = useState<Typed>({ system: '', question: 'Say hello in one sentence.', cap: '' });
  if (answer === null) return html`<${Fault} text=${error} />`;
  const models = answer.data.map(({ id }) => id);
  if (models.length === 0)
    return html`
      <div class="empty">
        No model is offered to this key. Add one to <code>models</code> in the config, or see whether the
        ${' '}<a href=${linkTo('keys', keyId)}>key</a> is restricted to models that the config does not have.
      </div>
    `;
  const request: TryRequest = { keyId, ...typed, ...choicesOf(query, models) };
  const other = otherModel(query, models, request.model);
  const requests = other === null ? [request] : [request, { ...request, model: other }];
  const submit = submitBy(() => isRunning || onSend(requests));
  return html`
    <${Fault} text=${error} />
    <form onSubmit=${submit} onKeyDown=${submitByKeys}>
      <${Choices} query=${query} request=${request} other=${other} models=${models} />
      <${Texts} typed=${typed} onChange=${setTyped} />
      <div class="row">
        <button class="primary" aria-disabled=${isRunning}>Send</button>
        <button type="button" aria-disabled=${!isRunning} onClick=${onStop}>Stop</button>
        <span class="hint">Ctrl+Enter sends, Escape stops.</span>
      </div>
    </form>
    <${Code} request=${request} />
  `;
}

/** What the address says, or the first choice where it says nothing that there is. */
function choicesOf(
  query: URLSearchParams,
  models: readonly string[],
): Pick<TryRequest, 'model' | 'protocol' | 'isStreamed'> {
  const model = query.get('model') ?? '';
  return {
    model: models.includes(model) ? model : (models[0] ?? ''),
    protocol: query.get('protocol') === 'responses' ? 'responses' : 'chat',
    isStreamed: query.get('answer') !== 'whole',
  };
}

/** The model whose answer is compared; `null` for none. */
function otherModel(query: URLSearchParams, models: readonly string[], model: string): string | null {
  const other = query.get('with');
  return other !== null && other !== model && models.includes(other) ? other : null;
}

function Choices({
  query,
  request: { model, protocol, isStreamed },
  other,
  models,
}: {
  readonly query: URLSearchParams;
  readonly request: TryRequest;
  readonly other: string | null;
  readonly models: readonly string[];
}): VNode {
  const choose = (name: string) => (value: string) =>
    goTo(linkTo('try', null, { ...Object.fromEntries(query), [name]: value }));
  return html`
    <div class="row">
      <${Select}
        label="Model"
        value=${model}
        options=${models.map((id) => [id, shortName(id)])}
        onChange=${choose('model')}
      />
      ${
        models.length > 1 &&
        html`<${Select}
          label="Compare with"
          value=${other ?? ''}
          options=${[['', 'No other model'], ...models.filter((id) => id !== model).map((id) => [id, shortName(id)])]}
          onChange=${choose('with')}
        />`
      }
      <${Select}
        label="Protocol"
        value=${protocol}
        options=${(Object.keys(protocols) as Protocol[]).map((name) => [name, protocols[name].title])}
        onChange=${choose('protocol')}
      />
      <${Select}
        label="Answer"
        value=${isStreamed ? 'streamed' : 'whole'}
        options=${[
          ['streamed', 'Streamed'],
          ['whole', 'Whole'],
        ]}
        onChange=${choose('answer')}
      />
    </div>
  `;
}

function Texts({
  typed,
  onChange,
}: {
  readonly typed: Typed;
  readonly onChange: (typed: Typed) => void;
}): VNode {
  const change = (name: keyof Typed) => (value: string) => onChange({ ...typed, [name]: value });
  return html`
    <${Field} label="System text (optional)" rows=${2} value=${typed.system} onInput=${change('system')} />
    <${Field}
      label="Question"
      rows=${4}
      value=${typed.question}
      onInput=${change('question')}
      required
      hint="What is typed here is in no address and in no log of the gateway."
    />
    <${Field}
      label="Most output tokens (optional)"
      type="number"
      min="1"
      value=${typed.cap}
      onInput=${change('cap')}
    />
  `;
}

/** Sends the form from within a text of several lines, too. */
function submitByKeys(event: KeyboardEvent): void {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  (event.currentTarget as HTMLFormElement).requestSubmit();
}

/** The request as a caller would send it, to be copied. */
function Code({ request }: { readonly request: TryRequest }): VNode {
  const [language, setLanguage] = useState<Language>('curl');
  const code = writeCode(request, language);
  return html`
    <details>
      <summary>The same request as code</summary>
      <${Select} label="Language" value=${language} options=${languages} onChange=${setLanguage} />
      <pre tabindex="0" aria-label="The same request as code">${code}</pre>
      <${CopyButton} text=${code} subject="the code" />
      <p class="hint">
        <code>TEXTGATE_URL</code> is the address for clients, as <code>http://127.0.0.1:8080</code>, and
        ${' '}<code>TEXTGATE_KEY</code> the key's secret, which the gateway does not store.
      </p>
    </details>
  `;
}
