"""Weights to a model hub and back: adapter.safetensors, config.json and README.md in one folder."""

import logging
from pathlib import Path

from triax.models import weights
from triax.models.adapters import CONFIG_FILE, WEIGHTS_FILE
from triax.training.card import CARD_FILE

_log = logging.getLogger(__name__)

FILES = (WEIGHTS_FILE, CONFIG_FILE, CARD_FILE)
MAX_BYTES = 200_000_000


class PublishError(RuntimeError):
    """A folder is not fit to be shown, or the hub did not take it."""


def push(
    folder: Path | str,
    repository: str,
    private: bool = True,
    max_bytes: int = MAX_BYTES,
    message: str = "Weights of Triax",
) -> str:
    """Uploads a folder of weights; only the three files of the layout go out.

    Args:
        folder: as the training programs write it (`.../weights`).
        repository: "owner/name"; it is made where it is not there.
        private: whether a new repository is hidden from others. One that exists keeps its state.
        max_bytes: of all files together.
        message: of the commit.

    Returns:
        The commit's id, which `load` takes as a revision.

    Raises:
        PublishError: a file is missing or empty, the files are too large, the name is no
            "owner/name", or the hub refused.
    """
    folder = Path(folder)
    _check(folder, repository, max_bytes)
    from huggingface_hub import HfApi

    api = HfApi(library_name="triax")
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        done = api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            allow_patterns=list(FILES),
            commit_message=message,
        )
    # The client's errors share no class below Exception: HTTP, name look-up, validation, token.
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise PublishError(
            f"{repository} did not take the weights ({type(error).__name__}: {first}); is "
            "HF_TOKEN set to a token that may write there?"
        ) from error
    _log.info("pushed %s to %s at %s", folder, repository, done.oid)
    return done.oid


def load(repository: str, revision: str = "main", cache: Path | None = None) -> Path:
    """The folder of weights of a hub repository, fetched once a revision.

    Args:
        repository: "owner/name", or a local folder, which is given back as it is.
        revision: a commit's id, a tag or a branch. "main" is what was "main" when it was fetched.
        cache: as for `triax.models.weights.locate`.

    Raises:
        triax.models.weights.WeightsError: it cannot be had.
        PublishError: it holds no adapter.
    """
    cache = cache or weights.default_cache()
    if revision != "main":
        cache = cache / "revisions" / revision.replace("/", "--")
    source = weights.Source(repository, revision, WEIGHTS_FILE)
    folder = weights.locate(repository, cache, [source])
    for name in (WEIGHTS_FILE, CONFIG_FILE):
        if not (folder / name).is_file():
            raise PublishError(
                f"{repository} at {revision} has no {name}, so it is no adapter of Triax"
            )
    return folder


def _check(folder: Path, repository: str, max_bytes: int) -> None:
    owner, slash, name = repository.partition("/")
    if not (owner and slash and name) or "/" in name:
        raise PublishError(f"the repository is {repository!r}, expected owner/name")
    sizes = {}
    for file in FILES:
        path = folder / file
        if not path.is_file() or not path.stat().st_size:
            raise PublishError(
                f"{path} is missing or empty; push the `weights` folder of a finished run, which "
                f"has {', '.join(FILES)}"
            )
        sizes[file] = path.stat().st_size
    if (total := sum(sizes.values())) > max_bytes:
        raise PublishError(
            f"{folder} has {total:,} bytes ({sizes}), at most {max_bytes:,} are pushed; raise "
            "max_bytes if that is what you want"
        )
