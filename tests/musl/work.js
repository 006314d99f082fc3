// Objects, buffers, compression, sockets and threads of their own, so that Node and what it is made of allocate.
const { Worker, isMainThread, parentPort } = require('worker_threads');
const crypto = require('crypto');
const http = require('http');
const zlib = require('zlib');

const digest = (data) => crypto.createHash('sha256').update(data).digest('hex');

function work(seed) {
  const rows = Array.from({ length: 20000 }, (_, at) => ({ at, text: `${seed}-${at}`.repeat(5) }));
  const packed = zlib.gzipSync(JSON.stringify(rows));
  return digest(zlib.gunzipSync(packed));
}

if (!isMainThread) {
  parentPort.on('message', (seed) => { parentPort.postMessage(work(seed)); parentPort.close(); });
} else {
  const asked = (seed) => new Promise((resolve, reject) => {
    const worker = new Worker(__filename);
    worker.on('message', resolve).on('error', reject);
    worker.postMessage(seed);
  });
  const served = () => new Promise((resolve) => {
    const server = http.createServer((_, response) => response.end(work(9))).listen(0, '127.0.0.1', () => {
      http.get({ port: server.address().port, host: '127.0.0.1' }, (response) => {
        let body = '';
        response.on('data', (part) => { body += part; }).on('end', () => { server.close(); resolve(body); });
      });
    });
  });
  Promise.all([1, 2, 3, 4].map(asked)).then((sums) => served().then((body) => console.log([...sums, body].join('\n'))));
}
