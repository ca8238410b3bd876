import { openConsoleFiles } from '../http/console/open-files.ts';
import { consolePackages } from './console-packages.ts';

/** Where the console's files are: beside the program in an image, beside this folder in a checkout and a package. */
const folders = ['./console/', '../console/'].map((path) => new URL(path, import.meta.url));

/** The console's files, which are read when the first of them is asked for. */
export const consoleFiles = openConsoleFiles(
  folders,
  new Map([...consolePackages].map(([name, file]) => [name, () => new URL(import.meta.resolve(file))])),
);
