import { withClient } from '@drydock/postgres/testing/run-sql';

/**
 * The condition for the customer's own objects. It leaves out the server's objects, which have oids below 16384, and
 * the members of extensions, which differ between versions.
 */
const own = (catalogue: string, alias: string): string =>
  `${alias}.oid >= 16384 and not exists (select from pg_depend e
    where e.classid = '${catalogue}'::regclass and e.objid = ${alias}.oid and e.deptype = 'e')`;

/**
 * The rights on an object, as sentences. Default rights are listed even if the catalogue does not store them. MAINTAIN
 * is left out, because it exists only from version 17 on.
 */
const rights = (acl: string, usual: string): string =>
  `(select string_agg(format('%s to %s by %s %s', x.privilege_type, coalesce(e.rolname, 'public'), r.rolname, x.is_grantable), ', '
      order by x.privilege_type, coalesce(e.rolname, 'public'), r.rolname)
    from aclexplode(coalesce(${acl}, acldefault(${usual}))) x
      join pg_roles r on r.oid = x.grantor left join pg_roles e on e.oid = x.grantee
    where x.privilege_type <> 'MAINTAIN')`;

const isRelation = `${own('pg_class', 'c')} and c.relkind not in ('t', 'i', 'I') and c.relpersistence <> 't'`;

/**
 * The customer's objects by catalogue, with the SQL expressions for kind, name and every property that a dump could
 * lose.
 */
const objects: [from: string, where: string, ...columns: string[]][] = [
  [
    'pg_namespace n',
    `n.nspname = 'public' or n.nspname !~ '^pg_' and ${own('pg_namespace', 'n')}`,
    "'schema', n.nspname, n.nspowner::regrole",
    rights('n.nspacl', "'n', n.nspowner"),
  ],
  [
    'pg_class c left join pg_am m on m.oid = c.relam',
    isRelation,
    "'relation', c.relkind, c.oid::regclass, c.relowner::regrole, m.amname, c.relpersistence, c.relreplident",
    'c.relrowsecurity, c.relforcerowsecurity, c.relispopulated, c.reloptions, c.reloftype::regtype',
    rights('c.relacl', `case c.relkind when 'S' then 's'::"char" else 'r' end, c.relowner`),
    "pg_get_expr(c.relpartbound, c.oid), case c.relkind when 'p' then pg_get_partkeydef(c.oid) end",
    'array(select i.inhparent::regclass from pg_inherits i where i.inhrelid = c.oid order by i.inhseqno)',
  ],
  [
    `pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum`,
    isRelation,
    "'column', c.oid::regclass, row_number() over (partition by c.oid order by a.attnum), a.attname",
    'format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation, a.attnotnull, pg_get_expr(d.adbin, c.oid)',
    'a.attidentity, a.attgenerated, a.attstorage, a.attcompression, nullif(a.attstattarget, -1), a.attoptions',
    'a.attislocal, a.attinhcount, a.attacl::text[]',
  ],
  // From version 18 on, NOT NULL is a constraint too. It is left out here, because the columns show it in every
  // version.
  [
    'pg_constraint k',
    `${own('pg_constraint', 'k')} and k.contype <> 'n'`,
    "'constraint', k.conname, k.conrelid::regclass, k.contypid::regtype, pg_get_constraintdef(k.oid), k.convalidated",
  ],
  [
    'pg_index i join pg_class c on c.oid = i.indexrelid',
    `${own('pg_class', 'c')} and c.relnamespace <> 'pg_toast'::regnamespace`,
    "'index', pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisclustered, i.indisreplident",
  ],
  [
    'pg_trigger t',
    `${own('pg_trigger', 't')} and not t.tgisinternal`,
    "'trigger', pg_get_triggerdef(t.oid), t.tgenabled",
  ],
  ['pg_rewrite r', `${own('pg_rewrite', 'r')} and r.ev_class >= 16384`, "'rule', pg_get_ruledef(r.oid), r.ev_enabled"],
  [
    'pg_proc p left join pg_aggregate g on g.aggfnoid = p.oid',
    own('pg_proc', 'p'),
    "'function', p.oid::regprocedure, p.proowner::regrole",
    rights('p.proacl', "'f', p.proowner"),
    "case when p.prokind <> 'a' then pg_get_functiondef(p.oid) end, g.aggtransfn, g.aggfinalfn, g.aggcombinefn",
    'g.aggtranstype::regtype, g.agginitval, g.aggsortop::regoperator',
  ],
  [
    'pg_type t left join pg_range r on r.rngtypid = t.oid',
    `${own('pg_type', 't')} and t.typelem = 0`,
    "'type', t.oid::regtype, t.typowner::regrole",
    rights('t.typacl', "'T', t.typowner"),
    't.typtype, format_type(t.typbasetype, t.typtypmod), t.typnotnull, t.typdefault, t.typcollation::regcollation',
    'array(select e.enumlabel from pg_enum e where e.enumtypid = t.oid order by e.enumsortorder)',
    'r.rngsubtype::regtype, r.rngcanonical, r.rngsubdiff',
  ],
  [
    'pg_policy p',
    'true',
    "'policy', p.polname, p.polrelid::regclass, p.polcmd, p.polpermissive, p.polroles::regrole[]",
    'pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)',
  ],
  ['pg_statistic_ext s', 'true', 'pg_get_statisticsobjdef(s.oid)'],
  [
    'pg_sequence s join pg_class c on c.oid = s.seqrelid',
    own('pg_class', 'c'),
    "'sequence', c.oid::regclass, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcache, s.seqcycle",
    'pg_sequence_last_value(c.oid)',
    `array(select pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) from pg_depend d
      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i') and d.refobjsubid > 0)`,
  ],
  [
    'pg_description d, pg_identify_object(d.classoid, d.objoid, d.objsubid) i',
    `d.objoid >= 16384 and i.type <> 'extension'
      and not exists (select from pg_depend e where e.classid = d.classoid and e.objid = d.objoid and e.deptype = 'e')`,
    "'comment', i.type, i.identity, d.description",
  ],
  // For these catalogues the identity says enough, so no other property is read.
  ...[
    'pg_operator',
    'pg_opclass',
    'pg_cast',
    'pg_conversion',
    'pg_collation',
    'pg_ts_config',
    'pg_ts_dict',
    'pg_default_acl',
  ].map((catalogue): [string, string, string] => [
    `${catalogue} o, pg_identify_object('${catalogue}'::regclass, o.oid, 0) i`,
    own(catalogue, 'o'),
    'i.type, i.identity',
  ]),
  ['pg_extension x', 'true', "'extension', x.extname, x.extnamespace::regnamespace"],
];

const linesSql = objects
  .map(
    ([from, where, ...columns]) =>
      `select jsonb_build_array(${columns.join(', ')})::text as line from ${from} where ${where}`,
  )
  .join(' union all ');
const tablesSql = `select c.oid::regclass::text as name from pg_class c where ${own('pg_class', 'c')} and c.relkind in ('r', 'm')`;
const rowsSql = (table: string): string =>
  `select jsonb_build_array('rows', '${table.replaceAll("'", "''")}', count(*), md5(string_agg(h, '' order by h)))::text as line
    from (select md5(t::text) as h from only ${table} t) as r`;

/**
 * Reads the content of a database as its owner sees it in the catalogue: a line for each object, and one for the rows
 * of each table. Tests compare the lines of two databases. This function shares no code with dumps or with the
 * comparison of an upgrade, so that a defect in those cannot hide here.
 */
export const readContent = (url: string): Promise<string[]> =>
  withClient({ connectionString: url, ssl: { rejectUnauthorized: false } }, async (client) => {
    const linesOf = async (sql: string) => (await client.query<{ line: string }>(sql)).rows.map(({ line }) => line);
    await client.query('set search_path = pg_catalog');
    const lines = await linesOf(linesSql);
    for (const { name } of (await client.query<{ name: string }>(tablesSql)).rows)
      lines.push(...(await linesOf(rowsSql(name))));
    return lines.sort();
  });
