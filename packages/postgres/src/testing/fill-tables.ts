import type pg from 'pg';
import { z } from 'zod';

const columnRow = z.object({
  table: z.string(),
  column: z.string(),
  type: z.string(),
  /** A domain's base type, or the type itself. */
  base: z.string(),
  length: z.number(),
  is_required: z.boolean(),
  labels: z.array(z.string()),
  parent: z.string().nullable(),
  parent_column: z.string().nullable(),
});
type Column = z.infer<typeof columnRow>;

const columnsSql = `select c.oid::regclass::text as table, quote_ident(a.attname) as column, format_type(a.atttypid, a.atttypmod) as type,
    format_type(case when t.typtype = 'd' then t.typbasetype else a.atttypid end, null) as base,
    case when a.atttypmod > 4 and a.atttypid in ('varchar'::regtype, 'bpchar'::regtype) then a.atttypmod - 4
      when a.atttypmod > 0 and a.atttypid in ('bit'::regtype, 'varbit'::regtype) then a.atttypmod else 0 end as length,
    a.attnotnull or coalesce(t.typnotnull, false) as is_required,
    array(select enumlabel::text from pg_enum where enumtypid = a.atttypid order by enumsortorder) as labels,
    f.confrelid::regclass::text as parent,
    (select quote_ident(p.attname) from pg_attribute p where p.attrelid = f.confrelid and p.attnum = f.confkey[array_position(f.conkey, a.attnum)]) as parent_column
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attidentity = '' and a.attgenerated = ''
    join pg_type t on t.oid = a.atttypid
    left join lateral (select * from pg_constraint where conrelid = c.oid and contype = 'f' and a.attnum = any(conkey) limit 1) f on true
  where c.relkind in ('r', 'p') and not c.relispartition and c.relpersistence <> 't' and not pg_is_other_temp_schema(c.relnamespace)
    and c.relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
  order by c.oid, a.attnum`;

/**
 * Values by type. The first value of a list is ordinary and depends on the row's number. The other values are unusual.
 */
const valuesOf: Record<string, (number: number) => string[]> = {
  smallint: (number) => [`${number + 1}`, '0', '-32768', '32767'],
  integer: (number) => [`${number + 1}`, '0', '-2147483648', '2147483647'],
  bigint: (number) => [`${number + 1}`, '0', '-9223372036854775808', '9223372036854775807'],
  oid: (number) => [`${number + 1}`, '4294967295'],
  numeric: (number) => [`${number}.5`, 'NaN', '-Infinity', '123456789012345678901234567890.000000000100'],
  real: (number) => [`${number}.25`, '-0', 'NaN', '1e-45'],
  'double precision': (number) => [`${number}.1`, '-0', 'Infinity', '5e-324', '0.1'],
  money: (number) => [`${number}.99`],
  boolean: (number) => [number % 2 === 0 ? 't' : 'f'],
  date: (number) => [`2024-02-${String((number % 28) + 1)}`, '0044-03-15 BC', 'infinity', '5874897-12-31'],
  time: (number) => [`10:${String(number % 60)}`, '24:00', '00:00:00.000001'],
  interval: (number) => [`${number} days`, '-1 year 2 mons -3 days 04:05:06.789', '178000000 years'],
  uuid: (number) => [`00000000-0000-4000-8000-${String(number).padStart(12, '0')}`],
  bytea: (number) => [`\\x${number.toString(16).padStart(40, '0')}`, '\\x', `\\x00ff5c0a27${'00'.repeat(3000)}`],
  json: (number) => [`[${number}]`, '{"a": 1, "a": "\\u00e9", "b" : 1.0}', '{}', 'null'],
  inet: (number) => [`10.0.${number % 250}.1`, '::1', '192.168.0.1/24'],
  cidr: (number) => [`10.0.${number % 250}.0/24`, '::/0'],
  macaddr: (number) => [`08:00:2b:01:02:${(number % 250).toString(16).padStart(2, '0')}`],
  point: (number) => [`(${number},-0)`, '(Infinity,1e-300)'],
  box: (number) => [`(${number},1),(0,0)`],
  polygon: (number) => [`((0,0),(0,${number}),(1,1))`],
  tsvector: (number) => [`a:1A b${number}:2`, ''],
  bit: (number) => [number.toString(2), '1'],
  xml: (number) => [`<a n="${number}"/>`],
};
const timestamps = (number: number): string[] => [
  `2024-02-28 10:00:${String(number % 60)}`,
  '4713-01-01 00:00:00 BC',
  '-infinity',
  '1999-12-31 23:59:59.999999',
];
const texts = (number: number): string[] => [
  `text ${number}`,
  '',
  String.raw`\N`,
  `it's "quoted" \\ and\ttab\r\nline`,
  'größe 日本 🂡 e\u0301',
  'x'.repeat(5_000),
  '  blanks ',
];

function listValues({ type, base, labels, length }: Column, number: number): string[] {
  if (labels.length > 0) return [labels[number % labels.length] ?? ''];
  const name = base
    .replace(/\(.*$/, '')
    .replace('bit varying', 'bit')
    .replace('jsonb', 'json')
    .replace(/^time with.*/, 'time');
  if (name.endsWith('[]')) return ['{}', ...(/^(text|character varying)/.test(name) ? ['{"a,b",NULL,"\\"q\\""}'] : [])];
  if (name.endsWith('range')) return ['empty'];
  if (name.startsWith('timestamp')) return timestamps(number);
  if (name === 'bit')
    return [
      number
        .toString(2)
        .padStart(length || 1, '0')
        .slice(-(length || 8)),
    ];
  const values = valuesOf[name]?.(number) ?? texts(number);
  // A length counts characters, and a surrogate pair is one character.
  return length === 0 || type.startsWith('bit')
    ? values
    : values.map((value) => Array.from(value).slice(0, length).join(''));
}

const literal = (value: string): string => `'${value.replaceAll("'", "''")}'`;

/**
 * Returns the value of a column. A foreign key's column gets a value from the referenced table. All columns of a key
 * get their values from the same row.
 */
function expressionOf(column: Column, at: number, number: number, isOdd: boolean): string {
  if (column.parent !== null && column.parent_column !== null) {
    return `(select ${column.parent_column} from ${column.parent} order by ctid offset ${number % 3} limit 1)`;
  }
  if (isOdd && !column.is_required && (at + number) % 7 === 6) return 'null';
  const values = listValues(column, number);
  return literal(values[isOdd ? (at + number) % values.length : 0] ?? '');
}

export interface FilledTables {
  tables: number;
  rows: number;
  /** Tables that stayed empty, because their constraints refused all tried rows. */
  empty: string[];
}

/**
 * Fills each table with some rows, including unusual values. Refused rows are tried with other values. The client must
 * not be in a transaction.
 */
export async function fillTables(client: pg.Client, rowsEach: number): Promise<FilledTables> {
  const { rows } = await client.query(columnsSql);
  const tables = new Map<string, Column[]>();
  for (const column of z.array(columnRow).parse(rows))
    tables.set(column.table, [...(tables.get(column.table) ?? []), column]);
  const made = new Map<string, number>();
  const insert = async (table: string, columns: readonly Column[], number: number, isOdd: boolean): Promise<void> => {
    const values = columns.map((column, at) => expressionOf(column, at, number, isOdd));
    const sql = `insert into ${table} (${columns.map(({ column }) => column).join(', ')}) values (${values.join(', ')})`;
    const isIn = await client.query(sql).then(
      ({ rowCount }) => rowCount === 1,
      () => false,
    );
    if (isIn) made.set(table, (made.get(table) ?? 0) + 1);
  };
  // Several passes are needed, because a foreign key may refer to a row that is created later or in the same table.
  for (let pass = 0; pass < 4; pass += 1) {
    for (const [table, columns] of tables) {
      for (
        let number = pass * 100;
        number < pass * 100 + rowsEach * 2 && (made.get(table) ?? 0) < rowsEach;
        number += 1
      ) {
        await insert(table, columns, number, number % 2 === 1);
      }
    }
  }
  const sum = [...made.values()].reduce((total, count) => total + count, 0);
  return { tables: tables.size, rows: sum, empty: [...tables.keys()].filter((table) => !made.has(table)) };
}
