import path from 'node:path';
import type { TestStack } from '@drydock/testing/stack';
import { request } from 'undici';
import { startChild } from './children';
import { requestsPerSecond } from './load';
import { median } from './measure';
import { printRows, say } from './report';
import { environmentOf, startBenchStack } from './stack';

const rounds = 3;
const keys = 100;

/** Mints more keys than a page of the list has. */
export async function addKeys({ base_url, live_key }: TestStack['demo']): Promise<void> {
  const headers = { authorization: `Bearer ${live_key}`, 'content-type': 'application/json' };
  for (let number = 0; number < keys; number += 1) {
    const body = JSON.stringify({ name: `key ${number}`, scopes: ['sites.view'] });
    const answer = await request(`${base_url}/v1/api-keys`, { method: 'POST', headers, body });
    await answer.body.dump();
  }
}

/**
 * Compares `GET /v1/api-keys`, answered by the gateway and the keys service, with the same query in a bare process of
 * Express and Prisma. Both use the same database.
 */
export async function benchListKeys(): Promise<void> {
  const stack = await startBenchStack();
  const { base_url, live_key, org_id } = stack.demo;
  const headers = { authorization: `Bearer ${live_key}` };
  try {
    await addKeys(stack.demo);
    const bare = await startChild(path.join(__dirname, 'bare-list-keys.js'), {
      DATABASE_URL: environmentOf(stack.processes(), 'keys', 'DATABASE_URL'),
      ORG_ID: org_id,
    });
    const rates: { ours: number[]; bare: number[] } = { ours: [], bare: [] };
    for (let round = 0; round < rounds; round += 1) {
      rates.ours.push(await requestsPerSecond({ url: `${base_url}/v1/api-keys`, headers }));
      rates.bare.push(await requestsPerSecond({ url: bare.url }));
      say(
        `round ${round + 1}: drydock ${rates.ours.at(-1)?.toFixed(0)}, bare ${rates.bare.at(-1)?.toFixed(0)} requests/s`,
      );
    }
    await bare.stop();
    const [ours, peer] = [median(rates.ours), median(rates.bare)];
    const row = {
      what: 'GET /v1/api-keys, a page of 50, 32 connections',
      ours: `${ours.toFixed(0)} req/s`,
      peer: 'one bare Express + Prisma process',
      peerValue: `${peer.toFixed(0)} req/s`,
      ratio: ours / peer,
      bar: 0.5,
    };
    printRows('Listing keys', [row], `Ours: gateway (key, quota, signature) and service. Median of ${rounds} rounds.`);
  } finally {
    await stack.stop();
  }
}
