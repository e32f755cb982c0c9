/** What of the web's platform is used, as the user's own libraries type it. */

export type WebRequest = typeof globalThis extends { Request: { prototype: infer R } }
  ? R
  : { readonly method: string; readonly url: string; readonly headers: WebHeaders };

export type WebResponse = typeof globalThis extends { Response: { prototype: infer R } }
  ? R
  : { readonly status: number; readonly headers: WebHeaders };

interface WebHeaders {
  get(name: string): string | null;
}
