import type { SeededRandom } from '@drydock/testing/seeded-random';

export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const oddNames = [
  't',
  'r',
  'c',
  's',
  'oid',
  'select',
  'public',
  'a; drop table x; --',
  'it\'s "quoted"',
  '$$; select public.spring($$name$$); --',
  '\\! touch x',
  'two\nlines\n\\! touch x\n',
  '%I %s %L %%',
  ' ',
  'Größe 表',
  'x"; alter role postgres nologin; --',
  '/* -- */',
  'pg_ catalog',
  'n'.repeat(63),
  'COPY t FROM stdin;',
];

/** Names and random choices for one schema. The names of `name` and `bare` are all different. */
export class Room {
  readonly random: SeededRandom;
  readonly schema: string;
  private readonly used = new Set<string>();

  constructor(random: SeededRandom, number: number) {
    this.random = random;
    this.schema = quote(`h${number} ${random.pick(oddNames)}`.slice(0, 40));
  }

  /** Returns a new qualified name. */
  name(): string {
    return `${this.schema}.${this.bare()}`;
  }

  bare(): string {
    for (;;) {
      const base = this.random.pick(oddNames);
      const name = this.used.has(base) ? `${base.slice(0, 30)}${this.used.size}` : base;
      if (this.used.has(name)) continue;
      this.used.add(name);
      return quote(name);
    }
  }

  column(): string {
    return quote(this.random.pick(oddNames));
  }

  /** Returns a COMMENT statement whose text looks like commands. */
  comment(kind: string, name: string): string {
    const text = `${this.random.pick(oddNames)}'; alter role postgres nologin; --\n\\! touch x\n$$`;
    return `comment on ${kind} ${name} is ${literal(text)}`;
  }
}
