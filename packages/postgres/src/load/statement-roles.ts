const identifier = String.raw`(?:"(?:[^"]|"")+"|[a-z_\u0080-\uffff][a-z0-9_$\u0080-\uffff]*)`;
const granted = new RegExp(
  String.raw`^((?:GRANT|REVOKE) [\s\S]* (?:TO|FROM) )(${identifier}|PUBLIC)( WITH GRANT OPTION)?$`,
);
const defaults = new RegExp(
  `^(ALTER DEFAULT PRIVILEGES FOR ROLE )(${identifier})` +
    String.raw`( [\s\S]* (?:TO|FROM) )(${identifier}|PUBLIC)( WITH GRANT OPTION)?$`,
);
const policy = new RegExp(
  String.raw`^(CREATE POLICY ${identifier} ON (?:ONLY )?${identifier}(?:\.${identifier})?` +
    '(?: AS [A-Z]+)?(?: FOR [A-Z]+)? TO )' +
    `((?:${identifier}|PUBLIC)(?:, (?:${identifier}|PUBLIC))*)` +
    String.raw`((?: USING | WITH CHECK )[\s\S]*)?$`,
);

const read = (quoted: string): string => (quoted.startsWith('"') ? quoted.slice(1, -1).replaceAll('""', '"') : quoted);
const quote = (role: string): string => `"${role.replaceAll('"', '""')}"`;

export interface RoleNames {
  /** The owner of the dumped database, or null if the dump does not name it. */
  dumpedOwner: string | null;
  owner: string;
  /** The roles that exist on the target. */
  existing: ReadonlySet<string>;
  /** Owners who set their own default privileges. */
  makers?: ReadonlySet<string>;
}

/** Returns the roles that a statement of pg_dump names, except PUBLIC. */
export function rolesOf(text: string): string[] {
  const inPolicy = policy.exec(text)?.[2]?.match(new RegExp(identifier, 'g'));
  const inDefaults = defaults.exec(text);
  const found = inPolicy ?? (inDefaults ? [inDefaults[2] ?? '', inDefaults[4] ?? ''] : [granted.exec(text)?.[2] ?? '']);
  return found.filter((role) => role !== '' && role !== 'PUBLIC').map(read);
}

/**
 * Replaces the dumped database's owner by the target's. Returns null if the statement only concerns missing roles,
 * because such a grant or policy has no effect.
 */
export function withRolesOf(
  text: string,
  { dumpedOwner, owner, existing, makers = new Set() }: RoleNames,
): string | null {
  const translate = (role: string): string | null => {
    if (role === 'PUBLIC') return role;
    const translated = read(role) === dumpedOwner ? owner : read(role);
    return existing.has(translated) || translated === owner ? quote(translated) : null;
  };
  const inPolicy = policy.exec(text);
  if (inPolicy) {
    const roles = (inPolicy[2] ?? '').match(new RegExp(`${identifier}|PUBLIC`, 'g')) ?? [];
    const known = roles.map(translate).filter((role) => role !== null);
    return known.length === 0 ? null : `${inPolicy[1]}${known.join(', ')}${inPolicy[3] ?? ''}`;
  }
  const inDefaults = defaults.exec(text);
  if (inDefaults) {
    const [maker, grantee] = [translate(inDefaults[2] ?? ''), translate(inDefaults[4] ?? '')];
    // Only the role itself may set its default privileges.
    if (maker === null || grantee === null || (maker !== quote(owner) && !makers.has(read(maker)))) return null;
    return `${inDefaults[1]}${maker}${inDefaults[3]}${grantee}${inDefaults[5] ?? ''}`;
  }
  const inGrant = granted.exec(text);
  if (!inGrant) return text;
  const grantee = translate(inGrant[2] ?? '');
  return grantee === null ? null : `${inGrant[1]}${grantee}${inGrant[3] ?? ''}`;
}
