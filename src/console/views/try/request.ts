/** A protocol in which a client asks for a text. */
export type Protocol = 'chat' | 'responses';

/** What is sent to a model. */
export interface TryRequest {
  /** `null` for the playground's own key. */
  readonly keyId: string | null;
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
