// Buffers and objects for Node: buffers.mjs ROUNDS.  JSON, maps and strings live in V8's heap, buffers' bytes come from malloc.
let state = 99;
const random = (bound) => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff) % bound;

const kept = [];
let total = 0;
for (let round = 0; round < Number(process.argv[2]); round++) {
  const buffers = [];
  for (let at = 0; at < 3000; at++) {
    const buffer = Buffer.alloc(64 << random(9), at & 255);
    buffer.write(`block ${at} of ${round}`);
    buffers.push(buffer);
  }
  const names = new Map(buffers.map((buffer) => [buffer.toString('latin1', 0, 24), buffer]));
  const text = JSON.stringify([...names.keys()].map((name, at) => ({ name, at, bytes: names.get(name).length })));
  total += JSON.parse(text).length + Buffer.concat(buffers.slice(0, 500)).toString('base64').length;
  kept.push(buffers.filter(() => random(8) === 0));
  if (kept.length > 6) kept.shift();
}
console.log(total);
