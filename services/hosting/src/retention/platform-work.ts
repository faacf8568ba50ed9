/** The organisation of work that no customer asked for and that belongs to no site. */
export const platformOrgId = '00000000-0000-0000-0000-000000000000';

export const platformSubject = { type: 'platform', id: platformOrgId } as const;

/** The resource key that allows one workflow of a kind at a time, in each mode. */
export const platformResourceKey = (kind: string, mode: string): string => `platform:${mode}:${kind}`;
