export { type Claim, createControlClient, nothing } from './control-client';
export { type Change, type ChangeName, changeSchema } from './control-protocol';
export { type ChannelRoute, type ControlRoute, controlRoutesOf, done, ok } from './control-routes';
export { createControlServer } from './control-server';
