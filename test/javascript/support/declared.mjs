// Prints as JSON where a file of types and its module differ: node declared.mjs FILE.d.ts MODULE.js
//
// What one exports and the other does not; members of classes and objects, and handlers, that are declared and are not there.

import ts from "typescript";

const [declarations, file] = process.argv.slice(2);
const module = await import(`file://${file}`);
const program = ts.createProgram([declarations], {target: ts.ScriptTarget.ES2022, lib: ["lib.es2022.d.ts", "lib.dom.d.ts"]});
const checker = program.getTypeChecker();
const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(declarations)));
const isValue = (symbol) => (symbol.flags & ts.SymbolFlags.Value) !== 0;
// Not what a class of the language has that is the parent of one.
const isOwn = (member) => member.declarations?.some((each) => each.getSourceFile().fileName === declarations) ?? true;
const membersOf = (type) => checker.getPropertiesOfType(type).filter(isOwn).map((member) => member.name);

const declared = symbols.filter(isValue).map((symbol) => symbol.name).sort();
const there = Object.keys(module).sort();
const differences = [
  ...declared.filter((name) => !there.includes(name)).map((name) => `${name} is declared, and not exported`),
  ...there.filter((name) => !declared.includes(name)).map((name) => `${name} is exported, and not declared`),
];

// A member of a class is a field, a method or an accessor at the beginning of a line of it.
const isMember = (source, name) => new RegExp(`^\\s+(?:get |async )?${name}\\b`, "m").test(source);
let looked = 0;
for (const symbol of symbols.filter((each) => isValue(each) && there.includes(each.name))) {
  const value = module[symbol.name];
  const isClass = (symbol.flags & ts.SymbolFlags.Class) !== 0;
  const members = isClass ? membersOf(checker.getDeclaredTypeOfSymbol(symbol)) : typeof value === "object" ? membersOf(checker.getTypeOfSymbol(symbol)) : [];
  looked += members.length;
  const missing = members.filter((name) => (isClass ? !isMember(value.toString(), name) : !(name in value)));
  differences.push(...missing.map((name) => `${symbol.name}.${name} is declared, and not there`));
  if (typeof value === "object") differences.push(...Object.keys(value).filter((name) => !members.includes(name)).map((name) => `${symbol.name}.${name} is there, and not declared`));
}

// By interface, the class that calls what it names.
const HANDLERS = {ParserHandlers: "EventParser", Handlers: "Stream"};
for (const [name, user] of Object.entries(HANDLERS)) {
  const symbol = symbols.find((each) => each.name === name);
  if (!symbol || !module[user]) continue;
  const handlers = membersOf(checker.getDeclaredTypeOfSymbol(symbol));
  const called = [...module[user].toString().matchAll(/(?:#handlers\.|#call\(")(on\w+)/g)].map(([, handler]) => handler);
  looked += handlers.length;
  differences.push(...handlers.filter((each) => !called.includes(each)).map((each) => `${name}.${each} is declared, and not called`));
  differences.push(...called.filter((each) => !handlers.includes(each)).map((each) => `${name}.${each} is called, and not declared`));
}

console.log(JSON.stringify({declared, looked, differences}));
