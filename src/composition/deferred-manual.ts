import type { Manual } from '../domain/ports/manual.ts';

/** The folder of the checkout or the package: two above this file in both. */
const root = new URL('../../', import.meta.url);

/** The documentation, whose renderer is loaded with the first page that is asked for. */
export function deferManual(): Manual {
  let opened: Promise<Manual> | null = null;
  return {
    async find(path) {
      opened ??= import('../manual/open-manual.ts').then(({ openManual }) => openManual(root));
      return (await opened).find(path);
    },
  };
}
