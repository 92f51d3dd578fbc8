// Mutual nearest neighbours of two sets of unit descriptors, away from the page's thread.
onmessage = ({ data: { id, a, b, dim } }) => {
  const n = a.length / dim, m = b.length / dim;
  const bestA = new Int32Array(n).fill(-1), scoreA = new Float32Array(n).fill(-2);
  const bestB = new Int32Array(m).fill(-1), scoreB = new Float32Array(m).fill(-2);
  for (let i = 0; i < n; i++) {
    const x = a.subarray(i * dim, (i + 1) * dim);
    for (let j = 0; j < m; j++) {
      let dot = 0;
      for (let k = 0, o = j * dim; k < dim; k++) dot += x[k] * b[o + k];
      if (dot > scoreA[i]) { scoreA[i] = dot; bestA[i] = j; }
      if (dot > scoreB[j]) { scoreB[j] = dot; bestB[j] = i; }
    }
  }
  const pairs = [];
  for (let i = 0; i < n; i++) if (bestA[i] >= 0 && bestB[bestA[i]] === i) pairs.push([i, bestA[i], scoreA[i]]);
  postMessage({ id, pairs });
};
