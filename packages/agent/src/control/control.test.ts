import { randomBytes, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { signInternalToken, tokenKey } from '@drydock/service/access';
import { z } from 'zod';
import { BoxError, type BoxHost, protocol, startBoxHost } from '../../test/boxes';
import { nothing } from './control-client';
import { channelProtocol } from './control-protocol';

const claim = (fence: number, signal?: AbortSignal) => ({ fence: String(fence), ...(signal ? { signal } : {}) });
const answer = z.object({ text: z.string() });
const touchPath = (): string => `/control/boxes/${randomUUID()}/touch`;
const never = (): Promise<never> => new Promise(() => undefined);

let host: BoxHost;
beforeEach(async () => {
  host = await startBoxHost();
});
afterEach(() => host.close());

test('a change is made, answered, and not made in the name of an older claim', async () => {
  const id = randomUUID();
  const put = (fence: number) =>
    host.client.change('POST /put', { id, claim: claim(fence), fields: { text: 'a' }, answer });
  expect(await put(9)).toEqual({ text: 'a' });
  await expect(put(8)).rejects.toMatchObject({ name: 'BoxError', code: 'stale_fence' });
  // Fence 10 shows that fences are compared as numbers: as text, 10 would come before 9.
  expect(await put(10)).toEqual({ text: 'a' });
  const touch = (fence: number) =>
    host.client.change('POST /touch', { id: id.toUpperCase(), claim: claim(fence), answer: nothing });
  await expect(touch(9)).rejects.toMatchObject({ code: 'stale_fence' });
  expect(await touch(10)).toBeUndefined();
});

test("a refusal keeps the agent's own code, and a failure does not reveal its reason", async () => {
  const call = () =>
    host.client.change('POST /put', { id: randomUUID(), claim: claim(1), fields: { text: 'a' }, answer });
  host.levers.put = () => Promise.reject(new BoxError('box_is_full', 'no more'));
  await expect(call()).rejects.toMatchObject({ name: 'BoxError', code: 'box_is_full', message: 'no more' });
  host.levers.put = () => Promise.reject(new Error('the password is swordfish'));
  await expect(call()).rejects.toMatchObject({ code: 'internal', message: 'see the log' });
});

test('an agent without an answer in time is unreachable; an abort of the caller throws its own reason', async () => {
  const id = randomUUID();
  host.levers.put = never;
  const hasty = host.clientWith({ deadlineMs: 50 });
  const fields = { text: 'a' };
  await expect(hasty.change('POST /put', { id, claim: claim(1), fields, answer })).rejects.toMatchObject({
    code: 'unreachable',
  });
  const nowhere = host.clientWith({ url: 'http://127.0.0.1:1' });
  await expect(nowhere.change('POST /put', { id, claim: claim(1), fields, answer })).rejects.toMatchObject({
    code: 'unreachable',
  });
  const caller = new AbortController();
  const given = host.client.change('POST /put', { id: randomUUID(), claim: claim(1, caller.signal), fields, answer });
  const reason = new Error('the lease is lost');
  caller.abort(reason);
  await expect(given).rejects.toBe(reason);
  await Promise.all([hasty.close(), nowhere.close()]);
});

test('a token is good for one call: not for another path, not for another body', async () => {
  const [callPath, other] = [touchPath(), touchPath()];
  const body = JSON.stringify({ fence: '1' });
  expect((await host.send('POST', callPath, { body })).status).toBe(204);
  expect((await host.send('POST', other, { body, signed: { path: callPath } })).status).toBe(401);
  const altered = await host.send('POST', callPath, { body: JSON.stringify({ fence: '2' }), signed: { body } });
  expect([altered.status, await altered.json()]).toMatchObject([401, { code: 'unauthenticated' }]);
  const stranger = host.clientWith({ secret: 'ab'.repeat(32) });
  await expect(
    stranger.change('POST /touch', { id: randomUUID(), claim: claim(1), answer: nothing }),
  ).rejects.toMatchObject({
    code: 'unauthenticated',
  });
  await stranger.close();
});

test('a token that was used is refused, and what it asks for is not done again', async () => {
  const [path, body] = [touchPath(), '{"fence":"1"}'];
  const bound = { requestId: 'request-1', method: 'POST', path, body: Buffer.from(body) };
  const token = signInternalToken(tokenKey(host.secret), protocol.parties, bound);
  const send = () => fetch(host.url + path, { method: 'POST', body, headers: { authorization: `Bearer ${token}` } });
  expect([(await send()).status, (await send()).status, (await host.send('POST', path, { body })).status]).toEqual([
    204, 401, 204,
  ]);
});

test('a request outside the protocol is refused with the reason: path, id, JSON, body or size', async () => {
  const touch = touchPath();
  const answerOf = async (callPath: string, body: string): Promise<unknown> => {
    const answered = await host.send('POST', callPath, { body });
    return {
      status: answered.status,
      ...z.object({ code: z.string(), detail: z.string() }).parse(await answered.json()),
    };
  };
  const invalid = { status: 422, code: 'invalid_request' };
  expect(await answerOf(`${touch}/more`, '{}')).toMatchObject({ status: 404, code: 'unknown_route' });
  expect(await answerOf('/control/boxes/not-an-id/touch', '{"fence":"1"}')).toMatchObject(invalid);
  expect(await answerOf(touch, '{"fence":')).toMatchObject({ ...invalid, detail: 'the body is not JSON' });
  expect(await answerOf(touch, '{"fence":"1","more":1}')).toMatchObject(invalid);
  expect(await answerOf(touch, ' '.repeat(1_100_000))).toMatchObject({ ...invalid, detail: 'the body is too large' });
  expect((await fetch(`${host.url}${touch}`, { method: 'POST' })).status).toBe(401);
  expect((await fetch(`${host.url}/readyz`)).status).toBe(200);
});

test('a reader gets answers without a password and changes nothing, in neither role', async () => {
  const id = randomUUID();
  const everything = z.record(z.string(), z.string());
  const reader = host.clientWith({ secret: host.readerSecret, role: 'readers' });
  expect(await reader.ask('GET', { id, answer: everything })).toEqual({ text: 'a' });
  expect(await host.client.ask('GET', { id, answer: everything })).toEqual({ text: 'a', password: 'swordfish' });
  const put = { id, claim: claim(1), fields: { text: 'a' }, answer };
  await expect(reader.change('POST /put', put)).rejects.toMatchObject({ code: 'readers_only_ask' });
  await expect(reader.ask('GET /password', { id, answer: everything })).rejects.toMatchObject({
    code: 'readers_only_ask',
  });
  const pretender = host.clientWith({ secret: host.readerSecret });
  await expect(pretender.change('POST /put', put)).rejects.toMatchObject({ code: 'unauthenticated' });
  await Promise.all([reader.close(), pretender.close()]);
});

test('a reader submits no job, reads none, and opens no channel', async () => {
  const id = randomUUID();
  const job = { kind: 'any', spec: {}, fence: '1' };
  const status = async (method: string, rest: string, body: object | undefined, upgrade: boolean): Promise<number> => {
    const callPath = `/control/boxes/${id}/jobs/${randomUUID()}${rest}`;
    const sent = body === undefined ? '' : JSON.stringify(body);
    const bound = { requestId: randomBytes(12).toString('hex'), method, path: callPath, body: Buffer.from(sent) };
    const token = signInternalToken(
      tokenKey(host.readerSecret),
      { issuer: 'tests', audience: 'box-host-reader' },
      bound,
    );
    const headers = {
      authorization: `Bearer ${token}`,
      ...(upgrade ? { connection: 'upgrade', upgrade: channelProtocol } : {}),
    };
    return new Promise((resolve, reject) => {
      const sending = request(`${host.url}${callPath}`, { method, headers }, (response) =>
        resolve(response.resume().statusCode ?? 0),
      );
      sending.on('upgrade', () => resolve(101)).on('error', reject);
      sending.end(sent);
    });
  };
  expect(await status('PUT', '', job, false)).toBe(403);
  expect(await status('GET', '', undefined, false)).toBe(403);
  expect(await status('GET', '/channel', undefined, true)).toBe(403);
});
