"""`python -m warpzone.compat script.py [args]`: runs a script with our modules in place of the original packages."""

from __future__ import annotations

import io
import os
import runpy
import sys
from types import ModuleType

from warpzone.compat.installation import HOMES, PACKAGES, install, interface_installed
from warpzone.errors import Error

USAGE = """usage: python -m warpzone.compat [--interface 7|9] script.py [args ...]
       python -m warpzone.compat [--interface 7|9] -m module [args ...]

Runs a script or module unchanged with warpzone in place of gym_super_mario_bros and nes_py.
  --interface   7: as on gym, 9: as on Gymnasium; default: as the installed gym-super-mario-bros"""

UNPACKING = """If this script takes another number of values from reset or step than it gets, it is written for the
other interface: run it with python -m warpzone.compat --interface {other} script.py."""


def main(arguments: list[str]) -> None:
    """Run what the arguments name as `__main__`."""
    interface: int | None = None
    if arguments[:1] == ["--interface"] and len(arguments) > 1:
        if not arguments[1].isdecimal():
            fail(f"There is no interface {arguments[1]!r}: choose 7 (gym) or 9 (Gymnasium).")
        interface, arguments = int(arguments[1]), arguments[2:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    as_module = arguments[0] == "-m"
    if as_module and len(arguments) < 2:
        fail("-m needs the name of a module.")
    if not as_module and not os.path.isfile(arguments[0]):
        fail(f"There is no script {arguments[0]}.")
    script = os.path.abspath(arguments[0])
    if not as_module and sys.path[0] == os.getcwd():
        sys.path[0] = os.path.dirname(script)  # as Python itself does
    try:
        install(interface, children=True)
    except Error as error:
        fail(str(error))
    if as_module:
        sys.argv = arguments[1:]
        module = arguments[1]
        if module.split(".")[0] in PACKAGES:  # under its own name: runpy asks a module's loader for that
            module = f"{HOMES[interface or interface_installed()]}.{module}"
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except Error as error:
            if module == arguments[1]:  # a script's own traceback says where
                raise
            fail(str(error))
        except ImportError as error:
            # Those of the module's own imports have a name.
            if error.name or not str(error).startswith(("No module named", "Error while finding")):
                raise
            fail(f"There is no module {arguments[1]} to run: {error}.")
    else:
        sys.argv = list(arguments)
        # Not by runpy, which takes `__main__` away when the script's last line is done: threads may still need it.
        own = sys.modules["__main__"] = ModuleType("__main__")
        own.__file__ = script
        with io.open_code(script) as file:
            code = compile(file.read(), script, "exec", dont_inherit=True)
        try:
            exec(code, own.__dict__)
        except ValueError as error:
            if "values to unpack" not in str(error):
                raise
            sys.excepthook(type(error), error, error.__traceback__)
            print(UNPACKING.format(other=16 - (interface or interface_installed())), file=sys.stderr)
            sys.exit(1)


def fail(sentence: str) -> None:
    """Say what is wrong and end."""
    print(sentence, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
