// Public keys of SSH: what a person pastes is checked before it is sent.
import type { Text } from "./text";

const types = /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com)$/;

export interface PublicKey {
  type: string;
  comment: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Reads a line of a .pub file, or returns the text that says why it isn't one. */
export function readKey(text: string): PublicKey | Text {
  const line = text.trim();
  if (/-----BEGIN|PuTTY-User-Key-File/.test(line)) return "key.private";
  if (/[\r\n]/.test(line)) return "key.lines";
  const [type = "", encoded = "", ...comment] = line.split(/[ \t]+/);
  if (!types.test(type)) return "key.type";
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
  } catch {
    return "key.cut";
  }
  // The bytes begin with the type, and each of their parts has its length before it.
  const view = new DataView(bytes.buffer);
  let at = 0;
  let first = "";
  while (at + 4 <= bytes.length) {
    const n = view.getUint32(at);
    if (at === 0) first = String.fromCharCode(...bytes.slice(4, 4 + Math.min(n, 64)));
    at += 4 + n;
  }
  return at === bytes.length && first === type ? { type, comment: comment.join(" "), bytes } : "key.cut";
}

/** Returns the fingerprint as ssh-keygen -l prints it. */
export async function fingerprint(key: PublicKey): Promise<string> {
  const sum = await crypto.subtle.digest("SHA-256", key.bytes);
  return "SHA256:" + btoa(String.fromCharCode(...new Uint8Array(sum))).replace(/=+$/, "");
}
