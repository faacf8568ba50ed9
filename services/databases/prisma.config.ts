import { defineConfig } from 'prisma/config';

export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  // Prisma's `env()` throws if DATABASE_URL is unset, but a bare clone must be able to generate the client.
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
});
