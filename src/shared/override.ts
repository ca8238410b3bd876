/** The defaults with the settings of one's own in their place; the defaults themselves if there are none. */
export function override<Settings extends object>(defaults: Settings, own: Partial<Settings>): Settings {
  return Object.keys(own).length === 0 ? defaults : { ...defaults, ...own };
}
