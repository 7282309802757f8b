"""Stable-Baselines3 2 asks shimmy to adapt gym environments; this does it for four values as well as for five.

Where shimmy is installed, it is loaded, and only the two classes are replaced.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

from warpzone.compat.for_gymnasium import GymnasiumEnv, convert_space

_HERE = str(Path(__file__).parent.parent)
_spec = PathFinder.find_spec(__name__, [folder for folder in sys.path if folder != _HERE])
if _spec is None or _spec.loader is None:
    _shimmy = sys.modules[__name__]
    openai_gym_compatibility = _shimmy
    _convert_space = convert_space
else:
    _shimmy = module_from_spec(_spec)
    sys.modules[__name__] = _shimmy
    _spec.loader.exec_module(_shimmy)

vars(_shimmy).update(GymV21CompatibilityV0=GymnasiumEnv, GymV26CompatibilityV0=GymnasiumEnv)
