/** The download of the model and of the runtime, with its progress. */

import { sum } from "./vector_math.js";

/** Fetch a file that lies beside the page. */
export async function request(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return response;
}

/**
 * Download files one after the other.
 *
 * @param {Object<string, number>} sizes The size of each file in bytes.
 * @param {function(number, number): void} onProgress
 * @returns {Promise<Object<string, Uint8Array>>} The content of each file.
 */
export async function download(sizes, onProgress) {
  const all = sum(Object.values(sizes));
  const files = {};
  let done = 0;
  for (const name of Object.keys(sizes)) {
    const chunks = [];
    const reader = (await request(name)).body.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      chunks.push(part.value);
      done += part.value.length;
      onProgress(done, all);
    }
    files[name] = new Uint8Array(await new Blob(chunks).arrayBuffer());
  }
  return files;
}
