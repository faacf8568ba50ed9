/** Services with a database of their own. */
export const servicesWithDatabase = ['keys', 'hosting', 'compute'] as const;
export type ServiceWithDatabase = (typeof servicesWithDatabase)[number];
