import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createOpenResponses } from '@ai-sdk/open-responses';
import { ChatOpenAI } from '@langchain/openai';
import { APICallError, generateText, RetryError, streamText } from 'ai';
import type { LanguageModel } from 'ai';
import { OpenAI as OpenAI4 } from 'openai4';
import { askByOpenAi, brokeOff, headersOf, RefusedError, throwRefusal } from '../../chaos/cuts/ask.ts';
import type { Asked, AskBy, Question } from '../../chaos/cuts/ask.ts';

/**
 * When an application gives up a call of openai 4, in milliseconds: behind a whole answer that was cut in the middle of its body
 * the library waits without end, as node-fetch 2 does not tell it.
 */
const maxOpenAi4Ms = 5_000;

/**
 * The libraries of others that ask the questions of `npm run chaos cuts`, each with its own settings of how often it sends a
 * failed request again. Headers are given as an application gives them.
 */
export const outsideClients: Readonly<Record<string, AskBy>> = {
  openai4: askByOpenAi(OpenAI4 as unknown as Parameters<typeof askByOpenAi>[0], maxOpenAi4Ms),
  vercel: (question, asked) => askVercel(question, asked).catch(throwVercelRefusal),
  langchain: (question, asked) => askLangChain(question, asked).catch(throwRefusal),
};

/** The model of a provider of the Vercel AI SDK, of which it has two for each protocol. */
function vercelModel({ number, protocol }: Question, { url, secret }: Asked): LanguageModel {
  const provider = { name: 'textgate', baseURL: `${url}/v1`, apiKey: secret };
  if (number % 2 === 0) {
    const openai = createOpenAI(provider);
    return protocol === 'chat' ? openai.chat('small') : openai('small');
  }
  if (protocol === 'chat') return createOpenAICompatible(provider)('small');
  return createOpenResponses({ ...provider, url: `${provider.baseURL}/responses` })('small');
}

async function askVercel(question: Question, asked: Asked): Promise<string> {
  const call = {
    model: vercelModel(question, asked),
    prompt: question.prompt,
    headers: headersOf(question, asked),
  };
  if (!question.stream) return (await generateText(call)).text;
  let text = '';
  let isComplete = false;
  for await (const part of streamText({ ...call, onError: () => {} }).stream) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'text-delta') text += part.text;
    isComplete ||= part.type === 'finish' && part.finishReason === 'stop';
  }
  if (!isComplete) throw new Error(brokeOff);
  return text;
}

function throwVercelRefusal(error: unknown): never {
  const last = RetryError.isInstance(error) ? error.lastError : error;
  if (!APICallError.isInstance(last) || last.statusCode === undefined || last.statusCode === 200) throw error;
  const code = /"code":"(\w+)"/.exec(last.responseBody ?? '')?.[1];
  throw new RefusedError(last.statusCode, String(code), last.message);
}

/** A model for one question: the headers of a call reach whole answers in one of its options, and streams in another one. */
async function askLangChain(question: Question, asked: Asked): Promise<string> {
  const model = new ChatOpenAI({
    model: 'small',
    apiKey: asked.secret,
    configuration: { baseURL: `${asked.url}/v1`, defaultHeaders: headersOf(question, asked) },
    useResponsesApi: question.protocol === 'responses',
  });
  if (!question.stream) return (await model.invoke(question.prompt)).text;
  const chunks = await Array.fromAsync(await model.stream(question.prompt));
  const answer = chunks.reduce((sum, chunk) => sum.concat(chunk));
  const { finish_reason: reason, status } = answer.response_metadata as {
    readonly finish_reason?: string;
    readonly status?: string;
  };
  if (reason !== 'stop' && status !== 'completed') throw new Error(brokeOff);
  return answer.text;
}
