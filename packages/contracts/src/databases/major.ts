import { z } from 'zod';

/**
 * A major as an engine counts them: a number is Postgres', `10.11` and `8.4` are MariaDB's and MySQL's. A major says which engine it is of, since MariaDB began to
 * count at 10 where MySQL counts below.
 */
export const majorSchema = z.union([z.int().min(10).max(99), z.string().regex(/^[1-9]\d?\.\d{1,2}$/)]);
export type Major = z.infer<typeof majorSchema>;

export const flavours = ['postgres', 'mariadb', 'mysql'] as const;
export type Flavour = (typeof flavours)[number];

export function flavourOf(major: Major): Flavour {
  if (typeof major === 'number') return 'postgres';
  return Number.parseInt(major, 10) < 10 ? 'mysql' : 'mariadb';
}

/** The major that a version of the catalogue names. */
export const majorOf = (version: string): Major => (version.includes('.') ? version : Number(version));

/** The name by which `npm run engines` knows it: `mariadb@10.11`. */
export const programsOf = (major: Major): string => `${flavourOf(major)}@${major}`;
