import { z } from 'zod';

/**
 * The major version of an engine. A number such as 17 is one of Postgres. A text is one of MySQL if it begins with a
 * number below 10 (`8.4`), and of MariaDB otherwise (`10.11`).
 */
export const majorSchema = z.union([z.int().min(10).max(99), z.string().regex(/^[1-9]\d?\.\d{1,2}$/)]);
export type Major = z.infer<typeof majorSchema>;

export const flavours = ['postgres', 'mariadb', 'mysql'] as const;
export type Flavour = (typeof flavours)[number];

export function flavourOf(major: Major): Flavour {
  if (typeof major === 'number') return 'postgres';
  return Number.parseInt(major, 10) < 10 ? 'mysql' : 'mariadb';
}

/** Converts a version, as the catalogue writes it, into a major. */
export const majorOf = (version: string): Major => (version.includes('.') ? version : Number(version));

/** The name of the major in `npm run engines`, such as `mariadb@10.11`. */
export const programsOf = (major: Major): string => `${flavourOf(major)}@${major}`;
