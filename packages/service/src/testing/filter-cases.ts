export type Item = Readonly<Record<string, unknown>>;
type FilterCase = [value: string, isMeant: (item: Item) => boolean];

export const wrongMoments = ['', 'X', '1969-12-31T23:59:59Z', '2026-01-01', 'running,'];
/** Values that each filter must refuse. A filter that is not listed must refuse `wrongMoments`. */
export const wrongFor: Readonly<Record<string, readonly string[]>> = {
  text: ['', 'a'.repeat(101), '\0'],
  metadata: ['', 'x', '=x', 'x=', `${'a'.repeat(41)}=x`, `x=${'a'.repeat(501)}`, 'x=\0'],
  target: ['a'.repeat(301)],
  resource: ['a'.repeat(301)],
  actor_key_id: ['', 'x', '%'],
  action: ['', 'X', 'a,b'],
};

/** For each filter that a list may have: its values, and whether an item meets each of them. */
export function filterCases(all: readonly Item[]): Record<string, FilterCase[]> {
  const textsOf = (...fields: string[]): string[] => [
    ...new Set(all.flatMap((item) => fields.map((field) => item[field])).filter((value) => typeof value === 'string')),
  ];
  const momentOf = (item: Item): number => Date.parse(String(item['created_at'] ?? item['at']));
  const moments = textsOf('created_at', 'at').flatMap((at) => [at, at.replace('Z', '+00:00')]);
  const among = (field: string): FilterCase[] =>
    textsOf(field).map((value): FilterCase => [value, (item) => item[field] === value]);
  const texts = textsOf('name', 'label', 'primary_domain');
  const pairs = all.flatMap((item) => Object.entries(item['metadata'] ?? {}));
  const carries =
    (name: string, value: string) =>
    ({ metadata }: Item): boolean =>
      typeof metadata === 'object' &&
      metadata !== null &&
      Object.entries(metadata).some((own) => own[0] === name && own[1] === value);
  const has = (text: string) => (item: Item) =>
    [item['name'], item['label'], item['primary_domain']].some((own) =>
      String(own).toLowerCase().includes(text.toLowerCase()),
    );
  return {
    status: [...among('status'), [[...new Set([...textsOf('status'), 'failed'])].join(), () => true]],
    kind: among('kind'),
    action: among('action'),
    target: among('target'),
    resource: among('resource'),
    actor_key_id: among('actor_key_id'),
    created_after: moments.map((at): FilterCase => [at, (item) => momentOf(item) >= Date.parse(at)]),
    created_before: moments.map((at): FilterCase => [at, (item) => momentOf(item) < Date.parse(at)]),
    metadata: [...pairs, ['contract', '%'], ['Contract', 'x']].map(
      ([name = '', value = '']): FilterCase => [`${name}=${value}`, carries(name, value)],
    ),
    text: [...texts.flatMap((text) => [text, text.slice(1).toUpperCase()]), '%', '_', '\\'].map(
      (text): FilterCase => [text, has(text)],
    ),
  };
}
