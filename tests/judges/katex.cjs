// Sets the formulas of a JSON array from standard input with KaTeX, whose folder is named first; prints those it refuses.
const katex = require(process.argv[2]);
const wrong = [];
for (const formula of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  try { katex.renderToString(formula, { throwOnError: true, strict: "error" }); } catch (error) {
    wrong.push(formula + ": " + error.message);
  }
}
console.log(JSON.stringify(wrong));
