/** Thrown by a faultpoint in mode `throw`: a definite failure, never to be retried. */
export class InjectedFault extends Error {
  constructor(point: string) {
    super(`fault injected at ${point}`);
    this.name = 'InjectedFault';
  }
}
