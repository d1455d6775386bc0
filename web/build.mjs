// Makes the page: one script, one style sheet, fixed names. The same sources and packages give the same bytes.
//   node build.mjs [DIR]        default: ../crates/web/assets
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { build } from 'esbuild';

const out = process.argv[2] ?? '../crates/web/assets';
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await build({
  entryPoints: { app: 'src/main.tsx' },
  outdir: out,
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  charset: 'utf8',
  logLevel: 'warning',
});
for (const file of ['index.html', 'icon.svg']) cpSync(`public/${file}`, `${out}/${file}`);
