"""Reads C++ sources for gates: brackets, declarations and lines, without a compiler."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Words that stand before a bracket and do not name a function.
QUALIFIERS = {"alignas", "__align__", "__launch_bounds__", "__attribute__", "decltype", "noexcept",
              "requires", "explicit", "void", "auto", "bool", "int", "float", "double"}
OPENING, CLOSING = "([{", ")]}"

LITERALS_AND_COMMENTS = re.compile(
    r'R"(?P<mark>[^()\s]*)\(.*?\)(?P=mark)"'   # a raw string
    r'|"(?:\\.|[^"\\\n])*"'                    # a string
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'"             # a character, but no mark between digits
    r"|//[^\n]*|/\*.*?\*/", re.S)


def without_comments(text):
    """The text with blanks for comments, literals and directives. Lines keep their numbers."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found)

    def replace(found):
        return blank(found[0]) if found[0][0] == "/" else "0" + blank(found[0])[1:]

    text = LITERALS_AND_COMMENTS.sub(replace, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda found: blank(found[0]), text, flags=re.M)


def end_of(text, begin):
    """The place behind the bracket that closes the one at `begin`."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] in OPENING) - (text[at] in CLOSING)
        if depth == 0:
            return at + 1
    return len(text)


def declares_scope(head):
    """Whether a declaration goes on in braces with more declarations, as a class does."""
    head = re.sub(r"(alignas|__align__)\([^)]*\)", "", head)
    head = re.sub(r"\btemplate\s*<.*?>\s*(?=struct|class|union)", "", head, flags=re.S)
    return re.search(r"\b(namespace|struct|class|union|extern)\b", head) and "(" not in head


class Function:
    """A declaration: its name, its line, its parameters as text, and the lines of its body."""

    def __init__(self, name, line, inner):
        self.name = name
        self.line = line
        self.inner = inner
        self.lines = 0  # from the body's brace to the one that closes it; 0 without a body


def functions(source):
    """Yields each function that the text declares or defines, but not those within bodies."""
    text = without_comments(source)
    start, at, found = 0, 0, None
    while at < len(text):
        each = text[at]
        if each == "{" and not declares_scope(text[start:at]):
            begin, at = at, end_of(text, at)
            # The braces of a member initialiser are followed by another one or by the body.
            if not re.match(r"\s*[,{]", text[at:at + 80]):
                if found:
                    found.lines = text.count("\n", begin, at) + 1
                    yield found
                start, found = at, None
            continue
        if each in ";{}":
            if found:
                yield found
            start, found = at + 1, None
        elif each == "(":
            end = end_of(text, at)
            before = text[start:at]
            name = re.search(r"([A-Za-z_~]\w*)\s*$", before)
            plain = "=" not in re.sub(r"<[^<>]*>", "", before)
            if name and name[1] not in QUALIFIERS and plain and not found:
                found = Function(name[1], text.count("\n", 0, at) + 1, text[at + 1:end - 1])
            at = end
            continue
        at += 1


def sources(folders, kinds):
    """The files of the working tree below the folders, by name from the root."""
    patterns = [f"{folder}/*.{kind}" for folder in folders for kind in kinds]
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT,
                            check=True, capture_output=True, text=True).stdout
    return sorted(name for name in set(listed.split()) if (ROOT / name).exists())
