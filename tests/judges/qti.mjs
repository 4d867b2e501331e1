// Turns the QTI 2.1 files of a JSON object from standard input into QTI 3 with @citolab/qti-convert, whose folder is
// named first; prints the same object with their new text.
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";

const { convertQti2toQti3 } = await import(pathToFileURL(`${process.argv[2]}/dist/qti-converter-node/index.js`).href);
const files = JSON.parse(readFileSync(0, "utf8"));
const made = {};
for (const [path, text] of Object.entries(files)) {
  made[path] = await convertQti2toQti3(text);
}
console.log(JSON.stringify(made));
