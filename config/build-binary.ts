import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';

/** What stands two folders above the bundle, also in the image: the program reads its version there and the pages of `/docs`. */
export const filesBeside = ['LICENSE', 'README.md', 'docs', 'package.json'];

/** Node names the first file after itself, and puts it at the root of the files in the executable. */
const first = 'start.js';

/** As `npm start` and the image have it: docs/operators/processes.md, "Memory and start". */
const execArgv = ['--max-semi-space-size=8'];

/**
 * Makes an executable in `folder` of the Node that runs this, for its platform, and of the files of a checkout or a copy of it:
 * `root` has those beside the bundle, and the bundle in `dist/bundle`. Returns its path. Throws what Node says if it can't be made.
 */
export function buildBinary(root: string, folder: string): string {
  const files = [...filesBeside, join('dist', 'bundle')].flatMap((name) => listFiles(root, name));
  const output = join(folder, process.platform === 'win32' ? 'textgate.exe' : 'textgate');
  const parts = join(folder, 'parts');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(parts, { recursive: true });
  writeFileSync(join(parts, first), "import './dist/bundle/main.js';\n");
  const config = {
    main: join(parts, first),
    mainFormat: 'module',
    output,
    useVfs: true,
    disableExperimentalSEAWarning: true,
    execArgv,
    assets: Object.fromEntries(files.map((name) => [name.split(sep).join('/'), join(root, name)])),
  };
  writeFileSync(join(parts, 'config.json'), JSON.stringify(config));
  execFileSync(process.execPath, ['--build-sea', join(parts, 'config.json')], { stdio: 'pipe' });
  rmSync(parts, { recursive: true });
  return output;
}

/** A file, or all those in a folder: their paths below `root`. */
function listFiles(root: string, name: string): readonly string[] {
  if (statSync(join(root, name)).isFile()) return [name];
  return readdirSync(join(root, name)).flatMap((entry) => listFiles(root, join(name, entry)));
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..');
  const output = buildBinary(root, join(root, 'dist', 'binary'));
  console.log(`${output}: ${Math.round(statSync(output).size / 1_000_000)} MB`);
}
