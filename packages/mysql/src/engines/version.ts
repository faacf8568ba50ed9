export type Flavour = 'mariadb' | 'mysql';

const labels: Record<Flavour, string> = { mariadb: 'MariaDB', mysql: 'MySQL' };

/** The name for people: `MariaDB 10.11`. */
export const labelOf = (flavour: Flavour, version: string): string => `${labels[flavour]} ${version}`;

/** Orders versions by their numbers, part by part: 10.5 comes before 10.11. A missing part counts as 0. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  for (let at = 0; at < Math.max(left?.length ?? 0, right?.length ?? 0); at += 1) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * The flavour and version of a server, from its own output: `mariadbd  Ver 10.11.18-MariaDB-0+deb12u1 for …`. Null for
 * the output of something else.
 */
export function readVersion(said: string): { flavour: Flavour; version: string; release: string } | null {
  const [, release = '', version = ''] = /\bVer ((\d+\.\d+)\.\d+)/.exec(said) ?? [];
  if (release === '') return null;
  return { flavour: /mariadb/i.test(said) ? 'mariadb' : 'mysql', version, release };
}
