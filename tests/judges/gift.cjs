// Reads a GIFT file, named second, with the parser gift-pegjs, whose folder is named first; prints what it found.
const { parse } = require(process.argv[2]);
const text = require("fs").readFileSync(process.argv[3], "utf8");
console.log(JSON.stringify(parse(text)));
