/**
 * Opens the documentation in a real browser.
 *
 * @tier long
 * @processes
 */
import { findProgram } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { type Bench, startBench } from '../../test/fixture';

const program = findProgram(['chromium', 'chromium-browser', 'google-chrome']);
if (program === null) process.stderr.write('No chromium on the PATH: the documentation is not tested in a browser\n');

let bench: Bench;
let browser: Browser;
beforeAll(async () => {
  if (program === null) return;
  bench = await startBench();
  // The browser runs without its sandbox, because a container may not allow namespaces. The sandbox is not needed,
  // because the pages are part of this repository.
  browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu'] });
});
afterAll(async () => {
  await browser?.close();
  await bench?.close();
});

/** Opens a page of the gateway and records its faults: requests to other servers, errors in the console, exceptions. */
async function open(path: string, options: BrowserContextOptions = {}): Promise<{ page: Page; faults: string[] }> {
  const page = await (await browser.newContext(options)).newPage();
  page.setDefaultTimeout(60_000);
  const faults: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(`${bench.url}/`) && !request.url().startsWith('data:'))
      faults.push(`asks ${request.url()}`);
  });
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(`says ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`throws ${error.message}`));
  await page.goto(bench.url + path);
  return { page, faults };
}

const isInView = (page: Page, box: { y: number } | null): boolean =>
  box !== null && box.y >= 0 && box.y < (page.viewportSize()?.height ?? 0);

/** Returns serious barriers for people who cannot see the page or use a pointer. */
async function barriers(page: Page): Promise<string[]> {
  // axe is evaluated directly, because the page's policy refuses a script element.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

(program === null ? describe.skip : describe)('in a browser', () => {
  it('the Reference loads nothing from other servers, reports no error, is accessible, and leads to the guides', async () => {
    const { page, faults } = await open('/docs', { colorScheme: 'light' });
    await page.getByRole('heading', { level: 1, name: 'Drydock' }).waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.getByRole('button', { name: 'Light or dark' }).click();
    expect(await page.locator('body').getAttribute('class')).toContain('dark-mode');
    expect(await barriers(page)).toEqual([]);
    await page.getByRole('link', { name: 'The command', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'The command' }).waitFor();
    expect(faults).toEqual([]);
  });

  it('a URL with an operationId opens that operation', async () => {
    const { page, faults } = await open('/docs#restoreSiteBackup');
    const heading = page.getByRole('heading', {
      name: /Overwrite the site's live files and database with the named backup/,
    });
    await heading.first().waitFor();
    await until(async () => isInView(page, await heading.first().boundingBox()), {
      timeoutMs: 60_000,
      what: 'the operation in view',
    });
    expect(faults).toEqual([]);
  });

  it('a call can be tried with a sandbox key from the Reference', async () => {
    const { page, faults } = await open('/docs');
    await page.getByRole('heading', { level: 1, name: 'Drydock' }).waitFor();
    const key = bench.register({ mode: 'sandbox' });
    await page.getByPlaceholder('Token').filter({ visible: true }).first().fill(key.token);
    await page
      .getByRole('button', { name: /get \/v1\/api-keys\)/i })
      .first()
      .click();
    await page.getByRole('button', { name: /^Send/ }).first().click();
    await page.getByText('200 OK').first().waitFor();
    expect(bench.keys.seen.map(({ method, url, claims }) => [method, url, claims.mode])).toEqual([
      ['GET', '/v1/api-keys', 'sandbox'],
    ]);
    expect(await barriers(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it.each(['/docs', '/docs/guides/errors'])(
    'the search on %s finds words of a guide, is accessible, and works by keyboard alone',
    async (path) => {
      const { page, faults } = await open(path);
      const field = page.getByRole('searchbox', { name: 'Search the guides' });
      await field.fill('DERIVED');
      const found = page.locator('#dd-found');
      await found.getByText(/^\d+ found/).waitFor();
      expect(await found.getByRole('link').first().getAttribute('href')).toMatch(/^\/docs\/guides\/events#/);
      expect((await found.locator('mark').first().textContent())?.toLowerCase()).toBe('derived');
      expect(await barriers(page)).toEqual([]);
      await field.fill('no guide has <b>these words</b>');
      await found.getByText('Nothing has all of these words.').waitFor();
      await field.press('Escape');
      expect(await found.isVisible()).toBe(false);
      await field.fill('rotate-secret');
      await found.getByText(/^\d+ found/).waitFor();
      const target = await found.getByRole('link').first().getAttribute('href');
      await field.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.waitForURL(`${bench.url}${target}`);
      expect(faults).toEqual([]);
    },
  );

  it.each(['/docs/guides', '/docs/guides/events', '/problems', '/problems/rate_limited'])(
    '%s reports no error and is accessible, light and dark',
    async (path) => {
      const { page, faults } = await open(path);
      expect(await barriers(page)).toEqual([]);
      await page.getByRole('button', { name: 'Light or dark' }).click();
      expect(await barriers(page)).toEqual([]);
      // The choice survives a reload.
      await page.reload();
      expect(await page.locator('html').getAttribute('class')).toBe('dark-mode');
      expect(faults).toEqual([]);
    },
  );
});
