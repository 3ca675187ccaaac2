"""Mutants of a source: one small change each, such as a programmer's slip makes.

Python is changed in its syntax tree, Lua by its words. What changes nothing that runs is left out:
docstrings, annotations, comments.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
}
LUA = {
    "<=": "<",
    ">=": ">",
    "<": "<=",
    ">": ">=",
    "==": "~=",
    "~=": "==",
    " and ": " or ",
    " or ": " and ",
    "not ": "",
}
LUA_WORDS = re.compile(r"<=|>=|==|~=|<|>| and | or |\bnot |(?<![\w.])\d+(?![\w.])")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """In words what is changed where; the changed source is made when it is asked for."""

    line: int
    change: str
    make: Callable[[], str]

    @property
    def text(self) -> str:
        """Return the changed source."""
        return self.make()


def of_python(source: str) -> Iterator[Mutant]:
    """Yield the mutants of a module."""
    tree = ast.parse(source)
    skipped = _unrun(tree)
    nodes = [node for node in ast.walk(tree) if id(node) not in skipped]
    places = {id(node): number for number, node in enumerate(ast.walk(tree))}
    for node in nodes:
        for number, (what, _) in enumerate(_changes(node)):
            make = functools.partial(_changed, tree, places[id(node)], number)
            yield Mutant(getattr(node, "lineno", 0), f"{what}: {ast.unparse(node)[:80]}", make)


def _changed(tree: ast.Module, place: int, number: int) -> str:
    """Return a module with one change of one node."""
    changed = copy.deepcopy(tree)
    node = list(ast.walk(changed))[place]
    list(_changes(node))[number][1]()
    return ast.unparse(changed)


def _unrun(tree: ast.Module) -> set[int]:
    """Return the nodes that do nothing when the program runs."""
    roots: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            roots.append(node)
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            roots.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            roots.append(node.returns)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            roots += node.decorator_list  # `frozen` keeps people from mistakes, not the program
        if isinstance(node, ast.Raise):
            roots.append(node)  # mostly the words of an error
    return {id(inner) for root in roots for inner in ast.walk(root)}


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield what may be changed in a node, in words, and the function that changes it."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        swapped = SWAPS[type(node.ops[0])]
        yield f"{swapped.__name__}", lambda: node.ops.__setitem__(0, swapped())
    if isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in SWAPS:
        other = SWAPS[type(node.op)]
        yield f"{other.__name__}", lambda: setattr(node, "op", other())
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        test = node.test
        negated = ast.UnaryOp(op=ast.Not(), operand=test)
        yield "negated", lambda: setattr(node, "test", negated)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        value = node.value
        yield f"{value + 1}", lambda: setattr(node, "value", value + 1)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        flipped = not node.value
        yield f"{flipped}", lambda: setattr(node, "value", flipped)


def of_lua(source: str) -> Iterator[Mutant]:
    """Yield the mutants of a script."""
    for number, line in enumerate(source.splitlines(keepends=True), start=1):
        code = line.partition("--")[0]
        for found in LUA_WORDS.finditer(code):
            word = found[0]
            new = str(int(word) + 1) if word.isdigit() else LUA[word]
            changed = line[: found.start()] + new + line[found.end() :]
            lines = source.splitlines(keepends=True)
            lines[number - 1] = changed
            yield Mutant(
                number,
                f"{word.strip()} -> {new.strip()}: {code.strip()}",
                functools.partial("".join, lines),
            )
