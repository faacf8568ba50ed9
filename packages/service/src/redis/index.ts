export { openRedis, type RedisClient } from './open-redis';
