"""Rules of the house that no other tool holds: names, sizes, docstrings, and what never appears."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "triax"
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = [path for path in FILES if path.name != "__init__.py"]
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Its Unpickler knows the names of a state dict and raises for any other.
RESTRICTED = {"models/torch_bin.py"}
VAGUE = {"utils", "util", "helpers", "common", "misc", "base", "core", "manager"}


def name(path):
    return path.relative_to(PACKAGE).as_posix()


def calls(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def length(node):
    return node.end_lineno - node.lineno + 1


def test_there_is_a_house():
    assert len(MODULES) > 50
    assert {"records", "reasoning", "pipelines", "reporting"} <= set(ROOMS)


def test_every_module_has_its_mirror():
    missing = [
        name(path)
        for path in MODULES
        if not (ROOT / "tests" / path.relative_to(PACKAGE)).with_name(f"test_{path.name}").exists()
    ]
    assert missing == []


def test_no_print():
    found = [
        f"{name(path)}:{call.lineno}"
        for path, tree in TREES.items()
        for call in calls(tree)
        if isinstance(call.func, ast.Name) and call.func.id == "print"
    ]
    assert found == []


def test_r24_no_text_is_ever_run():
    """No eval, exec or __import__, no shell, no pickle but a reader's that refuses names."""
    found = []
    for path, tree in TREES.items():
        for call in calls(tree):
            if ast.unparse(call.func) in ("pickle.load", "pickle.loads", "os.system"):
                found.append(f"{name(path)}:{call.lineno} {ast.unparse(call.func)}")
            if isinstance(call.func, ast.Name) and call.func.id in ("eval", "exec", "__import__"):
                found.append(f"{name(path)}:{call.lineno} {call.func.id}")
            if any(
                keyword.arg in ("allow_pickle", "shell")
                and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
                for keyword in call.keywords
            ):
                found.append(f"{name(path)}:{call.lineno} allow_pickle or shell")
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            else:
                continue
            barred = {"pickle", "dill", "cloudpickle", "marshal", "shelve"} & set(modules)
            if barred and not (name(path) in RESTRICTED and barred == {"pickle"}):
                found.append(f"{name(path)}:{node.lineno} {modules}")
    assert found == []


def test_no_torch():
    found = [
        f"{name(path)}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if (
            isinstance(node, ast.Import)
            and any(a.name.split(".")[0] == "torch" for a in node.names)
        )
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch")
    ]
    assert found == []


def test_no_vague_names():
    assert [name(path) for path in FILES if {path.stem, path.parent.name} & VAGUE] == []


def test_modules_are_short():
    long = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {key: lines for key, lines in long.items() if lines > 500} == {}


def test_functions_are_short():
    found = {
        f"{name(path)}:{node.lineno} {node.name}": length(node)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and length(node) > 80
    }
    assert found == {}


def is_stub(node):
    """A verb of a protocol: its class says what it does."""
    return all(
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        for statement in node.body
    )


def public(body):
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body)


def test_every_public_name_has_a_docstring():
    missing = [
        f"{name(path)}:{node.lineno} {node.name}"
        for path, tree in TREES.items()
        for node in public(tree.body)
        if ast.get_docstring(node) is None and not is_stub(node)
    ]
    missing += [name(path) for path, tree in TREES.items() if ast.get_docstring(tree) is None]
    assert missing == []


def test_a_room_says_what_it_is_for_and_nothing_else():
    for room in ROOMS:
        tree = TREES[PACKAGE / room / "__init__.py"]
        assert len(tree.body) == 1 and ast.get_docstring(tree), room


def loaded(statement, *packages):
    program = f"import sys\n{statement}\nprint([p for p in {packages!r} if p in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def test_importing_the_package_loads_nothing_heavy():
    assert loaded("import triax", "jax", "flax", "numpy", "transformers", "hydra") == "[]"


@pytest.mark.parametrize(
    "rooms", [("records", "runs", "tracking", "reasoning", "pipelines", "reporting"), ("scoring",)]
)
def test_thinking_and_scoring_load_no_accelerator_library(rooms):
    modules = [path for path in MODULES if path.parent.name in rooms]
    imports = "\n".join(f"import triax.{path.parent.name}.{path.stem}" for path in modules)
    assert modules
    assert loaded(imports, "jax", "flax", "optax", "faiss", "torch") == "[]"


MACHINE = re.compile(r"(?<![\w.~])/(?:work|home|root|Users|mnt|tmp/\w+\.\d)/[\w.]")


def test_no_path_of_a_machine():
    listed = subprocess.run(
        ["git", "--no-optional-locks", "-C", str(ROOT), "ls-files", "-z"],
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("no git checkout")
    found = []
    for file in filter(None, listed.stdout.decode("utf-8").split("\0")):
        path = ROOT / file
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{file}:{number}: {line.strip()[:80]}"
            for number, line in enumerate(text.splitlines(), 1)
            if MACHINE.search(line)
        ]
    assert found == []
