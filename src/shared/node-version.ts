/** The oldest major version of Node that runs textgate, as in `engines` of package.json. */
export const minNodeMajor = 26;

/** Why this version of Node, such as `v26.1.0`, can't run textgate; `null` if it can. */
export function whyNodeIsTooOld(version: string): string | null {
  const major = Number.parseInt(version.replace(/^v/, ''), 10);
  return major >= minNodeMajor ? null : `textgate needs Node ${minNodeMajor} or newer; this is ${version}`;
}
