// Where we are: the part of the address behind #, so that every view can be bookmarked and shared.
import { useEffect, useState } from 'preact/hooks';

export interface Place {
  path: string[];
  query: URLSearchParams;
}

export function here(): Place {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const parts = (path ?? '').split('/').filter(Boolean).map(decodeURIComponent);
  return { path: parts.length ? parts : ['fleet'], query: new URLSearchParams(query ?? '') };
}

export function usePlace(): Place {
  const [place, set] = useState(here);
  useEffect(() => {
    const moved = () => set(here());
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, []);
  return place;
}

export function href(path: string[], query: Record<string, string | undefined> = {}): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) all.set(name, value);
  const text = all.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

export const go = (path: string[], query: Record<string, string | undefined> = {}): void => {
  location.hash = href(path, query).slice(1);
};

/** Changes the question without a step in the browser's history. */
export function replace(path: string[], query: Record<string, string | undefined>): void {
  history.replaceState(null, '', href(path, query));
  dispatchEvent(new HashChangeEvent('hashchange'));
}
