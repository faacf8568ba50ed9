// A small Node application. It keeps its greeting and the time of its start in memory, so that only a fresh process
// shows a change of this file.
const http = require('node:http');

const greeting = 'Tide tables are fair today';
const startedAt = new Date();

const server = http.createServer((request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(`${JSON.stringify({ greeting, pid: process.pid, started_at: startedAt, path: request.url })}\n`);
});
server.listen(process.env.PORT);
process.on('SIGTERM', () => server.close(() => process.exit(0)));
