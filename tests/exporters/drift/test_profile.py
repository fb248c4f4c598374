"""A profile survives its file; what is none is refused with a mend."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from exporters.drift.fit import fit
from exporters.drift.judge import judge
from exporters.drift.profile import Profile, ProfileError, load, save
from slo.signals import Drift


def test_a_loaded_profile_judges_like_the_fitted_one(
    tmp_path: Path, profile: Profile, make: Callable[..., np.ndarray], drift: Drift
) -> None:
    """Name, version, dimension, count and date are kept, and every score is the same number."""
    save(profile, tmp_path / "p.npz")
    found = load(tmp_path / "p.npz")

    assert (found.model, found.version, found.dimension, found.count) == ("embed-a", "1", 24, 1200)
    assert found.created == 1_750_000_000.0
    assert judge(found, make(300, 3), drift) == judge(profile, make(300, 3), drift)


def test_the_same_vectors_give_the_same_profile(make: Callable[..., np.ndarray], drift: Drift) -> None:
    """Fitting twice gives equal thresholds: nothing depends on chance."""
    one, two = (fit(make(400, 2), "m", "", drift, rounds=20).calibrations for _ in range(2))

    assert [c.thresholds.tolist() for c in one] == [c.thresholds.tolist() for c in two]


def _other_schema(path: Path, profile: Profile) -> None:
    save(profile, path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays["meta"] = np.array(json.dumps(json.loads(str(arrays["meta"])) | {"schema_version": 99}))
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path, _: None, "is not there; make it with"),
        (lambda path, _: path.write_text("hello"), "no readable profile"),
        (lambda path, _: path.write_bytes(b"PK\x03\x04 cut off"), "no readable profile"),
        (lambda path, _: np.savez(path, a=np.zeros(3)), "holds no profile of ours"),
        (_other_schema, "has schema version 99, this release reads 3"),
    ],
)
def test_what_is_no_profile_is_refused(
    tmp_path: Path, profile: Profile, write: Callable[[Path, Profile], object], says: str
) -> None:
    """The error names the file and what to do."""
    write(tmp_path / "p.npz", profile)

    with pytest.raises(ProfileError, match=says) as caught:
        load(tmp_path / "p.npz")
    assert str(tmp_path / "p.npz") in str(caught.value)


def test_a_wrong_model_or_dimension_says_so(profile: Profile) -> None:
    """Wanted and found stand in the text."""
    with pytest.raises(ProfileError, match="is of model 'embed-a', wanted is 'other'"):
        profile.require("p.npz", "other", None)
    with pytest.raises(ProfileError, match="has dimension 24, wanted is 8"):
        profile.require("p.npz", None, 8)


def test_too_few_or_equal_vectors_make_no_profile(drift: Drift) -> None:
    """Under min_samples, with the refusals counted; and 200 times the same vector."""
    with pytest.raises(ProfileError, match=r"2 usable vectors \(refused: 1 zero\)"):
        fit([[1.0, 2.0], [0.0, 0.0], [2.0, 1.0]], "m", "", drift)
    with pytest.raises(ProfileError, match="are the same"):
        fit(np.ones((200, 4)), "m", "", drift)
