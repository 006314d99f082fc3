// The load of leak.cc in node: twelve sites that leak buffers in known shares, among some that live shortly.
// V8's own heap is no malloc memory; what buffers hold is.
"use strict";
const leaked = [];
const keep = (bytes, count) => {
  for (let i = 0; i < count; i++) leaked.push(new ArrayBuffer(bytes));
};
function site_orders() { keep(512, 200); }
function site_sessions() { keep(2048, 40); }
function site_cache() { keep(32768, 2); }
function site_images() { keep(49152, 1); }
function site_index() { keep(1024, 38); }
function site_names() { keep(256, 120); }
function site_logs() { keep(8192, 3); }
function site_parse() { keep(4864, 4); }
function site_frames() { keep(16384, 1); }
function site_tasks() { keep(768, 16); }
function site_stats() { keep(384, 16); }
function site_misc() { keep(640, 6); }

function churn(rounds) {
  let sum = 0;
  for (let i = 0; i < rounds; i++) {
    const rows = [];
    for (let row = 0; row < 10; row++) rows.push(Buffer.allocUnsafeSlow(100 + (row * 5 + i) % 400));
    sum += rows.length;
  }
  return sum;
}
function turn() {
  site_orders(); site_sessions(); site_cache(); site_images(); site_index(); site_names();
  site_logs(); site_parse(); site_frames(); site_tasks(); site_stats(); site_misc();
  churn(60);
}

const amount = Number(process.argv[3]);
if (process.argv[2] === "work") {
  for (let i = 0; i < amount; i++) turn();
} else {
  const start = Date.now();
  let i = 0;
  const next = () => {
    turn();
    if (i === 0) console.log("leaking");
    i += 1;
    if (Date.now() < start + amount * 1000) setTimeout(next, Math.max(0, start + i * 50 - Date.now()));
  };
  next();
}
