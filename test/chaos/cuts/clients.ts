import OpenAI from 'openai';
import { askByOpenAi, askRaw } from './ask.ts';
import type { AskBy } from './ask.ts';

/** When a question is given up by a client, in milliseconds: long before that it has its answer, or fails. */
const maxAskingMs = 60_000;

/** The clients that ask without any other package than the tests need, and those whose packages are in `test/outside`. */
const ownClients: Readonly<Record<string, AskBy>> = {
  raw: askRaw,
  openai7: askByOpenAi(OpenAI, maxAskingMs),
};
const outsideNames: readonly string[] = ['openai4', 'vercel', 'langchain'];

/** The names of all of them. */
export const clientNames: readonly string[] = [...Object.keys(ownClients), ...outsideNames];

/** Those that ask where none is named. */
export const usualClients = Object.keys(ownClients).join(',');

/** Loads the clients of a list of names, parted by commas; throws what is wrong with it, in words. */
export async function loadClients(list: string): Promise<ReadonlyMap<string, AskBy>> {
  const names = list.split(',');
  const unknown = names.find((name) => !clientNames.includes(name));
  if (unknown !== undefined) throw new Error(`--clients: '${unknown}' is none of ${clientNames.join(', ')}`);
  const outside = names.some((name) => outsideNames.includes(name)) ? await loadOutside() : {};
  return new Map(Object.entries({ ...ownClients, ...outside }).filter(([name]) => names.includes(name)));
}

async function loadOutside(): Promise<Readonly<Record<string, AskBy>>> {
  try {
    const { outsideClients } = await import('../../outside/clients/asking-clients.ts');
    return outsideClients;
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error(`${outsideNames.join(', ')} need what 'npm run test:outside' installs`, { cause: error });
  }
}
