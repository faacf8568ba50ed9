/** Services with a database of their own. */
export const servicesWithDatabase = ['keys', 'hosting'] as const;
export type ServiceWithDatabase = (typeof servicesWithDatabase)[number];
