import { commandVariables, serveVariables, readVariable } from '../../config/environment.ts';
import type { Environment } from '../../config/environment.ts';
import { didYouMean } from '../did-you-mean.ts';
import { npmAdvice, takenByNpm } from '../commands/arguments.ts';
import type { ServeOptions } from './serve-config.ts';

/** All variables that are read: by `serve`, and by the commands for operators. */
const known = [...serveVariables, ...commandVariables].map(({ name }) => name);

/** Set by Kubernetes in each pod beside a service of the name textgate. */
const ofKubernetes = /^TEXTGATE_(SERVICE_|PORT_\d)/;

/** How many notices are written. */
const maxNotices = 10;

/**
 * What of the environment has no effect on a start, although it looks so: misspelt variables, those of an upstream that
 * the config file names itself, and options that npm took. `text` is the config file's, whose references are no mistakes.
 */
export function environmentNotices(
  environment: Environment,
  { config, upstream }: ServeOptions,
  text: string,
): readonly string[] {
  const isSet = (name: string): boolean => readVariable(environment, name) !== undefined;
  const isUnused = (name: string): boolean => isSet(name) && !text.includes(name);
  const notices = Object.keys(environment)
    .filter((name) => /^TEXTGATE_\w+$/.test(name) && !known.includes(name) && !ofKubernetes.test(name))
    .filter(isUnused)
    .map(describeUnknown);
  const ofUpstream = ['TEXTGATE_UPSTREAM_URL', 'TEXTGATE_UPSTREAM_API_KEY'].filter(isUnused);
  if (config !== undefined)
    notices.push(
      ...ofUpstream.map((name) => `${name} has no effect beside a config file, which names its upstreams`),
    );
  else if (upstream === undefined && !isSet('TEXTGATE_UPSTREAM_URL') && isSet('TEXTGATE_UPSTREAM_API_KEY'))
    notices.push('TEXTGATE_UPSTREAM_API_KEY has no effect without TEXTGATE_UPSTREAM_URL');
  notices.push(
    ...takenByNpm(environment).map((name) => `npm took --${name} as its own option: ${npmAdvice}`),
  );
  return notices.slice(0, maxNotices);
}

function describeUnknown(name: string): string {
  return `${name} has no effect: textgate has no such variable${didYouMean(name, known)}`;
}
