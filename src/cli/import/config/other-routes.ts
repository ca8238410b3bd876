import { isWritable } from '../../init/choose-models.ts';
import type { Settings, Value } from './file-values.ts';
import type { Taken } from './find-price.ts';
import type { Notes } from './notes.ts';
import { isOff, listOf, settingsOf, textOf } from './read-litellm.ts';

/** The deployments of models by their names. */
type Groups = ReadonlyMap<string, readonly Taken[]>;

/** Further names of models, each with that of its model. */
export function readAliases(router: Settings, groups: Groups, notes: Notes): ReadonlyMap<string, string> {
  const setting = 'router_settings.model_group_alias';
  const aliases = new Map<string, string>();
  for (const [name, value] of settingsOf(router.get('model_group_alias'))) {
    const meant = value.kind === 'text' ? value.text : (textOf(settingsOf(value), 'model') ?? '');
    if (!isWritable(name) || groups.has(name) || !groups.has(meant))
      notes.none(
        setting,
        'leads to no model, is the name of one, or none that a model can have',
        name || '""',
      );
    else {
      aliases.set(name, meant);
      notes.add('taken', setting, 'a model of its own with the same routes');
    }
  }
  return aliases;
}

/**
 * Finds the deployments that LiteLLM tries when those of a model fail: of the models that its name has as fallbacks, else the
 * name without its provider or that of which it is an alias, else all models. `groups` has the aliases, too.
 */
export function readFallbacks(
  root: Settings,
  { groups, aliases }: { readonly groups: Groups; readonly aliases: ReadonlyMap<string, string> },
  notes: Notes,
): (name: string) => readonly Taken[] {
  const lists = new Map<string, { readonly setting: string; readonly names: readonly string[] }>();
  const known = new Set([everyModel, ...[...groups.keys()].flatMap(namesOf)]);
  const add = (setting: string, name: string, others: readonly Value[]): void => {
    const of = name === everyModel ? undefined : name;
    const names = others.flatMap((other) => (other.kind === 'text' ? [other.text] : []));
    if (!known.has(name)) notes.none(setting, 'those of a model that is not taken over are left out', of);
    else if (lists.has(name)) notes.none(setting, 'only the first list of a model is taken', of);
    else lists.set(name, { setting, names });
    if (names.length < others.length)
      notes.none(setting, 'one of them has settings of its own: name an entry of model_list', of);
    if (names.some((other) => !groups.has(other)))
      notes.none(setting, 'one of them is no model that is taken over', of);
  };
  for (const section of ['router_settings', 'litellm_settings']) {
    const settings = settingsOf(root.get(section));
    const usual = settings.get('default_fallbacks');
    for (const entry of listOf(settings.get('fallbacks')))
      if (entry.kind === 'settings')
        for (const [name, value] of entry.settings) add(`${section}.fallbacks`, name, listOf(value));
      else if (!isOff(entry))
        notes.none(`${section}.fallbacks`, 'left out: expected names of models with lists');
    if (usual !== undefined && !isOff(usual)) add(`${section}.default_fallbacks`, everyModel, listOf(usual));
  }
  return (name) => {
    const alike = [...namesOf(name), ...namesOf(aliases.get(name) ?? name), everyModel];
    const found = alike.flatMap((one) => lists.get(one) ?? [])[0];
    const others = found?.names.filter((other) => other !== name) ?? [];
    const behind = others.flatMap((other) => groups.get(other) ?? []);
    if (found !== undefined && behind.length > 0)
      notes.add(
        'taken',
        found.setting,
        'routes behind those of the model: their answers cost what the model costs',
      );
    return behind;
  };
}

/** LiteLLM's name for the fallbacks of all models that have none of their own. */
const everyModel = '*';

/** The names by which LiteLLM looks for the fallbacks of a model: its own, and that without a provider. */
function namesOf(name: string): readonly string[] {
  return [name, name.slice(name.indexOf('/') + 1)];
}
