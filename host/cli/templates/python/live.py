"""The component of `toolcell dev`: built once, it imports the project's modules wherever it runs.

`toolcell dev` hands over the files that `make` copied, so that an edit needs no build. Calls of the exports go to the
classes of the module `component`. Nothing of this is in what `make` builds without TOOLCELL_DEV.
"""

import base64
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import pkgutil
import sys
import traceback
import zlib

import wit_world
from componentize_py_types import Err

MAIN = "component"
VARIABLE = "TOOLCELL_DEV_SOURCE"
ROOT = "/source"
OF_PYTHON = ("/python", "/world", "/bundled")
"""The standard library, the types of the world, and what componentize-py adds to them."""
UNUSED = {"ensurepip", "idlelib", "pydoc_data", "site-packages", "test", "tkinter", "turtledemo", "__pycache__"}
"""Parts of the standard library that no tool imports."""


class Modules(importlib.abc.SourceLoader):
    """Finds and loads modules from memory."""

    def __init__(self, root, files, unpack=bytes):
        self.root, self.files, self.unpack = root, files, unpack

    def find_spec(self, name, path=None, target=None):
        inside = name.replace(".", "/")
        for file, folders in ((f"{inside}/__init__.py", [f"{self.root}/{inside}"]), (f"{inside}.py", None)):
            if file in self.files:
                place = f"{self.root}/{file}"
                return importlib.util.spec_from_file_location(
                    name, place, loader=self, submodule_search_locations=folders
                )
        if any(file.startswith(f"{inside}/") for file in self.files):
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [f"{self.root}/{inside}"]
            return spec
        return None

    def get_filename(self, name):
        return self.find_spec(name).origin

    def get_data(self, path):
        try:
            return self.unpack(self.files[path.removeprefix(f"{self.root}/")])
        except KeyError:
            raise FileNotFoundError(path) from None


def packed(folder, packages=None):
    """The modules of a folder, compressed; those of these packages alone, where they are named."""
    files = {}
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in UNUSED]
        if packages is not None and at == folder:
            folders[:] = [name for name in folders if name in packages]
            names = [name for name in names if name.removesuffix(".py") in packages]
        for name in names:
            if name.endswith(".py"):
                place = os.path.join(at, name)
                with open(place, "rb") as file:
                    files[os.path.relpath(place, folder)] = zlib.compress(file.read())
    return Modules(folder, files, zlib.decompress)


def prepare():
    """Runs when the component is built: finds every module that a later version of the project may import.

    Those are the standard library and the packages that the project imports now. They stay imported; the project's own
    modules do not.
    """
    for module in pkgutil.walk_packages(wit_world.__path__, "wit_world."):
        importlib.import_module(module.name)
    project = os.path.dirname(importlib.import_module(MAIN).__file__)
    packages = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        folder = next((folder for folder in sys.path if file.startswith(f"{folder}/")), None)
        if folder == project:
            del sys.modules[name]
        elif folder not in (None, *OF_PYTHON):
            packages.setdefault(folder, set()).add(name.split(".")[0])
    return [packed(folder) for folder in OF_PYTHON], [packed(*found) for found in packages.items()]


BEFORE, BEHIND = prepare()
main = None


def project_module():
    """The project's main module, imported at the first use."""
    global main
    if main is None:
        given = json.loads(os.environ.pop(VARIABLE, "{}"))
        files = {path: data.encode() if isinstance(data, str) else base64.b64decode(*data) for path, data in given.items()}
        project = Modules(ROOT, files)
        sys.meta_path[-1:-1] = [*BEFORE, project, *BEHIND]
        sys.path.clear()  # folders of the build, which are not there now
        with readable(project):
            main = importlib.import_module(MAIN)
    return main


@contextlib.contextmanager
def readable(project):
    """While the project's modules are imported, they can open its files, as in a build."""
    builtins, real = sys.modules["builtins"], io.open

    def open_file(file, mode="r", *arguments, **options):
        path = os.path.normpath(file) if isinstance(file, (str, os.PathLike)) else ""
        if path.removeprefix(f"{ROOT}/") not in project.files or "r" not in mode:
            return real(file, mode, *arguments, **options)
        data = io.BytesIO(project.get_data(path))
        return data if "b" in mode else io.TextIOWrapper(data, options.get("encoding") or "utf-8")

    io.open = builtins.open = open_file
    try:
        yield
    finally:
        io.open = builtins.open = real


def said(problem):
    """Where a problem of the project is, and what it is: one line."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(problem.__traceback__)]
    if isinstance(problem, SyntaxError):
        frames.append((problem.filename or "", problem.lineno))
    what = traceback.format_exception_only(problem)[-1].strip()
    places = [f"{file.removeprefix(ROOT + '/')}:{line}: " for file, line in frames if file.startswith(f"{ROOT}/")]
    return (places[-1] if places else "") + what


class LiveSource:
    """The export of live.wit."""

    def load(self):
        try:
            project_module()
        except BaseException as problem:
            frames = problem.__traceback__
            while frames and not frames.tb_frame.f_code.co_filename.startswith(f"{ROOT}/"):
                frames = frames.tb_next
            traceback.print_exception(type(problem), problem, frames)
            raise Err(said(problem)) from None


class Forwarded:
    """An exported interface: its functions are those of the project's class."""

    def __init__(self, name):
        self.name, self.own = name, None

    def __getattr__(self, function):
        if self.own is None:
            self.own = getattr(project_module(), self.name)()
        return getattr(self.own, function)


def __getattr__(name):
    """The class of an exported interface, which componentize-py looks for here."""
    if name.startswith("_"):
        raise AttributeError(name)
    return lambda: Forwarded(name)
