import { sayTexts, startUpstream } from '../../support/scripted-upstream.ts';

/** What an answer of the upstream begins with: no answer is empty. */
const prefix = 'echo:';

/** An upstream that answers with the text of the last message, so that each client sees what has reached the upstream. */
export async function startEcho() {
  const upstream = await startUpstream();
  let lastBody = '';
  upstream.play((response, request) => {
    upstream.seen.length = 0;
    lastBody = request.body;
    const { messages } = JSON.parse(lastBody) as { messages: readonly { content: string }[] };
    return sayTexts([`${prefix}${messages.at(-1)?.content}`])(response, request);
  });
  return { url: upstream.url, lastBody: () => lastBody, close: () => upstream.close() };
}

/** The text that has reached the upstream, from a whole answer of either protocol; `null` in any other body. */
export function echoed(body: string): string | null {
  const { choices, output } = JSON.parse(body) as {
    choices?: readonly { message: { content: string } }[];
    output?: readonly { content: readonly { text: string }[] }[];
  };
  const text = choices?.[0]?.message.content ?? output?.[0]?.content[0]?.text;
  return text?.startsWith(prefix) ? text.slice(prefix.length) : null;
}
