import { endpoints } from '@drydock/contracts/platform/endpoints';
import { listFiles, readText } from './source-files';

const built = new Set(listFiles('services/*/src/routes.ts').map((file) => file.split('/')[1]));
const mounts = listFiles('services/*/src/routes.ts', 'services/*/src/*/routes.ts').map((file) => ({
  service: file.split('/')[1],
  text: readText(file),
}));

describe('the endpoints that contracts promise', () => {
  it('are each mounted once, by the service that owns them', () => {
    const wrong = endpoints
      .filter((endpoint) => built.has(endpoint.service))
      .map((endpoint) => {
        const count = mounts
          .filter((mount) => mount.service === endpoint.service)
          .flatMap((mount) => mount.text.match(new RegExp(`route\\(\\s*(?:[A-Za-z]+\\.)?${endpoint.id}\\b`, 'g')) ?? []).length;
        return `${endpoint.service} mounts ${endpoint.id} ${count} times`;
      })
      .filter((line) => !line.endsWith(' 1 times'));
    expect(wrong).toEqual([]);
  });

  it('have paths and operation ids of their own', () => {
    const keys = endpoints.map((endpoint) => `${endpoint.method} ${endpoint.path}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(new Set(endpoints.map((endpoint) => endpoint.id)).size).toBe(endpoints.length);
  });
});
