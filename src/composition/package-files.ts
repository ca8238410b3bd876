import { openConsoleFiles } from '../http/console/open-files.ts';
import { openManual } from '../manual/open-manual.ts';
import { consolePackages } from './console-packages.ts';

/** Where the console's files are: beside the program in an image, beside this folder in a checkout and a package. */
const consoleFolders = ['./console/', '../console/'].map((path) => new URL(path, import.meta.url));

/** The console's files, which are read when the first of them is asked for. */
export const consoleFiles = openConsoleFiles(
  consoleFolders,
  new Map([...consolePackages].map(([name, file]) => [name, () => new URL(import.meta.resolve(file))])),
);

/** The documentation of the checkout or the package, whose folder is two above this file in both. */
export const manual = openManual(new URL('../../', import.meta.url));
