import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { CopyButton } from '../../widgets/copy-button.ts';

const lines = `upstreams:
  local:
    url: http://127.0.0.1:8000/v1
    # apiKey: \${UPSTREAM_API_KEY}
models:
  small:
    routes: [{ upstream: local, model: the-name-there }]
    price: { input: "0.15", output: "0.60" } # USD per million tokens; or free: true
`;

/** What to add to the config of a gateway without upstreams. */
export function NoUpstreams(): VNode {
  return html`
    <p>
      The config has no upstream. Add one, and a model that it serves; the running gateway takes it over on a
      reload.
    </p>
    <pre>${lines}</pre>
    <p><${CopyButton} text=${lines} subject="the lines" /></p>
  `;
}
