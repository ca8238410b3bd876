import type { Config } from '../../config/schema/schema.ts';
import { MeasuredPrompt, namedPrompt } from '../../domain/money/hidden-prompt.ts';
import type { HiddenPrompt } from '../../domain/money/hidden-prompt.ts';
import type { OfferedModel } from '../../domain/routing.ts';
import { isSameUpstream } from './same-upstream.ts';

/** Finds the hidden prompt of a model at an upstream. */
export type HiddenPromptOf = (upstream: string, upstreamModel: string) => HiddenPrompt;

/** The config that is replaced, with its models on offer. */
interface Previous {
  readonly config: Config;
  readonly models: { readonly offered: () => Iterable<OfferedModel> };
}

/**
 * The most tokens that providers were seen to add to short questions, by host, where recordings of their answers show it:
 * the first figure, until a process has measured its own.
 */
const knownTokens: ReadonlyMap<string, number> = new Map([
  ['api.anthropic.com', 0],
  ['api.deepseek.com', 64],
  ['api.mistral.ai', 0],
  ['api.openai.com', 0],
  ['api.x.ai', 512],
]);

/**
 * The hidden prompts of a config's models: as long as the config says, or measured. What was measured is kept for upstreams
 * that have not changed, and for the models of lists that are fetched again.
 */
export function composeHiddenPrompts({ upstreams }: Config, previous: Previous | null): HiddenPromptOf {
  const prompts = new Map<string, HiddenPrompt>();
  for (const { routes } of previous?.models.offered() ?? [])
    for (const { upstream, model, hidden } of routes)
      if (hidden !== undefined && isSameUpstream(upstreams[upstream], previous?.config.upstreams[upstream]))
        prompts.set(nameOf(upstream, model), hidden);
  return (upstream, model) => {
    const name = nameOf(upstream, model);
    const prompt = prompts.get(name) ?? firstOf(upstreams[upstream]);
    prompts.set(name, prompt);
    return prompt;
  };
}

function firstOf(config: Config['upstreams'][string] | undefined): HiddenPrompt {
  if (config?.hiddenPrompt !== undefined) return namedPrompt(config.hiddenPrompt);
  return new MeasuredPrompt(
    config?.url.protocol === 'demo:' ? 0 : knownTokens.get(config?.url.hostname ?? ''),
  );
}

function nameOf(upstream: string, model: string): string {
  return JSON.stringify([upstream, model]);
}
