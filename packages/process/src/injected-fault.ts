/** A faultpoint in mode `throw` throws it: a definite failure, never to be retried. */
export class InjectedFault extends Error {
  constructor(point: string) {
    super(`fault injected at ${point}`);
    this.name = 'InjectedFault';
  }
}
