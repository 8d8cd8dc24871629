"""Reads the imports of the package and keeps the arrows of its design (docs/architecture.md)."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "diagan"
FILES = sorted(SRC.rglob("*.py"))


def module_of(file: Path) -> str:
    parts = file.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): ast.parse(file.read_text()) for file in FILES}


def imports(tree: ast.AST) -> Iterator[str]:
    """Everything that a piece of code imports; `from a import b` may mean the module a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide an arrow"
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in MODULES else str(node.module) for name in names)


@cache
def inside(module: str) -> set[str]:
    """The modules of the package that a module imports, anywhere in its file."""
    found = {name for name in imports(MODULES[module]) if name.split(".")[0] == "diagan"}
    return found - {"diagan", module}


@cache
def outside(module: str) -> set[str]:
    return {name.split(".")[0] for name in imports(MODULES[module])} - {"diagan"}


def reached(module: str) -> set[str]:
    """What a module imports, and what that imports, and so on."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = inside(waiting.pop()) - found
        found |= new
        waiting += new
    return found


def room(module: str) -> str:
    """`diagan.report.figures` belongs to `report`."""
    return module.split(".")[1] if "." in module else ""


# --- the maths -----------------------------------------------------------------------------------

MATHS = {f"diagan.{name}" for name in ("losses", "ldr", "theory", "sampling", "random", "reject")}
MATHS |= {module for module in MODULES if module.startswith("diagan.metrics")}


@pytest.mark.parametrize("module", sorted(MATHS))
def test_maths_imports_nothing_of_the_project(module):
    assert inside(module) <= MATHS | {"diagan.errors"}


@pytest.mark.parametrize("module", ["diagan.errors", "diagan.random", "diagan.losses"])
def test_what_stands_on_nothing(module):
    assert inside(module) == set()


def test_the_statistics_need_no_torch():
    """Someone with records of another trainer reads them with numpy alone."""
    assert outside("diagan.ldr") <= {"numpy", "collections", "dataclasses", "typing"}


# --- the verbs -----------------------------------------------------------------------------------

VERBS = ("train", "diagnosis", "evaluate", "report")


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_do_not_import_each_other(verb):
    """Not through others either: they meet in the run folder, and `pipeline` joins them."""
    others = set(VERBS) - {verb}
    for module in MODULES:
        if room(module) == verb:
            assert not {name for name in reached(module) if room(name) in others}, module


def test_only_the_pipeline_joins_the_verbs():
    joining = {m for m in MODULES if len({room(n) for n in inside(m)} & set(VERBS)) > 1}
    assert joining == {"diagan.pipeline"}


def test_nobody_imports_the_command_line():
    assert [m for m in MODULES if "diagan.cli" in inside(m)] == ["diagan.__main__"]
    users = {m for m in MODULES if any(room(name) == "verbs" for name in inside(m))}
    assert {m for m in users if room(m) != "verbs"} == {"diagan.cli"}


def test_there_are_no_circles():
    assert [module for module in MODULES if module in reached(module)] == []


# --- the loop and the methods --------------------------------------------------------------------


def test_the_loop_imports_no_method():
    for module in ("diagan.train", "diagan.game"):
        assert not any(room(name) == "methods" for name in reached(module))


def test_the_loop_contains_no_methods_name():
    text = (SRC / "train.py").read_text().lower()
    names = {module.split(".")[-1] for module in MODULES if room(module) == "methods"}
    names -= {"methods", "critic"}  # the slot for further critics is not the method
    classes = {
        node.name
        for module, tree in MODULES.items()
        if room(module) == "methods"
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    known = {"gold", "topk", "top_k", "packing", "pacgan", "rotation", "ssgan", "inclusive",
             "penalt", "r1", "path_length", "augment", "logistic", "dia", "unbiased"}  # fmt: skip
    words = set(re.findall(r"[a-z0-9_]+", text.replace("diagan", "")))
    assert "UnbiasedCritic" in classes  # else this looks in the wrong place
    for name in {n.lower() for n in names | classes | known}:
        assert not any(word.startswith(name) for word in words), name


def test_methods_know_the_game_and_not_each_other():
    for module in MODULES:
        if room(module) == "methods":
            allowed = {"game", "losses", "random", "errors", "config"}
            assert {room(name) for name in inside(module)} <= allowed, module


def test_networks_and_data_know_no_training():
    for module in MODULES:
        if room(module) in ("networks", "data"):
            allowed = {room(module), "config", "errors", "random", "rundir"}
            assert {room(name) for name in inside(module)} <= allowed, module


# --- what is not used ----------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["torchvision", "pickle", "scipy", "sklearn", "tensorflow"])
def test_nobody_imports(package):
    assert [module for module in MODULES if package in outside(module)] == []


def test_nothing_that_is_loaded_can_run_code():
    for module, tree in MODULES.items():
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        called = {ast.unparse(call.func) for call in calls}
        assert not called & {"torch.save", "eval", "exec", "yaml.load"}, module
        loads = [call for call in calls if ast.unparse(call.func) == "torch.load"]
        assert all("weights_only=True" in map(ast.unparse, load.keywords) for load in loads), module
        allowed = [k for call in calls for k in call.keywords if k.arg == "allow_pickle"]
        assert all(ast.unparse(keyword.value) == "False" for keyword in allowed), module


def test_every_package_that_is_imported_is_a_dependency():
    project = (SRC.parents[1] / "pyproject.toml").read_text()
    block = re.search(r"^dependencies = \[(.*?)^\]", project, re.S | re.M)[1]
    declared = {name.replace("-", "_") for name in re.findall(r'"([a-z0-9-]+)', block)}
    used = set().union(*(outside(module) for module in MODULES)) - set(sys.stdlib_module_names)
    assert {"pillow" if name == "PIL" else name for name in used} <= declared


# --- the command line answers at once ------------------------------------------------------------


def top_level(tree: ast.Module) -> ast.Module:
    """What runs on import: all but the bodies of functions."""

    class Hollow(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.Pass:
            return ast.Pass()

    return Hollow().visit(ast.parse(ast.unparse(tree)))


HEAVY = {"torch", "lightning_fabric", "datasets", "pyarrow", "bokeh", "tensorboard", "numpy"}


def test_the_command_line_imports_nothing_heavy():
    waiting, seen = ["diagan.cli"], set()
    while waiting:
        module = waiting.pop()
        seen.add(module)
        names = set(imports(top_level(MODULES[module])))
        assert not {name.split(".")[0] for name in names} & HEAVY, module
        waiting += (names & MODULES.keys()) - seen


def test_help_loads_no_torch():
    code = (
        "import sys; from diagan.cli import main; main(['--help']); "
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "diagan VERB" in done.stdout
