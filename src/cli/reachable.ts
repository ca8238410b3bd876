/** The address at which this machine reaches a listener: the loopback one for a listener on all interfaces. */
export function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
