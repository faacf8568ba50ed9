import { defineConfig } from 'prisma/config';

export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  // Prisma's `env()` would throw if DATABASE_URL were not set, so a fresh clone could not generate its client.
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
});
