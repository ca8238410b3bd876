import { expect, test } from 'vitest';
import { countLines } from './count-lines.ts';

test('a source has lines of code, imports, comments and blank ones, and the rest is punctuation', () => {
  const source = `import { a } from './a.ts';
import type {
  B,
} from './b.ts';
export { c } from './c.ts';

/**
 * What it does.
 */
export function d(): void {
  // why
  a({ b: 1 }); // and more
  void import('./late.ts');
}
/* one line */ export const e = 1;
`;
  expect(countLines(source)).toEqual({ lines: 15, code: 3, imports: 5, comments: 5, blank: 1 });
});
