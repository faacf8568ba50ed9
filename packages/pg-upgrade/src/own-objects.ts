/** What the move keeps inside the customer's database while it lasts. Nothing of it is left on the new instance afterwards. */
export const ownSchema = 'drydock_upgrade';
export const publication = 'drydock_upgrade';
export const subscription = 'drydock_upgrade';
export const slot = 'drydock_upgrade';
/** The platform's own role on every instance: no customer may log in as it, and the guard against DDL lets it through. */
export const platformRole = 'postgres';

/** Begins the name of every session of a stage; the claim's fence follows. */
export const sessionPrefix = 'drydock-upgrade/';
