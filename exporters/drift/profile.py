"""A reference profile: what healthy embeddings of one model look like, as one .npz with a schema version."""

import io
import json
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from exporters.drift.calibrate import Calibration
from exporters.drift.features import Basis, features
from exporters.drift.scores import DETECTORS
from exporters.drift.summary import Context, Summary, summarise
from exporters.drift.vectors import Floats

SCHEMA_VERSION = 3


class ProfileError(ValueError):
    """A profile that cannot be used; the text names file, what was found, and the mend."""


@dataclass(frozen=True)
class Profile:
    """
    One model's reference.

    *count*: vectors it was fitted to; *created*: Unix seconds; *vectors* (m, d): those that windows are held
    against, and *summary* what detectors know of them; *ratios*: explained-variance ratios.
    """

    model: str
    version: str
    count: int
    created: float
    seed: int
    false_alarm_rate: float
    pca: tuple[int, int, float]
    basis: Basis
    context: Context
    vectors: Floats
    ratios: Floats
    calibrations: tuple[Calibration, ...]
    summary: Summary

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self.basis.mean.size)

    def require(self, source: str, model: str | None, dimension: int | None) -> "Profile":
        """The profile itself; ProfileError when it is of another model or dimension than wanted."""
        if model is not None and model != self.model:
            raise ProfileError(
                f"{source}: is of model {self.model!r}, wanted is {model!r}; fit one for it: inferwatch drift fit"
            )
        if dimension is not None and dimension != self.dimension:
            raise ProfileError(
                f"{source}: has dimension {self.dimension}, wanted is {dimension}; fit one for that model"
            )
        return self


def save(profile: Profile, path: Path) -> None:
    """Write *path* at once; a reader never sees half of it."""
    meta = {
        "schema_version": SCHEMA_VERSION,
        "model": profile.model,
        "version": profile.version,
        "dimension": profile.dimension,
        "count": profile.count,
        "created": profile.created,
        "seed": profile.seed,
        "false_alarm_rate": profile.false_alarm_rate,
        "pca": list(profile.pca),
        "detectors": list(DETECTORS),
    }
    context, basis = profile.context, profile.basis
    arrays = {
        "meta": np.array(json.dumps(meta)),
        "vectors": profile.vectors,
        "ratios": profile.ratios,
        **{f"basis_{name}": value for name, value in vars(basis).items()},
        "edges": context.edges,
        "moments": np.array([*context.rest, *context.length]),
        "within": context.within,
        **{
            f"calibration_{field.name}": np.array([getattr(one, field.name) for one in profile.calibrations])
            for field in fields(Calibration)
        },
    }
    text = io.BytesIO()
    np.savez_compressed(text, **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".tmp")
    draft.write_bytes(text.getvalue())
    draft.replace(path)


def load(path: Path) -> Profile:
    """Read a profile; raises ProfileError for what is none, damaged, or of another schema version."""
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise ProfileError(f"{path}: is not there; make it with: inferwatch drift fit") from None
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise ProfileError(f"{path}: no readable profile ({error}); fit it again") from error
    try:
        meta = json.loads(str(found["meta"]))
        version = meta["schema_version"]
    except (KeyError, TypeError, ValueError):
        raise ProfileError(f"{path}: holds no profile of ours; make one with: inferwatch drift fit") from None
    if version != SCHEMA_VERSION:
        raise ProfileError(
            f"{path}: has schema version {version}, this release reads {SCHEMA_VERSION}; fit it again"
        )
    if meta.get("detectors") != list(DETECTORS):
        raise ProfileError(f"{path}: was fitted for detectors {meta.get('detectors')}; fit it again")
    try:
        return _assembled(meta, found)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise ProfileError(f"{path}: is damaged ({error}); fit it again") from error


def _assembled(meta: dict[str, object], found: dict[str, Floats]) -> Profile:
    basis = Basis(**{field.name: found[f"basis_{field.name}"] for field in fields(Basis)})
    moments = [float(one) for one in found["moments"]]
    context = Context(
        found["edges"],
        (moments[0], moments[1]),
        (moments[2], moments[3]),
        basis,
        found["within"],
    )
    numbers = {key: float(str(meta[key])) for key in ("count", "created", "seed", "false_alarm_rate")}
    pca = [float(one) for one in json.loads(json.dumps(meta["pca"]))]
    return Profile(
        model=str(meta["model"]),
        version=str(meta["version"]),
        count=int(numbers["count"]),
        created=numbers["created"],
        seed=int(numbers["seed"]),
        false_alarm_rate=numbers["false_alarm_rate"],
        pca=(int(pca[0]), int(pca[1]), pca[2]),
        basis=basis,
        context=context,
        vectors=found["vectors"],
        ratios=found["ratios"],
        calibrations=tuple(
            Calibration(int(size), *rows)
            for size, *rows in zip(
                *(found[f"calibration_{field.name}"] for field in fields(Calibration)), strict=True
            )
        ),
        summary=summarise(context, features(basis, found["vectors"], remembered=True)),
    )
