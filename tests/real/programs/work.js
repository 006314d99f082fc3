// Objects, strings, buffers, compression and worker threads; the same output each time.
'use strict';
const crypto = require('crypto');
const zlib = require('zlib');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

const WORKERS = 3;
const ROUNDS = 120;

function generator(seed) {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0);
}

function work(seed) {
  const next = generator(seed);
  const hash = crypto.createHash('sha256');
  const kept = new Map();
  for (let round = 0; round < ROUNDS; round++) {
    const rows = [];
    for (let i = 0; i < 500; i++) rows.push({ id: next() % 10007, name: 'row ' + next(), tags: ['a', next()] });
    const json = JSON.stringify(rows);
    const packed = zlib.deflateSync(json, { level: 1 + (round % 9) });
    const back = zlib.inflateSync(packed);
    if (back.toString() !== json) throw new Error('inflate differs');
    const copy = Buffer.allocUnsafeSlow(1 + (next() % 3000000)).fill(round);
    hash.update(packed).update(copy.subarray(0, 4096));
    kept.set(next() % 50, copy.subarray(0, 1 + (copy.length >> 4)));
    for (const row of JSON.parse(json)) if (row.id % 1009 === 0) hash.update(row.name.replace(/(\d)(\d)/g, '$2$1'));
  }
  for (const key of [...kept.keys()].sort((a, b) => a - b)) hash.update(kept.get(key));
  hash.update(zlib.brotliCompressSync(Buffer.alloc(200000, 'hakmem'), { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } }));
  return hash.digest('hex');
}

if (isMainThread) {
  console.log(0, work(1));
  const results = [];
  for (let i = 1; i <= WORKERS; i++) {
    const worker = new Worker(__filename, { workerData: i });
    worker.on('message', (digest) => {
      results.push(`${i} ${digest}`);
      if (results.length === WORKERS) console.log(results.sort().join('\n'));
    });
  }
} else {
  parentPort.postMessage(work(workerData + 1));
}
