"""Attributes of faces by the `deepface` package, if it is installed."""

from importlib import import_module
from typing import Any, Literal

import numpy as np

from diagan.attributes import AttributeClassifier
from diagan.errors import UserError
from diagan.fitting import Images


def deepface(action: Literal["gender", "race", "emotion"], value: str) -> AttributeClassifier:
    """1 where deepface's dominant `action` (say race) is `value` (say indian)."""
    try:
        analyze: Any = import_module("deepface").DeepFace.analyze
    except ImportError:
        raise UserError('deepface is not installed: pip install "diagan[deepface]"') from None

    def answer(images: Images) -> list[bool]:
        bgr = np.broadcast_to(images, (len(images), 3, *images.shape[2:]))[:, ::-1]
        # Without enforcing, a picture in which no face is found is judged as a whole.
        how = {"actions": [action], "enforce_detection": False, "silent": True}
        found = [analyze(np.ascontiguousarray(i.transpose(1, 2, 0)), **how)[0] for i in bgr]
        if value not in found[0][action]:
            raise UserError(f"deepface knows no {action} {value!r}: {', '.join(found[0][action])}")
        return [face[f"dominant_{action}"] == value for face in found]

    return AttributeClassifier(f"{action}={value}", answer)
