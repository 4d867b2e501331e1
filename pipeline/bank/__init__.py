"""The question bank: topics written as YAML by teachers, and the interpreter that draws and checks their questions."""
