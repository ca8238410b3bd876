import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { formatUsd, maxNanos, nanosPerUsd, parseUsd } from '../../shared/money.ts';
import { holdFor, mostInputTokens, unknownHiddenTokens } from '../../domain/money/hold-estimate.ts';
import { outputWithin } from '../../domain/money/pricing.ts';
import type { ClientConnection } from '../client-connection.ts';
import { hiddenTokensOf, leastOutputTokens } from './reserve.ts';
import type { TextWork } from '../stages.ts';

/** The header with the most that a request may cost, in USD. */
const header = 'x-textgate-max-cost';

/** The least output, in tokens, for which a request without an output cap is sent: less is no answer, and would be paid. */
const leastUsefulTokens = 16;

/**
 * Holds a request against the ceiling of costs that its client set, if it did. By the bound of a strict hold, the request
 * may cost the dearest input and output up to its cap; if that is more than the ceiling, it is refused. A request without
 * a cap gets one: what the ceiling pays for, at most the model's `holdTokens`.
 */
export function limitCost(work: TextWork, client: Pick<ClientConnection, 'maxCost'>): TextWork | Refusal {
  const ceilingNanos = readMaxCost(client);
  if (ceilingNanos === null) return work;
  if (isRefusal(ceilingNanos)) return ceilingNanos;
  const { request, model, routes } = work;
  const hiddenTokens = hiddenTokensOf(routes);
  const inputTokens = mostInputTokens(request.turns, hiddenTokens);
  const affordable = outputWithin(ceilingNanos, inputTokens, model.price);
  const leastTokens = leastOutputTokens(routes);
  const wanted = Math.max(request.maxOutputTokens ?? model.holdTokens, leastTokens);
  const least = request.maxOutputTokens === null ? Math.max(leastUsefulTokens, leastTokens) : wanted;
  if (affordable < Math.min(wanted, least)) {
    const terms = { holdTokens: wanted, strict: true, hiddenTokens };
    const neededNanos = holdFor({ turns: request.turns, maxOutputTokens: wanted }, model.price, terms);
    return tooDear({ ceilingNanos, neededNanos, inputTokens, outputTokens: wanted, affordable, leastTokens });
  }
  // A longer prompt than was ever measured is paid as far as the ceiling pays for it.
  const longest = mostInputTokens(request.turns, Math.max(hiddenTokens, unknownHiddenTokens));
  const affordableBeside = outputWithin(ceilingNanos, longest, model.price);
  if (affordable === Infinity) {
    const most = affordableBeside === Infinity ? longest : inputTokens;
    return { ...work, ceiling: { inputTokens: most, outputTokens: Infinity } };
  }
  const outputTokens = Math.min(wanted, affordable);
  const ceiling = { inputTokens: affordableBeside >= outputTokens ? longest : inputTokens, outputTokens };
  const limited = { ...request, maxOutputTokens: outputTokens };
  return { ...work, request: limited, ceiling };
}

/** Why a request with a fixed price in nano-USD may not be sent; `null` if its client set no lower ceiling. */
export function refuseCost(costNanos: number, client: Pick<ClientConnection, 'maxCost'>): Refusal | null {
  const ceilingNanos = readMaxCost(client);
  if (ceilingNanos === null || isRefusal(ceilingNanos)) return ceilingNanos;
  if (costNanos <= ceilingNanos) return null;
  const [cost, ceiling] = [formatUsd(costNanos), formatUsd(ceilingNanos)];
  return exceeded(
    `This request costs ${cost} USD, which is more than its '${header}' of ${ceiling} USD. ` +
      `Raise the header to ${cost} or leave it out.`,
  );
}

/** The ceiling in nano-USD; `null` without the header. */
function readMaxCost({ maxCost }: Pick<ClientConnection, 'maxCost'>): number | null | Refusal {
  if (maxCost === undefined) return null;
  return (
    parseUsd(maxCost) ??
    refuse(
      'invalid_value',
      `Invalid '${header}': expected one amount of USD, such as 0.05, with at most nine decimals and up to ${Math.floor(maxNanos / nanosPerUsd)}.`,
      { param: header },
    )
  );
}

/** What a request may cost, and what its ceiling pays for. */
interface Estimate {
  readonly ceilingNanos: number;
  readonly neededNanos: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The output tokens that the ceiling pays for; negative if it does not pay for the input. */
  readonly affordable: number;
  /** The smallest output cap that is sent upstream. */
  readonly leastTokens: number;
}

function tooDear(estimate: Estimate): Refusal {
  const { ceilingNanos, neededNanos, inputTokens, outputTokens, affordable, leastTokens } = estimate;
  // A cost is counted no further than the largest amount, and no header pays for more.
  const isBeyond = neededNanos === maxNanos;
  const needed = formatUsd(neededNanos);
  const lowerCap =
    affordable >= leastTokens && affordable < outputTokens
      ? `, or cap its output at ${affordable} ${affordable === 1 ? 'token' : 'tokens'}`
      : ' or send less text';
  return exceeded(
    `This request may cost ${isBeyond ? `${Math.floor(maxNanos / nanosPerUsd)} USD or more` : `up to ${needed} USD`}, which is more than its '${header}' of ${formatUsd(ceilingNanos)} USD: ` +
      `up to ${inputTokens} tokens of input, and up to ${outputTokens} of output. ` +
      `${isBeyond ? 'Leave the header out' : `Raise the header to ${needed}`}${lowerCap}.`,
  );
}

function exceeded(message: string): Refusal {
  return refuse('max_cost_exceeded', message, { param: header });
}
