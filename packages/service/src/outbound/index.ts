export { AddressRefused, createGuardedAgents, type ResolveAll } from './guarded-agent';
export { authorityOf, isEndpointAllowed, isPublicAddress } from './public-address';
