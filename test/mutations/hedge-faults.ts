import type { Mutation } from './mutation.ts';

const units = ['test/pipeline/hedge.test.ts'];
const cases = ['test/pipeline/hedge.property.test.ts'];
const sockets = ['test/e2e/slow-first-text.test.ts'];

/** Faults of the deadline of the first text, of what follows a late failure, and of second requests. */
export const hedgeFaults: readonly Mutation[] = [
  {
    name: 'two texts of one turn that both go on',
    file: 'src/pipeline/attempts/attempt-stop.ts',
    find: '    if (this.isOver) return this.#winner === attempt;\n',
    replace: '',
    tests: units,
  },
  {
    name: 'an answer without text that stops the attempt that may have one',
    file: 'src/pipeline/attempts/attempt-stop.ts',
    find: '    await this.#race.othersOver(this);\n',
    replace: '',
    tests: units,
  },
  {
    name: 'an attempt that goes on after the text of another one',
    file: 'src/pipeline/attempts/attempt-stop.ts',
    find: 'if (each !== but) each.lose();',
    replace: ';',
    tests: cases,
  },
  {
    name: 'a deadline of the first text that runs on after it',
    file: 'src/pipeline/attempts/attempt-stop.ts',
    find: 'opens(): boolean {\n    this.answered();',
    replace: 'opens(): boolean {',
    tests: cases,
  },
  {
    name: 'a deadline of the first text that anything puts off',
    file: 'src/pipeline/attempts/first-part.ts',
    find: 'if (chars > seenChars) stop?.feed',
    replace: 'stop?.feed',
    tests: sockets,
  },
  {
    name: 'an attempt that follows a late failure',
    file: 'src/pipeline/attempts/failed-attempts.ts',
    find: 'this.#isLate = true;',
    replace: ';',
    tests: cases,
  },
  {
    name: 'second requests beyond the budget',
    file: 'src/domain/routing/hedging.ts',
    find: 'if (saved < 1 - roundingError) return false;',
    replace: '',
    tests: ['test/domain/hedging.test.ts'],
  },
  {
    name: 'two second requests for one request',
    file: 'src/pipeline/attempts/hedge.ts',
    find: 'attempts.hedge === null ? hedgeDelayMs',
    replace: 'attempts.count > 0 || attempts.hedge === null ? hedgeDelayMs',
    tests: units,
  },
  {
    name: 'a request that ends with the attempt that was stopped for its text',
    file: 'src/pipeline/attempts/hedge.ts',
    find: 'const isFinal = !race.isOver && failed.isFinal(tried)',
    replace: 'const isFinal = failed.isFinal(tried)',
    tests: units,
  },
  {
    name: 'a request that ends because a second one is refused, although the first one may still answer',
    file: 'src/pipeline/attempts/hedge.ts',
    find: 'if (isFinal && running === first) {',
    replace: 'if (isFinal) {',
    tests: sockets,
  },
  {
    name: 'a third route for a text that the second one refused',
    file: 'src/pipeline/attempts/hedge.ts',
    find: 'return isFinal && !failed.isFinal(last) ? tried : last;',
    replace: 'return last;',
    tests: units,
  },
  {
    name: 'an upstream that asked for a pause and is given up because a second request failed',
    file: 'src/pipeline/attempts/hedge.ts',
    find: 'if (!isFinal && !race.isOver) addFailure(tried);',
    replace: 'if (!isFinal && !race.isOver) failed.add(tried);',
    tests: sockets,
  },
  {
    name: 'a permit that is released before its call is aborted',
    file: 'src/pipeline/attempts/attempt-stop.ts',
    find: 'if (this.#own.signal.aborted) return;',
    replace: 'if (this.#own.signal.aborted) return;\n    this.#onLost?.();\n    this.#onLost = null;',
    tests: units,
  },
  {
    name: 'a body whose end is told before its connection is closed',
    file: 'src/transport/body-queue.ts',
    find: '    this.#source?.abort(stopped());\n    this.#tellEnd();',
    replace: '    this.#tellEnd();\n    this.#source?.abort(stopped());',
    tests: ['test/transport/body-queue.test.ts'],
  },
  {
    name: 'a charge for what a stopped attempt thought',
    file: 'src/pipeline/attempts/hedge.ts',
    find: 'const received = new ReceivedAnswer();\n  const fresh',
    replace: 'const { received } = terms;\n  const fresh',
    tests: sockets,
  },
];
