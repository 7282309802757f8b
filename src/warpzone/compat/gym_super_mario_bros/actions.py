"""Lists of actions for JoypadSpace."""

_RIGHT = [["right"], ["right", "A"], ["right", "B"], ["right", "A", "B"]]
_LEFT = [["left"], ["left", "A"], ["left", "B"], ["left", "A", "B"]]

RIGHT_ONLY = [["NOOP"], *_RIGHT]
SIMPLE_MOVEMENT = [["NOOP"], *_RIGHT, ["A"], ["left"]]
COMPLEX_MOVEMENT = [["NOOP"], *_RIGHT, ["A"], *_LEFT, ["down"], ["up"]]
