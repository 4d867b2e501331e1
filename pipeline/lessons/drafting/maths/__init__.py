"""Topics of National 5 Mathematics: texts written by hand, questions made from their answers."""
