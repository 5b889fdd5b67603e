/** Calculations with vectors: sum, dot product, norm, cosine and mean. */

export function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

export function dot(a, b) {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
}

export function norm(vector) {
  return Math.sqrt(dot(vector, vector));
}

export function cosine(a, b) {
  const scale = Math.sqrt(dot(a, a) * dot(b, b));
  return scale ? Math.min(1, Math.max(-1, dot(a, b) / scale)) : 0;
}

/** Return the mean of vectors. */
export function mean(vectors) {
  const total = new Float64Array(vectors[0].length);
  for (const vector of vectors) for (let i = 0; i < total.length; i++) total[i] += vector[i];
  return total.map((value) => value / vectors.length);
}
