import { z } from 'zod';

/**
 * A major as its engine counts them: a number is Postgres', `10.11` and `8.4` are MariaDB's and MySQL's. A major shows
 * its engine, because MariaDB started to count at 10, and MySQL's numbers are lower.
 */
export const majorSchema = z.union([z.int().min(10).max(99), z.string().regex(/^[1-9]\d?\.\d{1,2}$/)]);
export type Major = z.infer<typeof majorSchema>;

export const flavours = ['postgres', 'mariadb', 'mysql'] as const;
export type Flavour = (typeof flavours)[number];

export function flavourOf(major: Major): Flavour {
  if (typeof major === 'number') return 'postgres';
  return Number.parseInt(major, 10) < 10 ? 'mysql' : 'mariadb';
}

/** The major of a version in the catalogue. */
export const majorOf = (version: string): Major => (version.includes('.') ? version : Number(version));

/** The name that `npm run engines` uses for it: `mariadb@10.11`. */
export const programsOf = (major: Major): string => `${flavourOf(major)}@${major}`;
