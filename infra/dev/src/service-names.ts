/** Services with a database of their own. */
export const servicesWithDatabase = ['keys', 'hosting', 'compute', 'agency', 'databases'] as const;
export type ServiceWithDatabase = (typeof servicesWithDatabase)[number];
