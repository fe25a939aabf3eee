import pytest

from triax.tracking.wandb_mode import allowed_mode


@pytest.mark.parametrize(
    "asked, given, mode",
    [
        ("online", None, "online"),
        ("online", "online", "online"),
        ("online", "offline", "offline"),
        ("online", "disabled", "disabled"),
        ("offline", "online", "offline"),
        ("offline", "disabled", "disabled"),
        ("disabled", "online", "disabled"),
        ("online", "dryrun", "offline"),
        ("offline", "run", "offline"),
        ("online", " OFFLINE ", "offline"),
        ("online", "", "online"),
    ],
)
def test_the_lesser_of_both_counts(asked, given, mode):
    assert allowed_mode(asked, {} if given is None else {"WANDB_MODE": given}) == mode


def test_the_environment_is_that_of_the_process(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert allowed_mode("online") == "offline"


def test_a_word_that_is_no_mode_counts_for_nothing_and_is_named(caplog):
    assert allowed_mode("offline", {"WANDB_MODE": "shared"}) == "offline"
    assert "WANDB_MODE=shared is none of disabled, offline, online" in caplog.text


def test_a_mode_that_is_asked_for_must_be_one():
    with pytest.raises(ValueError, match="'on', expected one of"):
        allowed_mode("on", {})
