import type { Mutation } from './mutation.ts';

const meter = ['test/second-meter/second-meter.test.ts'];
const drift = ['test/second-meter/usage-drift.test.ts'];
const compared = ['test/cli/reconcile/compare.test.ts', 'test/cli/reconcile/reconcile.property.test.ts'];
const exported = ['test/cli/reconcile/read-export.test.ts'];

/** Faults of the second meter and of `textgate reconcile`. */
export const meterFaults: readonly Mutation[] = [
  {
    name: 'samples that are counted before the texts of requests',
    file: 'src/tokens/text-turns.ts',
    find: 'now.first === null ? idle : now',
    replace: 'idle.first === null ? now : idle',
    tests: ['test/tokens/token-counter.test.ts'],
  },
  {
    name: 'a queue of samples without a bound',
    file: 'src/second-meter/second-meter.ts',
    find: 'waiting.length >= maxWaiting || waitingChars + chars > maxWaitingChars',
    replace: 'waiting.length < 0',
    tests: meter,
  },
  {
    name: 'thoughts that are compared with the text',
    file: 'src/second-meter/second-meter.ts',
    find: 'null : outputTokens - reasoningTokens',
    replace: 'null : outputTokens',
    tests: meter,
  },
  {
    name: 'shown thoughts without a count that are compared',
    file: 'src/second-meter/second-meter.ts',
    find: 'hasThoughts && reasoningTokens === 0',
    replace: 'hasThoughts && reasoningTokens < 0',
    tests: meter,
  },
  {
    name: 'a second meter that is loaded without a share of answers to sample',
    file: 'src/composition/features.ts',
    find: 'metering.sample > 0 ?',
    replace: 'metering.sample >= 0 ?',
    tests: ['test/composition/features.test.ts'],
  },
  {
    name: 'a feature whose error fails the request',
    file: 'src/pipeline/money/settle.ts',
    find: "ports.telemetry.fault('a feature failed at a settled request', error);",
    replace: 'throw error;',
    tests: ['test/pipeline/settled-observers.test.ts'],
  },
  {
    name: 'an uncertainty that chance exceeds',
    file: 'src/second-meter/usage-drift.ts',
    find: 'const certainty = 5;',
    replace: 'const certainty = 1;',
    tests: drift,
  },
  {
    name: 'a usual ratio that has the samples of now in it',
    file: 'src/second-meter/usage-drift.ts',
    find: 'this.#reference.add(old);',
    replace: 'this.#reference.add(Math.log(ratio));',
    tests: drift,
  },
  {
    name: 'attempts of other upstreams that are added up',
    file: 'src/cli/reconcile/our-usage.ts',
    find: 'if (attempt.upstream !== this.#upstream) continue;',
    replace: '',
    tests: compared,
  },
  {
    name: 'attempts that count on the day of their request',
    file: 'src/cli/reconcile/our-usage.ts',
    find: 'const beganMs = createdMs + (startedMs ?? 0);',
    replace: 'const beganMs = createdMs;',
    tests: compared,
  },
  {
    name: 'a midnight that is a difference',
    file: 'src/cli/reconcile/compare.ts',
    find: 'const most = our + (ours?.beganEarlier[quantity] ?? 0) + uncounted;',
    replace: 'const most = our + uncounted;',
    tests: compared,
  },
  {
    name: 'a midnight between two days that hides a missing call',
    file: 'src/cli/reconcile/compare.ts',
    find: 'if (day === range.from) addSums',
    replace: 'addSums',
    tests: compared,
  },
  {
    name: 'cache writes of an hour that are left out',
    file: 'src/cli/reconcile/read-export.ts',
    find: 'fieldsOf(each).reduce',
    replace: 'each.needed.reduce',
    tests: compared,
  },
  {
    name: 'a count that is read up to its first comma',
    file: 'src/cli/reconcile/read-export.ts',
    find: "typeof value === 'string' && /^\\d+$/.test(value) ? Number(value) : value",
    replace: "typeof value === 'string' ? parseInt(value, 10) : value",
    tests: exported,
  },
  {
    name: 'a quoted cell that ends with its line',
    file: 'src/shared/csv-reader.ts',
    find: "const quote = piece.indexOf('\"', from);",
    replace: 'const quote = piece.slice(from).search(/["\\n]/) + from;',
    tests: ['test/shared/csv-reader.test.ts'],
  },
];
