// Verify that a webhook is Parley's. Copy this file: it needs Node 18 and nothing else.

import { createHmac, timingSafeEqual } from "node:crypto";

/** Throws an Error whose message is "malformed", "mismatch" or "too_old", unless header (X-Service-Signature) signs the raw body. */
export function verify(
  payload: Uint8Array,
  header: string,
  secret: string,
  toleranceSeconds: number = 300,
  nowSeconds: number = Date.now() / 1000,
): void {
  const parts = header.split(",").map((part) => part.split("="));
  const timestamp = parts.filter(([name]) => name === "t").pop()?.slice(1).join("=") ?? "";
  const signatures = parts.filter(([name]) => name === "v1").map((part) => part.slice(1).join("="));
  if (!/^[0-9]{1,18}$/.test(timestamp) || signatures.length === 0) throw new Error("malformed");
  const want = Buffer.from(createHmac("sha256", secret).update(`${timestamp}.`).update(payload).digest("hex"));
  const matches = signatures.map((text) => Buffer.from(text)).some((got) => got.length === want.length && timingSafeEqual(got, want));
  if (!secret || !matches) throw new Error("mismatch");
  if (Number(timestamp) < Math.floor(nowSeconds - toleranceSeconds)) throw new Error("too_old");
}
