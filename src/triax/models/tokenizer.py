"""Tokenizers from a model folder's tokenizer.json, or rebuilt from the tables in a GGUF file."""

import json
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gguf import TokenType
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from triax.models.gguf_file import GGUFFile, Vocabulary
from triax.records.completions import Message
from triax.records.files import write_json

logger = logging.getLogger(__name__)

_QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Control tokens that end a turn or a text. A GGUF names one of them as its end, models emit others.
_ENDERS = frozenset(
    {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>", "</s>"}
)
_CACHE_FORMAT = 1


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Texts of the special tokens ("" for none), and the ids that end generation."""

    bos: str = ""
    eos: str = ""
    pad: str = ""
    eos_ids: tuple[int, ...] = ()


class Tokenizer:
    """Text to ids and back, and the chat template of the model."""

    def __init__(self, backend: Backend, special: SpecialTokens, chat_template: str = ""):
        self._backend = backend
        self._special = special
        self._chat_template = chat_template
        # A published tokenizer.json may cut or fill texts; batching is the caller's business.
        backend.no_truncation()
        backend.no_padding()

    def encode(self, text: str, add_special: bool = False) -> list[int]:
        """Ids of a text. `add_special` adds what the model expects around it, such as [CLS].

        Names of special tokens in the text become these tokens, as a chat template needs.
        """
        return self._backend.encode(text, add_special_tokens=add_special).ids

    def encode_batch(self, texts: Sequence[str], add_special: bool = False) -> list[list[int]]:
        """Ids of each text, not padded."""
        encoded = self._backend.encode_batch_fast(list(texts), add_special_tokens=add_special)
        return [encoding.ids for encoding in encoded]

    def encode_offsets(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Ids without special tokens, and for each the characters [start, end) that it covers.

        The space before a word is not counted to its first token, though SentencePiece has it in.
        """
        batch = self._backend.encode_batch(list(texts), add_special_tokens=False)
        return [
            (one.ids, [_without_space(text, *ends) for ends in one.offsets])
            for text, one in zip(texts, batch)
        ]

    def decode(self, ids: Iterable[int], skip_special: bool = True) -> str:
        """Text of ids; bytes that are no UTF-8 become U+FFFD."""
        return self._backend.decode(list(ids), skip_special_tokens=skip_special)

    def apply_chat_template(
        self, messages: Sequence[Message], add_generation_prompt: bool = True
    ) -> str:
        """The conversation as the model was trained to read it, up to where it is to answer.

        Raises:
            ValueError: the model has no chat template, or its template refuses the messages.
        """
        if not self._chat_template:
            raise ValueError(
                "this model has no chat template (a base model?); use an instruct model, or send "
                "plain text"
            )
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = lambda value, **options: json.dumps(
            value, ensure_ascii=False, **options
        )
        environment.globals["raise_exception"] = _refuse
        try:
            return environment.from_string(self._chat_template).render(
                messages=[{"role": turn.role, "content": turn.content} for turn in messages],
                add_generation_prompt=add_generation_prompt,
                bos_token=self._special.bos,
                eos_token=self._special.eos,
                pad_token=self._special.pad,
            )
        except TemplateError as error:
            roles = [turn.role for turn in messages]
            raise ValueError(
                f"the chat template refuses messages of roles {roles}: {error}; change the roles "
                "or their order"
            ) from error

    @property
    def has_chat_template(self) -> bool:
        """Whether `apply_chat_template` can be used."""
        return bool(self._chat_template)

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Ids that end generation, ascending."""
        return self._special.eos_ids

    @property
    def pad_id(self) -> int:
        """The padding id; where the model has none, an end id, else 0 (padding is masked)."""
        found = self._backend.token_to_id(self._special.pad) if self._special.pad else None
        return found if found is not None else next(iter(self.eos_ids), 0)

    @property
    def vocab_size(self) -> int:
        """One more than the highest id; a model's logits may be wider."""
        return max(self._backend.get_vocab(with_added_tokens=True).values()) + 1

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of control tokens, which `decode` leaves out."""
        added = self._backend.get_added_tokens_decoder()
        return frozenset(id_ for id_, token in added.items() if token.special)

    def token_id(self, token: str) -> int | None:
        """Id of a token by its own text, None if there is none."""
        return self._backend.token_to_id(token)

    def token_bytes(self) -> list[bytes]:
        """What each id adds to the text, as bytes; b"" for special tokens and unused ids.

        Raises:
            ValueError: the vocabulary is neither byte-level nor SentencePiece with byte fallback,
                so its tokens are no fixed byte strings.
        """
        layout = json.loads(self._backend.to_str())
        kinds = _types_in(layout.get("decoder")) | _types_in(layout.get("pre_tokenizer"))
        if "ByteLevel" in kinds:
            of_token = _byte_level
        elif "ByteFallback" in kinds:
            of_token = _byte_fallback
        else:
            raise ValueError(
                f"the tokenizer is built of {sorted(kinds)}; token bytes are known for byte-level "
                "and byte-fallback vocabularies only"
            )
        found = [b""] * self.vocab_size
        added = self._backend.get_added_tokens_decoder()
        for token, id_ in self._backend.get_vocab(with_added_tokens=True).items():
            if id_ not in added:
                found[id_] = of_token(token)
            elif not added[id_].special:
                found[id_] = token.encode()
        return found

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON values; `from_json` is the way back."""
        return {
            "tokenizer": json.loads(self._backend.to_str()),
            "special": {
                "bos": self._special.bos,
                "eos": self._special.eos,
                "pad": self._special.pad,
                "eos_ids": list(self._special.eos_ids),
            },
            "chat_template": self._chat_template,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Tokenizer":
        """Reads what `to_json` gave."""
        special = dict(value["special"], eos_ids=tuple(value["special"]["eos_ids"]))
        backend = Backend.from_str(json.dumps(value["tokenizer"]))
        return cls(backend, SpecialTokens(**special), value["chat_template"])


def load_tokenizer(folder: Path) -> Tokenizer:
    """A folder's tokenizer: tokenizer.json, else one .gguf, else what transformers can convert.

    A tokenizer rebuilt from a GGUF is kept beside it as `<file>.tokenizer.json`.

    Raises:
        FileNotFoundError: the folder holds no tokenizer.
        ValueError: a GGUF's tokenizer is of a kind that is not rebuilt here.
    """
    folder = Path(folder)
    if (folder / "tokenizer.json").is_file():
        return _from_folder(folder, Backend.from_file(str(folder / "tokenizer.json")))
    files = sorted(folder.glob("*.gguf"))
    if len(files) == 1:
        return _from_gguf(files[0])
    if any(folder.glob("*.model")) or (folder / "vocab.txt").is_file():
        # Slow to import, and needed only to convert the older vocabulary files.
        from transformers import AutoTokenizer

        slow = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        backend = Backend.from_str(slow.backend_tokenizer.to_str())
        if (folder / "spm.model").is_file():
            _normalise_as_trained(backend, folder)
        return _from_folder(folder, backend)
    raise FileNotFoundError(
        f"{folder} holds no tokenizer.json, no vocabulary and {len(files)} .gguf files; a model "
        "folder has a tokenizer.json or exactly one .gguf"
    )


def _from_folder(folder: Path, backend: Backend) -> Tokenizer:
    """Adds to a backend what the JSON files beside it say."""
    config = _json(folder / "tokenizer_config.json")
    texts = {name: _text(config.get(f"{name}_token")) for name in ("bos", "eos", "pad")}
    ends: list[int] = []
    for value in (
        _json(folder / "generation_config.json").get("eos_token_id"),
        _json(folder / "config.json").get("eos_token_id"),
        backend.token_to_id(texts["eos"]) if texts["eos"] else None,
    ):
        ends += value if isinstance(value, list) else [] if value is None else [value]
    template = config.get("chat_template") or ""
    if isinstance(template, list):
        named = {entry["name"]: entry["template"] for entry in template}
        template = named.get("default", "")
    if (folder / "chat_template.jinja").is_file():
        template = (folder / "chat_template.jinja").read_text("utf-8")
    return Tokenizer(backend, SpecialTokens(**texts, eos_ids=tuple(sorted(set(ends)))), template)


def _normalise_as_trained(backend: Backend, folder: Path) -> None:
    """Gives a DeBERTa tokenizer the normaliser that its spm.model carries.

    The conversion of transformers 5 puts NFC in its place, so that e.g. full-width letters become
    unknown tokens.
    """
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto.FromString((folder / "spm.model").read_bytes())
    lowers = _json(folder / "tokenizer_config.json").get("do_lower_case", False)
    steps: list[normalizers.Normalizer] = [normalizers.Lowercase()] if lowers else []
    if charsmap := model.normalizer_spec.precompiled_charsmap:
        steps.append(normalizers.Precompiled(charsmap))
    if model.normalizer_spec.remove_extra_whitespaces:
        steps += [
            normalizers.Replace(Regex(r"\A +| +\z"), ""),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    backend.normalizer = normalizers.Sequence(steps)


def _from_gguf(path: Path) -> Tokenizer:
    """Rebuilds, or reads what was rebuilt from the same file before."""
    stat = path.stat()
    made_from = {"format": _CACHE_FORMAT, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    cache = path.with_name(f"{path.name}.tokenizer.json")
    kept = _json(cache)
    if kept.get("made_from") == made_from:
        return Tokenizer.from_json(kept)
    vocabulary = GGUFFile(path).vocabulary()
    tokenizer = build_tokenizer(vocabulary)
    try:
        write_json(cache, tokenizer.to_json() | {"made_from": made_from})
    except OSError as error:
        logger.info("tokenizer of %s not kept (%s)", path, error)
    return tokenizer


def build_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """A byte-level BPE tokenizer from a GGUF's tables.

    Raises:
        ValueError: the tables are of another kind than gpt-2, smollm or qwen2.
    """
    kind = vocabulary.pre if vocabulary.model == "gpt2" else vocabulary.model
    if vocabulary.model != "gpt2" or kind not in ("default", "gpt-2", "smollm", "qwen2"):
        raise ValueError(
            f"the GGUF's tokenizer is of kind {kind!r}; gpt-2, smollm and qwen2 are rebuilt. Put "
            "the model's tokenizer.json beside the weights"
        )
    backend = Backend(
        models.BPE(
            vocab={token: id_ for id_, token in enumerate(vocabulary.tokens)},
            merges=[tuple(merge.split(" ", 1)) for merge in vocabulary.merges],
        )
    )
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind != "qwen2")
    if kind == "qwen2":
        backend.normalizer = normalizers.NFC()
        split = pre_tokenizers.Split(Regex(_QWEN2_WORDS), "isolated")
        words = pre_tokenizers.Sequence([split, words])
    elif kind == "smollm":
        digits = pre_tokenizers.Digits(individual_digits=True)
        words = pre_tokenizers.Sequence([digits, words])
    backend.pre_tokenizer = words
    backend.decoder = decoders.ByteLevel()
    tokens = vocabulary.tokens
    controls = vocabulary.ids_of_type(TokenType.CONTROL)
    backend.add_special_tokens(
        [AddedToken(tokens[id_], special=True, normalized=False) for id_ in controls]
    )
    backend.add_tokens(
        [
            AddedToken(tokens[id_], special=False, normalized=False)
            for id_ in vocabulary.ids_of_type(TokenType.USER_DEFINED)
        ]
    )
    ends = set(vocabulary.eos_ids) | {id_ for id_ in controls if tokens[id_] in _ENDERS}
    special = SpecialTokens(
        bos=tokens[vocabulary.bos_id] if vocabulary.bos_id >= 0 else "",
        eos=tokens[vocabulary.eos_ids[0]] if vocabulary.eos_ids else "",
        pad=tokens[vocabulary.pad_id] if vocabulary.pad_id >= 0 else "",
        eos_ids=tuple(sorted(ends)),
    )
    return Tokenizer(backend, special, vocabulary.chat_template)


def _without_space(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _json(path: Path) -> dict[str, Any]:
    """The object in a JSON file, {} where there is no file."""
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def _text(token: Any) -> str:
    """A special token is written as a text, as an object with its content, or as null."""
    return (token.get("content", "") if isinstance(token, dict) else token) or ""


def _types_in(value: Any) -> set[str]:
    """The `type` of a tokenizer.json part and of all parts within it."""
    if isinstance(value, list):
        return set().union(*map(_types_in, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    own = {value["type"]} if isinstance(value.get("type"), str) else set()
    return own.union(*(_types_in(inner) for inner in value.values()))


def _byte_of_char() -> dict[str, int]:
    """GPT-2's alphabet: printable bytes stand for themselves, the rest for U+0100 and on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + n): byte for n, byte in enumerate(others)
    }


_BYTE_OF_CHAR = _byte_of_char()
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_level(token: str) -> bytes:
    return bytes(_BYTE_OF_CHAR[char] for char in token)


def _byte_fallback(token: str) -> bytes:
    if match := _BYTE_TOKEN.fullmatch(token):
        return bytes([int(match[1], 16)])
    return token.replace("\u2581", " ").encode()
