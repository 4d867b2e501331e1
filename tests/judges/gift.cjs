// Reads a GIFT file, a JSON string from standard input, with gift-pegjs, whose folder is named first; prints what it found.
const { parse } = require(process.argv[2]);
console.log(JSON.stringify(parse(JSON.parse(require("fs").readFileSync(0, "utf8")))));
