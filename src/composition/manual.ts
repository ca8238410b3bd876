import { openManual } from '../manual/open-manual.ts';

/** The documentation of the checkout or the package, whose folder is two above this file in both. */
export const manual = openManual(new URL('../../', import.meta.url));
