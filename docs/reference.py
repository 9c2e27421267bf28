"""What the site's reference says of the compiled core: the stubs have its types, the module itself its docstrings."""

import inspect
import re
import textwrap
from typing import Any

import griffe

import azpy._core

# The text of Returns is one value, as docstring_options of mkdocs.yml has it for docstrings in Python.
_OPTIONS: Any = {"returns_multiple_items": False, "returns_named_value": False, "warnings": False}


class Docstrings(griffe.Extension):
    """Gives each class, function and method of the stubs the docstring that `help` shows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:  # noqa: D102
        if obj.docstring:  # griffe reads the plural alone
            obj.docstring.value = obj.docstring.value.replace("Example:\n", "Examples:\n")

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:  # noqa: D102
        _describe(pkg["_core"], azpy._core)


def _describe(stubs: griffe.Object, found: Any) -> None:
    for name, member in stubs.members.items():
        one = inspect.getattr_static(found, name, None)
        # A plain value has the docstring of its type.
        if name.startswith("_") or not (
            callable(one) or inspect.isdatadescriptor(one) or isinstance(one, staticmethod)
        ):
            continue
        stub = member.final_target if isinstance(member, griffe.Alias) else member
        if one.__doc__:
            text = _titled(inspect.cleandoc(one.__doc__))
            stub.docstring = griffe.Docstring(text, parent=stub, parser="google", parser_options=_OPTIONS)
        if isinstance(stub, griffe.Class):
            if "__new__" in stub.members:  # the site takes a class's parameters from __init__ alone
                stub.members["__init__"] = stub.members.pop("__new__")
                stub.members["__init__"].name = "__init__"
            _describe(stub, one)


def _titled(text: str) -> str:
    """The docstring with a title over its example, which ends it, and the blank line that lists need in Markdown."""
    example = re.search(r"^ *>>> ", text, re.MULTILINE)
    if example and "Examples:" not in text:
        code = textwrap.indent(textwrap.dedent(text[example.start() :]), "    ")
        text = f"{text[: example.start()]}Examples:\n{code}"
    return text.replace(":\n- ", ":\n\n- ")
