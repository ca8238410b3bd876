import type { RequestTokens } from '../ports/upstream-limiters.ts';

/** How many requests some are, and how many tokens are expected of them together. */
export interface Load extends RequestTokens {
  readonly requests: number;
}

/** What is ahead of a request: of all that go before it, and of those among them that wait for the same models. */
export interface Ahead {
  readonly all: Load;
  readonly lane: Load;
}

export const noTokens: RequestTokens = { input: 0, output: 0 };

export const noLoad: Load = { requests: 0, ...noTokens };

/** A load to which requests are added, or from which they are taken. */
export class LoadSum implements Load {
  requests: number;
  input: number;
  output: number;

  /** Begins with what another load is now. */
  constructor({ requests, input, output }: Load = noLoad) {
    this.requests = requests;
    this.input = input;
    this.output = output;
  }

  add({ input, output }: RequestTokens): void {
    this.requests++;
    this.input += input;
    this.output += output;
  }

  addAll({ requests, input, output }: Load): void {
    this.requests += requests;
    this.input += input;
    this.output += output;
  }

  remove({ input, output }: RequestTokens): void {
    this.requests--;
    this.input -= input;
    this.output -= output;
  }
}

/** A request in progress at an upstream. */
export interface CallInFlight {
  /** The order in which requests started there. */
  readonly seq: number;
  /** On the monotonic clock. */
  readonly startedMs: number;
  /** The most that is expected. */
  readonly tokens: RequestTokens;
  /** The tokens that limits of its upstream which are not configured were charged for it. */
  planned: RequestTokens;
  /** Whether the head of its answer is here. */
  isAnswered: boolean;
  /** Whether its input is counted as a report shows it, rather than as planned. */
  isInputSeen: boolean;
}
