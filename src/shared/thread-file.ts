// An earlier Node, which is told that it is too old, lacks some of its names.
import sea from 'node:sea';
import { Worker } from 'node:worker_threads';
import type { WorkerOptions } from 'node:worker_threads';

type ThreadOptions = Pick<WorkerOptions, 'workerData' | 'resourceLimits' | 'trackUnmanagedFds'> & {
  readonly name: string;
};

/** The folder of the bundle in an executable, below whose root its files are named. */
const bundle = 'dist/bundle/';

/**
 * Starts a module as a thread: `file`, such as `sqlite-worker`, beside the one that starts it. It runs from source as
 * TypeScript, and as JavaScript from the packed package, from the bundle and from an executable, where all files are in one
 * folder.
 */
export function startThread(starter: string, file: string, options: ThreadOptions): Worker {
  const url = new URL(`./${file}${starter.endsWith('.ts') ? '.ts' : '.js'}`, starter);
  // Not the app's own arguments: Node refuses to start a worker with some of them, such as `--input-type` of `node -e`.
  const own = { ...options, execArgv: [] };
  // An app that mounts the gateway may be an executable, too, and has other files in it.
  const isInside = sea.isSea() && sea.getAssetKeys().includes(`${bundle}${file}.js`);
  return isInside ? new Worker(loadInside(url), { ...own, eval: true }) : new Worker(url, own);
}

/**
 * The code of a thread in an executable, which loads a module. Node opens the files of an executable as a file system in the
 * main thread alone, so the thread reads those that are imported as what they are there: assets.
 */
function loadInside(url: URL): string {
  const folder = JSON.stringify(new URL('./', url).href);
  return `
    const isInside = (url) => url.startsWith(${folder});
    require('node:module').registerHooks({
      resolve(name, context, next) {
        // Any other name is that of a module of Node.
        const url = /^(\\.|file:)/.test(name) ? new URL(name, context.parentURL).href : name;
        return isInside(url) ? { url, shortCircuit: true } : next(name, context);
      },
      load(url, context, next) {
        if (!isInside(url)) return next(url, context);
        const name = ${JSON.stringify(bundle)} + url.slice(${folder}.length);
        return { format: 'module', source: require('node:sea').getAsset(name, 'utf8'), shortCircuit: true };
      },
    });
    void import(${JSON.stringify(url.href)});`;
}
