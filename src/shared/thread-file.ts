/**
 * The file of a worker thread: `name` beside the module that starts it. It runs from source as TypeScript, and as
 * JavaScript from the packed package.
 */
export function threadFile(starter: string, name: string): URL {
  return new URL(`./${name}${starter.endsWith('.ts') ? '.ts' : '.js'}`, starter);
}
