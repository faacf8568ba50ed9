import { changeSchema, splitCall, thingIdSchema } from '../control/control-protocol';
import { type ChannelRoute, type ControlRoute, controlRoutesOf, type Hosted, ok } from '../control/control-routes';
import { jobIdSchema, submitJobSchema } from './job-protocol';
import type { Jobs } from './jobs';

/**
 * The calls about jobs, which are the same for every kind of agent. The fence of a submission is admitted as a change,
 * after all earlier changes of the site or database. The submission itself runs after that change has ended. The reason
 * is that a submission may wait for older jobs to end, and an older job may need a change to clean up.
 */
export function jobRoutesOf(
  things: string,
  hosted: Hosted<unknown>,
  jobs: Jobs,
): { routes: ControlRoute[]; channel: ChannelRoute } {
  const { route } = controlRoutesOf(things, hosted);
  const routes = [
    route('PUT /jobs/{jobId}', async (id, body, sentId) => {
      const [jobId, wanted] = [jobIdSchema.parse(sentId), submitJobSchema.parse(body)];
      await hosted.change(id, { op: `job_${wanted.kind}`, detail: jobId }, wanted, async () => undefined);
      const { isNew, view } = await jobs.submit(id, jobId, wanted);
      return { status: isNew ? 201 : 200, body: view };
    }),
    route('GET /jobs/{jobId}', async (id, _body, sentId) => ok(jobs.read(id, jobIdSchema.parse(sentId)))),
    route('DELETE /jobs/{jobId}', async (id, body, sentId) =>
      ok(await jobs.cancel(id, jobIdSchema.parse(sentId), changeSchema.parse(body).fence)),
    ),
  ];
  const { path } = splitCall('GET /jobs/{jobId}/channel', things, '{id}');
  const channel: ChannelRoute = {
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '([^/]+)')}$`),
    connect: ([id, jobId], socket) => jobs.connect(thingIdSchema.parse(id), jobIdSchema.parse(jobId), socket),
  };
  return { routes, channel };
}
