/**
 * Fetches the modules of a gateway's console as a browser does: from the script of its page on, along all imports. Returns
 * their texts by their paths below the console's; one that is not there is `null`.
 */
export async function fetchConsoleModules(adminUrl: string): Promise<ReadonlyMap<string, string | null>> {
  const start = `${adminUrl}/console/`;
  const page = await (await fetch(start)).text();
  const [, script = ''] = /<script type="module" src="([^"]+)"/.exec(page) ?? [];
  const modules = new Map<string, string | null>();
  const left = [new URL(script, start).href];
  for (let url = left.pop(); url !== undefined; url = left.pop()) {
    const path = url.slice(start.length).replace(/^v-[^/]+\//, '');
    if (modules.has(path)) continue;
    const answer = await fetch(url);
    const text = answer.ok ? await answer.text() : null;
    modules.set(path, text);
    for (const [, name = ''] of (text ?? '').matchAll(
      /(?:\bfrom|\bimport)\s*\(?\s*["'](\.{1,2}\/[^"'\n]+)["']/g,
    ))
      left.push(new URL(name, url).href);
  }
  return modules;
}
