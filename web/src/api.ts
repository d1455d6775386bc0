// Asking the server: one question, one answer, and refusals that can be shown.

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

async function read<T>(response: Response): Promise<T> {
  const text = await response.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Refused(response.status, 'failed', text.slice(0, 200) || response.statusText);
  }
  if (!response.ok) {
    const error = (body as { error?: { code: string; message: string } }).error;
    throw new Refused(response.status, error?.code ?? 'failed', error?.message ?? response.statusText);
  }
  return body as T;
}

export type Query = Record<string, string | number | boolean | undefined>;

export function search(query: Query): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === '' || value === false) continue;
    all.set(name, value === true ? '1' : String(value));
  }
  const text = all.toString();
  return text ? `?${text}` : '';
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await fetch(`/api/${path}${search(query)}`, signal ? { signal } : {}).catch((error: Error) => {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, 'disconnected', 'the server cannot be reached');
  });
  return read<T>(response);
}

/** Everything that is not a plain question: the header is one that no other site's form can send. */
export async function post<T>(path: string, body: unknown, query: Query = {}): Promise<T> {
  const response = await fetch(`/api/${path}${search(query)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-bigfleet': '1' },
    body: JSON.stringify(body),
  }).catch(() => {
    throw new Refused(0, 'disconnected', 'the server cannot be reached');
  });
  return read<T>(response);
}
