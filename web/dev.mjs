// For working on the page: serves what is built from the sources, again after each change, and passes questions on.
//   node dev.mjs [URL of a running page]        default: http://127.0.0.1:7700
import { execFileSync } from 'node:child_process';
import { readFileSync, watch } from 'node:fs';
import { createServer, request } from 'node:http';

const shard = new URL(process.argv[2] ?? 'http://127.0.0.1:7700');
const out = 'node_modules/.dev';
const build = () => {
  try {
    execFileSync('node', ['build.mjs', out], { stdio: 'inherit' });
  } catch {
    // The message is on the terminal; the next change tries again.
  }
};
build();
let timer;
watch('src', { recursive: true }, () => {
  clearTimeout(timer);
  timer = setTimeout(build, 100);
});
const kinds = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', html: 'text/html' };
createServer((asked, answer) => {
  if (asked.url.startsWith('/api/')) {
    const headers = { ...asked.headers, host: shard.host };
    if (headers.origin) headers.origin = shard.origin;
    const passed = request({ host: shard.hostname, port: shard.port, path: asked.url, method: asked.method, headers }, (said) => {
      answer.writeHead(said.statusCode, said.headers);
      said.pipe(answer);
    });
    passed.on('error', () => answer.destroy());
    asked.pipe(passed);
    return;
  }
  const file = asked.url === '/' ? '/index.html' : asked.url.split('?')[0];
  try {
    const body = readFileSync(`${out}${file}`);
    answer.writeHead(200, { 'content-type': kinds[file.split('.').pop()] ?? 'text/plain', 'cache-control': 'no-store' });
    answer.end(body);
  } catch {
    answer.writeHead(404).end();
  }
}).listen(Number(process.env.PORT ?? 5173), '127.0.0.1', function () {
  console.log(`http://127.0.0.1:${this.address().port}`);
});
