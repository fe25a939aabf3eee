"""Every configuration file composes, and what it names takes what it gives."""

import ast
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import get_object
from omegaconf import OmegaConf

from triax.pipelines.assembly import GIVEN

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
FILES = sorted(CONF.rglob("*.yaml"))
PRIMARIES = [path.stem for path in FILES if path.parent == CONF]
GROUPED = [
    path
    for path in FILES
    if path.parent.parent == CONF
    and path.parent.name
    not in ("comparison", "hydra", "experiment", "scoring", "search", "solver", "sweep")
]
# What a program adds to a part that is still a constructor; `assemble` adds the rest by name.
ADDED = {
    "extractor": {"completer": None},
    "index": {"vectors": None, "sources": None},
    "optimizer": {"steps": 1},
    "tracker": {"folder": None, "name": None, "config": None},
    # The compiler of its grammars.
    "task": {"token_bytes": None, "encode": None, "eos_ids": None, "width": None},
}


def label(path):
    return path.relative_to(CONF).with_suffix("").as_posix()


def load(name, *overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose(name, overrides=list(overrides))


def programs():
    """(program, primary configuration) of each script with a Hydra entry point."""
    for path in sorted(
        path for room in ("eval", "train", "bench") for path in (ROOT / room).glob("*.py")
    ):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "hydra.main":
                given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
                yield path, given["config_name"]


PROGRAMS = list(programs())


@pytest.mark.parametrize("path", FILES, ids=label)
def test_a_file_says_what_it_is_and_is_short(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert len(lines) <= 30


@pytest.mark.parametrize("name", PRIMARIES)
def test_a_primary_file_composes(name):
    assert load(name)


def test_every_primary_file_has_a_program_and_the_other_way_round():
    assert sorted(PRIMARIES) == sorted({name for _, name in PROGRAMS})


def targets(node, place):
    if isinstance(node, dict):
        if "_target_" in node:
            yield place, node
        for key, value in node.items():
            yield from targets(value, f"{place}.{key}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from targets(value, f"{place}.{number}")


@pytest.mark.parametrize("path", GROUPED, ids=label)
def test_what_a_part_names_takes_what_it_gives(path):
    group = path.parent.name
    part = OmegaConf.to_container(load(label(path)), resolve=False)[group]
    for place, node in targets(part, group):
        target = get_object(node["_target_"])
        given = {key: value for key, value in node.items() if not key.startswith("_")}
        if node.get("_partial_"):
            # A part that is still a constructor gets the rest where it is used.
            run = {name: None for name in GIVEN if name in inspect.signature(target).parameters}
            given = run | ADDED.get(place.rpartition(".")[2], ADDED.get(group, {})) | given
        try:
            inspect.signature(target).bind(**given)
        except TypeError as error:
            pytest.fail(f"{place}: {node['_target_']}: {error}")


@pytest.mark.parametrize(
    "path", [path for path in GROUPED if path.parent.name in load("run")], ids=label
)
def test_a_part_fits_into_a_run(path):
    assert load("run", "name=x", f"{path.parent.name}={path.stem}")


@pytest.mark.parametrize("path", sorted((CONF / "solver").glob("*.yaml")), ids=label)
def test_a_solver_names_every_thinking_step(path):
    composed = load("run", "name=x", f"solver={path.stem}")
    for group in ("decomposer", "resolver", "synthesizer", "reader"):
        assert "_target_" in composed[group]


def test_a_step_that_is_named_goes_before_the_solver():
    composed = load("run", "name=x", "solver=prompted", "decomposer=gold")
    assert composed["decomposer"]["_target_"].endswith("GoldDecomposer")


@pytest.mark.parametrize("path", sorted((CONF / "comparison").glob("*.yaml")), ids=label)
def test_every_compared_system_composes(path):
    for overrides in load("systems", "name=x", f"comparison={path.stem}").systems.values():
        assert "_target_" in load("run", "name=x", *overrides).pipeline


@pytest.mark.parametrize("path", sorted((CONF / "experiment").glob("*.yaml")), ids=label)
def test_an_experiment_composes(path):
    assert load("run", f"+experiment={path.stem}")


def test_an_unnamed_run_stops_at_once():
    assert OmegaConf.missing_keys(load("run")) == {"name"}


# All in one process: to import what they share takes most of the time. What a program brings along
# itself (`wiring` is in eval and in train) is forgotten before the next.
SHOWS = """
import contextlib, io, json, os, runpy, sys, traceback
from hydra.core.global_hydra import GlobalHydra

found = {}
for path in sys.argv[1:]:
    room = os.path.dirname(path)
    for name, module in list(sys.modules.items()):
        if os.path.dirname(getattr(module, "__file__", None) or "") == room:
            del sys.modules[name]
    sys.argv, sys.path[0] = [path, "--cfg", "job"], room
    GlobalHydra.instance().clear()
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_path(path, run_name="__main__")
    except BaseException:
        said.write(traceback.format_exc())
    found[path] = said.getvalue()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """By program what it prints with `--cfg job`, and the folder that it ran in."""
    folder = tmp_path_factory.mktemp("shown")
    done = subprocess.run(
        [sys.executable, "-c", SHOWS, *(str(path) for path, _ in PROGRAMS)],
        cwd=folder,
        env=os.environ | {"HYDRA_FULL_ERROR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout), folder


@pytest.mark.parametrize("path", [path for path, _ in PROGRAMS], ids=lambda path: path.stem)
def test_a_program_shows_its_configuration(path, shown):
    found, folder = shown
    assert "paths:" in found[str(path)] and "Traceback" not in found[str(path)], found[str(path)]
    assert list(folder.iterdir()) == []
