// Numbers and times as people read them, the same way the terminal shows them.

const whole = new Intl.NumberFormat('en-US');

/** 500,000 */
export const int = (n: number): string => whole.format(Math.round(n));

/** $4.56, $0.121, $12,400: small amounts keep three figures that mean something. */
export function usd(n: number): string {
  const sign = n < 0 ? '-' : '';
  const size = Math.abs(n);
  // What adding and taking away leaves of a sum is not money.
  if (size < 1e-9) return '$0';
  if (size < 0.0001) return `${sign}$${size.toExponential(1)}`;
  if (size < 1) {
    const places = Math.max(2, 2 - Math.floor(Math.log10(size)));
    let text = size.toFixed(places);
    while (text.endsWith('0') && text.length - text.indexOf('.') > 3) text = text.slice(0, -1);
    return `${sign}$${text}`;
  }
  return size < 1000 ? `${sign}$${size.toFixed(2)}` : `${sign}$${int(size)}`;
}

/** $1,018.98, $0.14: sums of money in a column, to the cent, so that they line up. */
export function cents(n: number): string {
  if (Math.abs(n) < 1e-9) return '$0.00';
  if (Math.abs(n) < 0.005) return n < 0 ? '>-$0.01' : '<$0.01';
  return `${n < 0 ? '-' : ''}$${Math.abs(n).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** $0.0966, $1.5300: prices of machines in a column, as providers state them, so that they line up. */
export const price = (n: number): string => (n !== 0 && Math.abs(n) < 0.0001 ? usd(n) : `$${n.toLocaleString('en-US', { minimumFractionDigits: 4, maximumFractionDigits: 4 })}`);

/** +$3.10 or -$3.10, for differences in a column. */
export const centsMore = (n: number): string => (n >= 0.005 ? `+${cents(n)}` : cents(n));

export const hourly = (n: number): string => `${usd(n)}/h`;

/** +$3.10 or -$3.10, for differences. */
export const change = (n: number): string => (n > 1e-9 ? `+${usd(n)}` : usd(n));

/** For axes: no cents where there are dollars. */
export const short = (n: number): string => (Math.abs(n) >= 10 ? `$${int(n)}` : usd(n));

/** +3, -3, 0 */
export const delta = (n: number): string => (n > 0 ? `+${int(n)}` : n < 0 ? `-${int(-n)}` : '0');

export const percent = (share: number): string => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

/** 1.5k, 12M, 3.2Ti: amounts of a resource, memory and disks in powers of 1,024. */
export function amount(n: number, resource: string): string {
  const bytes = /memory|storage|hugepages/.test(resource);
  const [step, units] = bytes ? [1024, ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']] as const : [1000, ['', 'k', 'M', 'G', 'T', 'P']] as const;
  let [size, unit] = [n, 0];
  while (size >= (bytes ? step : 10_000) && unit < units.length - 1) {
    size /= step;
    unit += 1;
  }
  const text = size >= 100 || Number.isInteger(size) ? int(size) : size.toFixed(1);
  return `${text}${bytes && unit ? ' ' : ''}${units[unit]}`;
}

const two = (n: number): string => String(n).padStart(2, '0');

/** 14:02:10, with the date before it if that is not the day of `now`. */
export function clock(time: string | null, now: string | null): string {
  if (!time) return '–';
  const t = new Date(time);
  const text = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
  if (!now || new Date(now).toDateString() === t.toDateString()) return text;
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${text}`;
}

/** 14s, 6m, 2h5m, 3d4h */
export function span(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  const pair = (big: number, unit: string, rest: number, small: string) =>
    rest ? `${big}${unit}${rest}${small}` : `${big}${unit}`;
  if (s < 120) return `${s}s`;
  if (s < 600) return pair(Math.floor(s / 60), 'm', s % 60, 's');
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  if (s < 36000) return pair(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'm');
  if (s < 172800) return `${Math.floor(s / 3600)}h`;
  return pair(Math.floor(s / 86400), 'd', Math.floor((s % 86400) / 3600), 'h');
}

/** How long ago, by the shard's clock. */
export const ago = (time: string | null, now: string | null): string =>
  time && now ? span((Date.parse(now) - Date.parse(time)) / 1000) : '–';

/** on_demand → on-demand */
export const word = (code: string | null): string => (code ?? '–').replaceAll('_', '-');
