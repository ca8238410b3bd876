/** The members of `node:http` that load Node's own fetch when they are read, which an import of that module does. */
const lazyMembers = ['WebSocket', 'CloseEvent', 'MessageEvent'];

/**
 * Imports `node:http` without Node's own fetch, which takes some 30 ms and 3 MB and which no part of textgate uses in this
 * module. The members are as they were afterwards. Never called in an app that mounts the gateway.
 */
export async function importHttpAlone(): Promise<void> {
  const http = process.getBuiltinModule('node:http');
  const found = lazyMembers.map((name) => [name, Object.getOwnPropertyDescriptor(http, name)] as const);
  const lazy = found.flatMap(([name, member]) =>
    member?.get === undefined ? [] : [[name, member] as const],
  );
  for (const [name] of lazy) Object.defineProperty(http, name, { value: undefined, configurable: true });
  await import('node:http');
  for (const [name, member] of lazy) Object.defineProperty(http, name, member);
}
