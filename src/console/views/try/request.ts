/** A protocol in which a client asks for a text. */
export type Protocol = 'chat' | 'responses';

/** What is sent to a model. */
export interface TryRequest {
  readonly keyId: string;
  readonly model: string;
  readonly protocol: Protocol;
  readonly isStreamed: boolean;
  /** The system text; empty for none. */
  readonly system: string;
  readonly question: string;
  /** The most output tokens; empty for no cap. */
  readonly cap: string;
}

/** The protocols by their names, with the paths of their endpoints. */
export const protocols: Readonly<Record<Protocol, { readonly title: string; readonly path: string }>> = {
  chat: { title: 'Chat Completions', path: 'chat/completions' },
  responses: { title: 'Responses', path: 'responses' },
};

/** The body of a request, as a client of its protocol writes it. */
export function bodyOf({ model, protocol, isStreamed, system, question, cap }: TryRequest): object {
  const maxTokens = cap.trim() === '' ? undefined : Number(cap);
  const stream = isStreamed ? true : undefined;
  if (protocol === 'responses')
    return {
      model,
      ...(system === '' ? {} : { instructions: system }),
      input: question,
      max_output_tokens: maxTokens,
      stream,
    };
  return {
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      { role: 'user', content: question },
    ],
    max_completion_tokens: maxTokens,
    stream,
    stream_options: isStreamed ? { include_usage: true } : undefined,
  };
}

/** The same request as its key's holder sends it, for a shell that has the address and the key in variables. */
export function curlLine(request: TryRequest): string {
  return [
    `curl ${request.isStreamed ? '-N ' : ''}"$TEXTGATE_URL/v1/${protocols[request.protocol].path}" \\`,
    '  -H "Authorization: Bearer $TEXTGATE_KEY" -H \'Content-Type: application/json\' \\',
    `  -d ${quote(JSON.stringify(bodyOf(request)))}`,
  ].join('\n');
}

/** Quotes a text for a shell, which reads nothing within single quotes but their end. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
