import { defineConfig } from 'prisma/config';

export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  // Prisma's `env()` is not used, because it throws for a missing variable. Then `prisma generate` would fail on a
  // fresh clone.
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
});
