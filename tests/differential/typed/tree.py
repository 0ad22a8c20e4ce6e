"""Statements as trees, so that a failing statement can be made smaller."""

import re

from wire import DOUBLE, LONGLONG, NULL, STRING


class Literal:
    """A constant. `parameter` is its type and value if it can be sent as a parameter; `family` that of a typed one."""

    def __init__(self, text, parameter=None, family=None):
        self.text, self.parameter, self.family, self.sent = text, parameter, family, False

    def render(self, parameters):
        if self.sent and parameters is not None and self.parameter is not None:
            parameters.append(self.parameter)
            return "?"
        return self.text

    def children(self):
        return []

    def smaller(self):
        return []


class Words:
    """A piece of text that cannot be made smaller: a keyword, a unit, the name of a column with its family. A list
    keeps it if it is `fixed`."""

    def __init__(self, text, fixed=False, family=None):
        self.text, self.fixed, self.family = text, fixed, family

    def render(self, _):
        return self.text

    def children(self):
        return []

    def smaller(self):
        return []


class Form:
    """A text with operands: `{}` stands for the next one, `{*}` for all others, separated by commas. None of the
    operands can stand for a form that is `whole`, such as a statement."""

    def __init__(self, pattern, operands, name=None, whole=False):
        self.pattern, self.operands, self.name, self.whole = pattern, operands, name, whole

    def render(self, parameters):
        operands = list(self.operands)
        pieces = []
        for piece in self.pattern.replace("{*}", "\0*").replace("{}", "\0").split("\0"):
            if not pieces:
                pieces.append(piece)
                continue
            if piece.startswith("*"):
                pieces.append(", ".join(operand.render(parameters) for operand in operands) + piece[1:])
                operands = []
            else:
                pieces.append(operands.pop(0).render(parameters) + piece)
        return "".join(pieces)

    def children(self):
        return self.operands

    def smaller(self):
        """Operands instead of the form."""
        if self.whole:
            return []
        return [operand for operand in self.operands if not isinstance(operand, Words)]


class Many:
    """A list of which all but `least` items can be dropped."""

    def __init__(self, items, separator=", ", least=1):
        self.items, self.separator, self.least = items, separator, least

    def render(self, parameters):
        return self.separator.join(item.render(parameters) for item in self.items)

    def children(self):
        return self.items

    def smaller(self):
        if len(self.items) <= self.least:
            return []
        rest = [n for n, item in enumerate(self.items) if not getattr(item, "fixed", False)]
        return [Many(self.items[:n] + self.items[n + 1:], self.separator, self.least) for n in rest]


class Statement:
    """A tree and how it is sent. `check` has keywords for the comparison, `theirs` what MariaDB gets instead."""

    def __init__(self, root, prepared=False, check=(), features=(), theirs=None, kinds=None, sources=None):
        self.root, self.prepared, self.theirs = root, prepared, theirs
        self.check, self.features = frozenset(check), frozenset(features)
        # The types of the table's columns by name.
        self.kinds = kinds or {}
        # The expressions of defaults and of generated columns by the name of the column, those of constraints by another.
        self.sources = sources or {}
        # The write after which the statement reads the table.
        self.cause = None

    def text(self):
        return self.root.render(None)

    def sent(self):
        """The statement as it is sent and its parameters, `None` for text."""
        if not self.prepared:
            return self.root.render(None), None
        parameters = []
        return self.root.render(parameters), parameters

    def assignments(self):
        """The number of columns that an INSERT assigns, and of the rows that an ALTER may convert."""
        if self.features & {"several", "alter"}:
            return 2
        return self.text().count(" = ") - 1 if self.text().startswith("INSERT") else 1

    def names(self):
        """The names of the functions and operators."""
        return self.attributes("name")

    def families(self):
        """The families of the columns and of the typed literals."""
        return self.attributes("family")

    def attributes(self, attribute):
        found, open_nodes = set(), [self.root]
        while open_nodes:
            node = open_nodes.pop()
            if getattr(node, attribute, None):
                found.add(getattr(node, attribute))
            open_nodes += node.children()
        return found

    def with_root(self, root):
        return Statement(root, self.prepared, self.check, self.features, kinds=self.kinds, sources=self.sources)

    def with_sources(self):
        """The statement with all expressions that a write computes."""
        if "write" not in self.features or not self.sources:
            return self
        return self.with_root(Many([self.root, *self.sources.values()]))

    def types(self):
        """The types of the columns that the statement names or writes."""
        text = self.text()
        return {kind for name, kind in self.kinds.items() if re.search(rf"\b{name}\b", text) or len(self.kinds) == 1}

    def computed(self):
        """A query of the expressions that a write stores, `None` if it computes nothing."""
        if not isinstance(self.root, Form) or not self.names():
            return None
        pattern, first = self.root.pattern, self.root.operands[0]
        source = Words("")
        if pattern.startswith("UPDATE"):
            items, source = [first], Form(" FROM t WHERE id = {}", self.root.operands[1:])
        elif "VALUES" in pattern:
            items = [value for row in first.items for value in row.operands[1:]]
        elif isinstance(first, Many):
            items = [part.operands[0] for part in first.items if isinstance(part, Form)]
            if len(self.root.operands) > 1:
                items, source = items + self.root.operands[1:], Words(f" FROM t WHERE {first.items[0].text}")
        else:
            return None
        query = self.with_root(Form("SELECT {}{}", [Many(items), source], whole=True))
        query.features = frozenset(["rows"])
        return query

    def part(self, column, name, key):
        """The expression of a column of the answer, or what a write assigns to a column of the row with a key."""
        if "write" in self.features and name in self.sources and f"{name} = " not in self.root.render(None):
            return self.with_root(Many([Words(name), self.sources[name], self.root]))
        if not isinstance(self.root, Form):
            target = re.match(r"(?:UPDATE (?:IGNORE )?t SET|ALTER TABLE t MODIFY) (\w+) ", self.root.text)
            root = self.root if target is None or target[1] == name else words("")
        elif "write" in self.features:
            root = self.assignment(name, key)
        elif self.root.pattern.startswith("SELECT {}"):
            root = self.root.operands[0].items[column]
        else:
            root = self.root
        part = self.with_root(root)
        if "write" in self.features:
            source = re.match(r"UPDATE (?:IGNORE )?t SET \w+ = (\w+) WHERE", part.text())
            part.kinds = {column: kind for column, kind in self.kinds.items() if column == name or source and column == source[1]}
        return part

    def assignment(self, name, key):
        """What a write assigns to a column."""
        pattern, first = self.root.pattern, self.root.operands[0]
        if pattern.startswith("UPDATE"):
            return first if f"SET {name} = " in pattern else words("")
        if "VALUES" in pattern:
            names = re.search(r"\(([^)]*)\)", pattern)[1].split(", ")
            rows = [row for row in first.items if key is None or row.operands[0].text.encode() == key]
            return Many([row.operands[names.index(name)] for row in rows] if name in names else [])
        parts = [part for part in first.items if isinstance(part, Form) and part.pattern == f"{name} = {{}}"] if isinstance(first, Many) else []
        return Many(parts + [self.root.operands[1]] if f"KEY UPDATE {name} = " in pattern else parts)

    def variants(self):
        """Smaller statements, the smallest first."""
        if self.theirs is not None:
            return
        if self.prepared:
            yield Statement(self.root, False, self.check, self.features, kinds=self.kinds, sources=self.sources)
        for root in reduced(self.root):
            yield self.with_root(root)


def reduced(node):
    """Trees with one place made smaller. Places near the root come first."""
    yield from node.smaller()
    children = node.children()
    for position, child in enumerate(children):
        for smaller in reduced(child):
            changed = children[:position] + [smaller] + children[position + 1:]
            yield Many(changed, node.separator, node.least) if isinstance(node, Many) else Form(node.pattern, changed, node.name, node.whole)


def number(text):
    """A numeric literal."""
    if "e" in text:
        value = float(text)
        return Literal(text, (DOUBLE, value) if abs(value) != float("inf") else None)
    if "." in text:
        return Literal(text, (246, text.encode()))
    value = int(text)
    return Literal(text, (LONGLONG, value) if -(2**63) <= value < 2**64 else None)


def string(text):
    return Literal("'" + text.replace("\\", "\\\\").replace("'", "''") + "'", (STRING, text.encode()))


def null():
    return Literal("NULL", (NULL, None))


def words(text, fixed=False, family=None):
    return Words(text, fixed, family)
