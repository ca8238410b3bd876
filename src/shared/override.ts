/** The defaults with the settings of one's own in their place; the defaults themselves if there are none. */
export function override<Settings extends object>(defaults: Settings, own: Partial<Settings>): Settings {
  return Object.keys(own).length === 0 ? defaults : { ...defaults, ...own };
}

/** Settings without those that are `undefined`, which would override a default. */
export function withoutAbsent<Settings extends object>(
  settings: Settings,
): { [Name in keyof Settings]?: Exclude<Settings[Name], undefined> } {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as never;
}
