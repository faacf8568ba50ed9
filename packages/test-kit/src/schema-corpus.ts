import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The schema of a real program, as the statements that a client sends. */
export interface RealSchema {
  /** Its Debian package. */
  name: string;
  sql: string;
}

/** Rows for psql, which no server takes from a statement's text. */
const inlineRows = /^COPY [^;]*FROM stdin[^;]*;\n[\s\S]*?^\\\.$/gim;
/** A line of psql's own. */
const metaCommand = /^\\.*$/gm;
/** Every database has the language, and it is nobody's. */
const languageStatement = /^(?:CREATE (?:EXTENSION|LANGUAGE)|COMMENT ON EXTENSION)\b[^;]*\bplpgsql\b[^;]*;/gim;

/** CI takes a few small ones, `npm run chaos` all. */
const inCi = ['gnokii-smsd-pgsql', 'icingadb', 'pdns-backend-pgsql', 'roundcube-core'];

/** Those that `.ci/fetch-schemas` has brought; none where it was not run. */
export function listRealSchemas(): RealSchema[] {
  const folder = process.env['DRYDOCK_SCHEMAS'] ?? '/var/cache/drydock-schemas';
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.sql')) : [];
  const schemas = files.map((file) => {
    const sql = readFileSync(path.join(folder, file), 'utf8')
      .replace(inlineRows, '')
      .replace(metaCommand, '')
      .replace(languageStatement, '');
    return { name: path.basename(file, '.sql'), sql };
  });
  return process.env['DRYDOCK_CHAOS'] === 'full' ? schemas : schemas.filter(({ name }) => inCi.includes(name));
}

/**
 * A list of varchar that is compared with text: Postgres shows one cast of the list, and when it has read that again, one of each element. Both are the same expression,
 * and the second stays as it is.
 */
export const castOnce = (statement: string): string =>
  statement.replace(/\('([^']*)'::character varying\)::text/g, "'$1'::character varying").replace(/\((ARRAY\[[^\]]*\])\)::text\[\]/g, '$1');
