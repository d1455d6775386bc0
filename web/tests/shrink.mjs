// Pictures of a page have few colours: written with a palette they are a quarter of their size.
import { deflateSync } from 'node:zlib';

const table = new Int32Array(256).map((_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});
const crc = (bytes) => {
  let c = -1;
  for (const byte of bytes) c = table[(c ^ byte) & 255] ^ (c >>> 8);
  return (c ^ -1) >>> 0;
};
const chunk = (name, data) => {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc(body));
  return Buffer.concat([length, body, sum]);
};

/** A picture of at most 256 colours: the most frequent ones, and for each other the nearest of them. */
export function shrink({ width, height, data }) {
  const counts = new Map();
  const key = (at) => (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
  for (let at = 0; at < data.length; at += 4) counts.set(key(at), (counts.get(key(at)) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 256).map(([color]) => color);
  const nearest = new Map(palette.map((color, at) => [color, at]));
  const find = (color) => {
    const known = nearest.get(color);
    if (known !== undefined) return known;
    let [best, least] = [0, Infinity];
    palette.forEach((other, at) => {
      const d = ((color >> 16) - (other >> 16)) ** 2 + (((color >> 8) & 255) - ((other >> 8) & 255)) ** 2 + ((color & 255) - (other & 255)) ** 2;
      if (d < least) [best, least] = [at, d];
    });
    nearest.set(color, best);
    return best;
  };
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = find(key(4 * (y * width + x)));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', head),
    chunk('PLTE', Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]))),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
