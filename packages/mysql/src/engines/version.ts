export type Flavour = 'mariadb' | 'mysql';

const labels: Record<Flavour, string> = { mariadb: 'MariaDB', mysql: 'MySQL' };

/** Returns the name for people, such as `MariaDB 10.11`. */
export const labelOf = (flavour: Flavour, version: string): string => `${labels[flavour]} ${version}`;

/** Compares versions number by number, so that 10.5 comes before 10.11. A missing number counts as 0. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  for (let at = 0; at < Math.max(left?.length ?? 0, right?.length ?? 0); at += 1) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * Reads flavour and version from a server's output, such as `mariadbd Ver 10.11.18-MariaDB-0+deb12u1 for …`. Returns
 * null for other output.
 */
export function readVersion(said: string): { flavour: Flavour; version: string; release: string } | null {
  const [, release = '', version = ''] = /\bVer ((\d+\.\d+)\.\d+)/.exec(said) ?? [];
  if (release === '') return null;
  return { flavour: /mariadb/i.test(said) ? 'mariadb' : 'mysql', version, release };
}
