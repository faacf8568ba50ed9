import type { SeededRandom } from '@drydock/testing/seeded-random';
import type { Flavour } from '../src/engines/list-engines';
import { quoteName } from '../src/session/session';

/**
 * The character sets of clients, each with the name by which TextDecoder knows it. In the last three, a backtick or a
 * backslash may be the second byte of a letter.
 */
const decoders = {
  utf8mb4: 'utf-8',
  latin1: 'latin1',
  cp1251: 'windows-1251',
  gbk: 'gbk',
  sjis: 'shift_jis',
  big5: 'big5',
} as const;
export type Charset = keyof typeof decoders;
export const charsets = Object.keys(decoders) as Charset[];

export const sqlModes = [
  '',
  'ANSI_QUOTES',
  'NO_BACKSLASH_ESCAPES',
  'PIPES_AS_CONCAT,IGNORE_SPACE',
  'ANSI_QUOTES,NO_BACKSLASH_ESCAPES',
  'ANSI',
];

/** Returns a letter that {@link encode} sends as this one byte in every character set. */
export const rawByte = (byte: number): string => String.fromCharCode(0xf700 + byte);

const tables = new Map<Charset, Map<string, number[]>>();

function tableOf(charset: Charset): Map<string, number[]> {
  const known = tables.get(charset);
  if (known !== undefined) return known;
  const table = new Map<string, number[]>();
  const decoder = new TextDecoder(decoders[charset]);
  const add = (bytes: number[]): void => {
    const letter = decoder.decode(Buffer.from(bytes));
    if (Array.from(letter).length === 1 && letter !== '\ufffd' && !table.has(letter)) table.set(letter, bytes);
  };
  for (let first = 0x80; first < 0x100; first += 1) add([first]);
  if (['gbk', 'sjis', 'big5'].includes(charset))
    for (let first = 0x81; first < 0xff; first += 1)
      for (let second = 0x40; second < 0xff; second += 1) add([first, second]);
  tables.set(charset, table);
  return table;
}

/**
 * Returns the bytes of a statement as a client with this character set sends it. A letter that the set does not have
 * becomes a question mark.
 */
export function encode(text: string, charset: Charset): Buffer {
  const bytes = Array.from(text).map((letter) => {
    const code = letter.codePointAt(0) ?? 0;
    if (code >= 0xf700 && code < 0xf800) return Buffer.from([code - 0xf700]);
    if (code < 0x80 || charset === 'utf8mb4') return Buffer.from(letter);
    return Buffer.from(tableOf(charset).get(letter) ?? [0x3f]);
  });
  return Buffer.concat(bytes);
}

/**
 * The last byte of 縗 in gbk, of 表, ソ and 十 in sjis, and of 功 and 許 in big5 is a backslash. The last byte of 乣 in gbk is
 * a backtick.
 */
const letters = ['größe', 'Ж', '縗', '乣', '縗乣', '表ソ十', '功許', 'ä', 'é`', '表\\', "縗'", '乣`'];
const oddTexts = [
  ...letters,
  'a`b',
  'it\'s "quoted"',
  'ends\\',
  "\\'",
  '*/ DROP DATABASE mysql; -- ',
  '/*!50003 x */',
  '/*M!100100 y */',
  'DELIMITER ;;',
  'two\nlines\n\\! touch x\n',
  "'; GRANT ALL ON *.* TO owner; -- ",
  '`; SET GLOBAL max_connections = 7; -- ',
  '%',
  '$$',
  '@@global.x',
  'root@localhost',
];
const oddNames = [
  ...oddTexts.filter((text) => !/\s$/.test(text)),
  ...[
    't',
    'T',
    'select',
    'proc',
    'Proc',
    'mysql',
    'global_priv',
    'mysql.proc',
    'user',
    'root',
    'drydock_0123456789abcdef',
    'Noted',
  ],
  ...['n'.repeat(64), 'N'.repeat(64), '縗'.repeat(64), '../../x', '#sql-1', 'md5', 'CURRENT_USER'],
];

/** The names and random choices for one schema. All names are different, but some differ only in case. */
export class Room {
  readonly random: SeededRandom;
  readonly flavour: Flavour;
  readonly owner: string;
  /**
   * `charset` and `mode` are the character set and SQL mode of the session that creates the next objects. The server
   * stores them with each routine, trigger and event.
   */
  charset: Charset = 'utf8mb4';
  mode = '';
  private readonly used = new Set<string>();

  constructor(random: SeededRandom, flavour: Flavour, owner: string) {
    this.random = random;
    this.flavour = flavour;
    this.owner = owner;
  }

  /** Chooses the settings of another client, and returns the statements that set them. */
  turn(): string[] {
    this.charset = this.random.pick(charsets);
    this.mode = this.random.pick(sqlModes);
    return [`SET NAMES ${this.charset}`, `SET SESSION sql_mode = '${this.mode}'`];
  }

  private readable(from: readonly string[]): string {
    const table = this.charset === 'utf8mb4' ? null : tableOf(this.charset);
    const known = from.filter((text) =>
      Array.from(text).every((letter) => letter < '\x80' || table === null || table.has(letter)),
    );
    return this.random.pick(known);
  }

  name(): string {
    for (;;) {
      const base = this.readable(oddNames);
      const name = this.used.has(base) ? `${Array.from(base).slice(0, 50).join('')}${this.used.size}` : base;
      if (this.used.has(name)) continue;
      this.used.add(name);
      return quoteName(name);
    }
  }

  /** Returns a string literal with an odd text, such as a text that looks like SQL. */
  text(): string {
    const text = this.readable(oddTexts).replaceAll("'", "''");
    return `'${this.mode.includes('NO_BACKSLASH_ESCAPES') ? text : text.replaceAll('\\', '\\\\')}'`;
  }

  /** Returns a DEFINER clause: mostly one that the owner may use, sometimes one that the owner may not. */
  definer(): string {
    const account = `${quoteName(this.owner)}@\`%\``;
    const [wanted, own] = [
      ['root@localhost', '`drydock_0123456789abcdef`@localhost', '`mariadb.sys`@localhost'],
      ['', 'CURRENT_USER', account],
    ];
    const definer = this.random.pick(this.random.isChosen(0.1) ? wanted : own);
    return definer === '' ? '' : `DEFINER = ${definer}`;
  }

  security(): string {
    return this.random.pick(['', 'SQL SECURITY DEFINER', 'SQL SECURITY INVOKER']);
  }

  /** Returns a comment that some flavours or versions run as code. */
  versioned(code: string): string {
    const comment = this.random.pick(['/*!', '/*!50003', '/*!50701', '/*M!', '/*M!100100', '/*!99999', '/*!999999']);
    return `${comment} ${code} */`;
  }
}
