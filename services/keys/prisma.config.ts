import { defineConfig } from 'prisma/config';

export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  // `env()` would throw without the variable, so a fresh clone could not generate the Prisma client.
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
});
