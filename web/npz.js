// Reading NumPy's NPZ as the server writes it: a ZIP of NPY arrays, stored.
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function npy(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint16(8, true);
  const header = new TextDecoder().decode(bytes.subarray(10, 10 + length));
  const type = /'descr': '([^']+)'/.exec(header)[1];
  const shape = /'shape': \(([^)]*)\)/.exec(header)[1].split(",").map((s) => s.trim()).filter(Boolean).map(Number);
  const data = bytes.slice(10 + length).buffer;
  if (type === "<f4") return { shape, data: new Float32Array(data) };
  if (type === "|u1") return { shape, data: new Uint8Array(data) };
  if (type === "<f2") return { shape, data: Float32Array.from(new Uint16Array(data), half) };
  throw new Error("unknown type " + type);
}

export function readNpz(buffer) {
  const view = new DataView(buffer), arrays = {};
  let at = view.getUint32(buffer.byteLength - 22 + 16, true);
  for (let n = view.getUint16(buffer.byteLength - 22 + 10, true); n > 0; n--) {
    const size = view.getUint32(at + 20, true), nameLength = view.getUint16(at + 28, true);
    const name = new TextDecoder().decode(new Uint8Array(buffer, at + 46, nameLength));
    const local = view.getUint32(at + 42, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    arrays[name.replace(/\.npy$/, "")] = npy(new Uint8Array(buffer, start, size));
    at += 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return arrays;
}
