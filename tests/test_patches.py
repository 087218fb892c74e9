"""Fakes stand at a boundary: where a test patches a class of ours all the same, a comment "patched: …" above says why."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
OWN = ("app", "backend", "pages")
CLASS = re.compile(r"[A-Z]\w*[a-z]\w*")


def patches(tree):
    """Lines of calls of `setattr` on a class of ours, or on a name of a module of ours that is one."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").split(".")[0] in OWN]
    own = {alias.asname or alias.name for node in found for alias in node.names}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or getattr(node.func, "attr", "") != "setattr":
            continue
        target = node.args[0]
        text = target.value if isinstance(target, ast.Constant) else ast.unparse(target)
        names = re.findall(r"\w+", str(text))
        if names[0] in {*own, *OWN} and any(CLASS.fullmatch(name) for name in names):
            yield node.lineno


def unexplained(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    found = patches(ast.parse("\n".join(lines))) if any("setattr" in line for line in lines) else ()
    return [number for number in found if "# patched: " not in "\n".join(lines[max(0, number - 4) : number])]


def test_whoever_patches_a_class_of_ours_says_why():
    found = {file.relative_to(TESTS).as_posix(): unexplained(file) for file in TESTS.rglob("*.py")}
    assert {file: lines for file, lines in found.items() if lines} == {}


def test_a_patch_is_found():
    text = "from backend import a\nfrom backend.b import Made\np.setattr(Made, 'd', 1)\np.setattr(a.Made, 'd', 1)\n"
    text += "p.setattr('app.f.Made', 1)\np.setattr(a, 'd', 1)\np.setattr(a.LIMIT, 'd', 1)"
    assert list(patches(ast.parse(text))) == [3, 4, 5]
