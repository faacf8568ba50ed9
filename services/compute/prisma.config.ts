import { defineConfig } from 'prisma/config';

export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  // Prisma's `env()` is not used, because it throws if the variable is missing. A fresh clone generates its client
  // without the variable.
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
});
